//! `COLUMNS` and other tables with one row per column.

use firn_sql_types::error::Result;
use firn_sql_types::{Datum, TypeKind};

use super::super::definition_text::default_text;
use super::super::model::{ColumnModel, DefaultValue, Generated, TableKind, TableModel};
use super::super::type_text;
use super::super::virtual_table::{EmitRow, VirtualColumn, VirtualContext};
use super::listing::{Listed, each_stored, each_table};
use super::{
    Hints, MadeUp, def, exact, int, long_text, maybe_number, maybe_text, number, schema_table,
    text, yes_or_no,
};

pub(super) fn all() -> Vec<MadeUp> {
    let by_table = &["TABLE_SCHEMA", "TABLE_NAME"];
    vec![
        schema_table("COLUMNS", columns(), by_table, fill),
        schema_table("COLUMNS_EXTENSIONS", extension_columns(), by_table, fill_extensions),
        schema_table("INNODB_COLUMNS", innodb_columns(), &[], fill_innodb),
    ]
}

fn columns() -> Vec<VirtualColumn> {
    vec![
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        text("COLUMN_NAME", 64),
        VirtualColumn {
            name: "ORDINAL_POSITION",
            ty: firn_sql_types::SqlType::new(TypeKind::Integer {
                width: firn_sql_types::IntWidth::Four,
                unsigned: true,
            })
            .not_null(),
        },
        long_text("COLUMN_DEFAULT"),
        text("IS_NULLABLE", 3),
        long_text("DATA_TYPE"),
        VirtualColumn { name: "CHARACTER_MAXIMUM_LENGTH", ty: firn_sql_types::SqlType::bigint() },
        VirtualColumn { name: "CHARACTER_OCTET_LENGTH", ty: firn_sql_types::SqlType::bigint() },
        number("NUMERIC_PRECISION"),
        number("NUMERIC_SCALE"),
        number("DATETIME_PRECISION"),
        text("CHARACTER_SET_NAME", 64),
        text("COLLATION_NAME", 64),
        long_text("COLUMN_TYPE"),
        text("COLUMN_KEY", 3),
        text("EXTRA", 256),
        text("PRIVILEGES", 154),
        long_text("COLUMN_COMMENT"),
        long_text("GENERATION_EXPRESSION"),
        number("SRS_ID"),
    ]
}

fn fill(context: &VirtualContext<'_>, hints: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    each_table(context, hints, ("TABLE_SCHEMA", "TABLE_NAME"), &mut |listed| {
        match listed {
            Listed::Stored(table) => {
                for (column, position) in table.shown_columns().zip(1..) {
                    let (schema, name) = (&*table.schema, &*table.name);
                    let held = match table.kind {
                        TableKind::Temporary => ALL_PRIVILEGES.to_owned(),
                        _ => context.session.privileges_on_column(schema, name, &column.name),
                    };
                    if held.is_empty() {
                        continue;
                    }
                    let key = column_key(table, column);
                    let row = row(schema, name, column, (position, key, &held));
                    if !emit(&row)? {
                        return Ok(false);
                    }
                }
            }
            Listed::Virtual(table) => {
                for (column, position) in table.columns().iter().zip(1..) {
                    let column = model_of(column, position);
                    let row = row(table.schema(), table.name(), &column, (position, "", "select"));
                    if !emit(&row)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    })
}

/// A virtual column as if it were stored.
pub(crate) fn model_of(column: &VirtualColumn, position: u16) -> ColumnModel {
    ColumnModel {
        ordinal: position - 1,
        name: column.name.into(),
        unsigned: column.ty.kind.is_unsigned() && column.ty.kind.is_numeric(),
        ty: column.ty.clone(),
        default: if column.ty.nullable { DefaultValue::Null } else { DefaultValue::None },
        on_update_now: None,
        generated: None,
        auto_increment: false,
        invisible: false,
        hidden: false,
        comment: "".into(),
        zerofill: false,
        display_width: None,
        display_decimals: None,
        geometry: "".into(),
    }
}

/// A session's privileges on a column of its own temporary table.
const ALL_PRIVILEGES: &str = "select,insert,update,references";

fn row(
    schema: &str,
    table: &str,
    column: &ColumnModel,
    (position, key, privileges): (u16, &str, &str),
) -> Vec<Datum> {
    let kind = &column.ty.kind;
    let lengths = type_text::character_lengths(kind);
    let precision = type_text::numeric_precision(column);
    let names = type_text::charset_and_collation(kind);
    let is_time = matches!(
        kind,
        TypeKind::Time { .. } | TypeKind::DateTime { .. } | TypeKind::Timestamp { .. }
    );
    let generation = column.generated.as_ref().map_or("", |generated| &*generated.text);
    vec![
        def(),
        Datum::text(schema),
        Datum::text(table),
        Datum::text(&*column.name),
        Datum::UInt(position.into()),
        maybe_text(default_text(column)),
        yes_or_no(column.ty.nullable),
        Datum::text(type_text::base(column)),
        lengths.map_or(Datum::Null, |(characters, _)| Datum::Int(characters as i64)),
        lengths.map_or(Datum::Null, |(_, bytes)| Datum::Int(bytes as i64)),
        maybe_number(precision.map(|(digits, _)| digits)),
        maybe_number(precision.and_then(|(_, scale)| scale)),
        maybe_number(is_time.then_some(kind.fsp().into())),
        maybe_text(names.map(|(charset, _)| charset)),
        maybe_text(names.map(|(_, collation)| collation)),
        Datum::text(type_text::full(column)),
        Datum::text(key),
        Datum::text(extra(column)),
        Datum::text(privileges),
        Datum::text(&*column.comment),
        Datum::text(generation),
        Datum::Null,
    ]
}

/// `PRI`, `UNI`, `MUL` or empty: the strongest key that the column has.
fn column_key(table: &TableModel, column: &ColumnModel) -> &'static str {
    let is_of = |index: &super::super::model::IndexModel| {
        index.parts.iter().any(|part| part.ordinal == column.ordinal)
    };
    let is_first = |index: &super::super::model::IndexModel| {
        index.parts.first().is_some_and(|part| part.ordinal == column.ordinal)
    };
    let stands_in = |index: &&super::super::model::IndexModel| {
        // Without a primary key, the first unique key without NULLs is shown as one.
        index.unique
            && index.parts.iter().all(|part| {
                part.prefix.is_none()
                    && table.by_ordinal(part.ordinal).is_some_and(|own| !own.ty.nullable)
            })
    };
    let primary = table.primary_key().or_else(|| table.indexes.iter().find(stands_in));
    if primary.is_some_and(is_of) {
        return "PRI";
    }
    if table.indexes.iter().any(|index| index.unique && index.parts.len() == 1 && is_first(index)) {
        return "UNI";
    }
    if table.indexes.iter().any(is_first) { "MUL" } else { "" }
}

fn extra(column: &ColumnModel) -> String {
    let mut words: Vec<String> = Vec::new();
    if column.auto_increment {
        words.push("auto_increment".to_owned());
    }
    if matches!(column.default, DefaultValue::CurrentTimestamp { .. } | DefaultValue::Expression(_))
    {
        words.push("DEFAULT_GENERATED".to_owned());
    }
    match column.on_update_now {
        Some(0) => words.push("on update CURRENT_TIMESTAMP".to_owned()),
        Some(fsp) => words.push(format!("on update CURRENT_TIMESTAMP({fsp})")),
        None => {}
    }
    match column.generated {
        Some(Generated { stored: true, .. }) => words.push("STORED GENERATED".to_owned()),
        Some(_) => words.push("VIRTUAL GENERATED".to_owned()),
        None => {}
    }
    if column.invisible {
        words.push("INVISIBLE".to_owned());
    }
    words.join(" ")
}

fn extension_columns() -> Vec<VirtualColumn> {
    vec![
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        text("COLUMN_NAME", 64),
        long_text("ENGINE_ATTRIBUTE"),
        long_text("SECONDARY_ENGINE_ATTRIBUTE"),
    ]
}

fn fill_extensions(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    each_stored(context, hints, ("TABLE_SCHEMA", "TABLE_NAME"), &mut |table| {
        for column in table.shown_columns() {
            let row = [
                def(),
                Datum::text(&*table.schema),
                Datum::text(&*table.name),
                Datum::text(&*column.name),
                Datum::Null,
                Datum::Null,
            ];
            if !emit(&row)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

fn innodb_columns() -> Vec<VirtualColumn> {
    vec![
        number("TABLE_ID"),
        text("NAME", 193),
        number("POS"),
        int("MTYPE"),
        int("PRTYPE"),
        int("LEN"),
        int("HAS_DEFAULT"),
        long_text("DEFAULT_VALUE"),
    ]
}

fn fill_innodb(context: &VirtualContext<'_>, hints: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    each_stored(context, hints, ("", ""), &mut |table| {
        for column in table.shown_columns().filter(|_| table.has_rows()) {
            let length =
                type_text::character_lengths(&column.ty.kind).map_or(8, |(_, bytes)| bytes);
            let row = [
                Datum::UInt(table.id.0),
                Datum::text(&*column.name),
                Datum::UInt(column.ordinal.into()),
                Datum::Int(0),
                Datum::Int(0),
                Datum::Int(length as i64),
                Datum::Int(0),
                Datum::Null,
            ];
            if !emit(&row)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}
