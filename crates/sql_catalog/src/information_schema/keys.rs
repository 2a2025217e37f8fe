//! Indexes and constraints: `STATISTICS`, `KEY_COLUMN_USAGE`, `TABLE_CONSTRAINTS` and others.

use std::sync::Arc;

use firn_sql_types::Datum;
use firn_sql_types::error::Result;

use super::super::model::{
    ForeignKeyModel, IndexModel, ReferentialAction, SpecialIndex, TableModel, same_name,
};
use super::super::virtual_table::{EmitRow, VirtualColumn, VirtualContext};
use super::listing::each_stored;
use super::{
    Hints, MadeUp, def, exact, int, long_text, maybe_number, maybe_text, number, schema_table,
    signed, text,
};

pub(super) fn all() -> Vec<MadeUp> {
    let by_table = &["TABLE_SCHEMA", "TABLE_NAME"];
    let by_constraint = &["CONSTRAINT_SCHEMA", "TABLE_NAME"];
    vec![
        schema_table("STATISTICS", statistics_columns(), by_table, fill_statistics),
        schema_table("KEY_COLUMN_USAGE", usage_columns(), by_table, fill_usage),
        schema_table("TABLE_CONSTRAINTS", constraint_columns(), by_table, fill_constraints),
        schema_table(
            "TABLE_CONSTRAINTS_EXTENSIONS",
            extension_columns(),
            by_constraint,
            fill_extensions,
        ),
        schema_table(
            "REFERENTIAL_CONSTRAINTS",
            referential_columns(),
            by_constraint,
            fill_referential,
        ),
        schema_table("CHECK_CONSTRAINTS", check_columns(), &["CONSTRAINT_SCHEMA"], fill_checks),
        schema_table("INNODB_INDEXES", innodb_columns(), &[], fill_innodb),
    ]
}

fn statistics_columns() -> Vec<VirtualColumn> {
    vec![
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        int("NON_UNIQUE"),
        exact("INDEX_SCHEMA"),
        text("INDEX_NAME", 64),
        number("SEQ_IN_INDEX"),
        text("COLUMN_NAME", 64),
        text("COLLATION", 1),
        signed("CARDINALITY"),
        signed("SUB_PART"),
        text("PACKED", 1),
        text("NULLABLE", 3),
        text("INDEX_TYPE", 11),
        text("COMMENT", 8),
        text("INDEX_COMMENT", 2048),
        text("IS_VISIBLE", 3),
        long_text("EXPRESSION"),
    ]
}

fn fill_statistics(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    each_stored(context, hints, ("TABLE_SCHEMA", "TABLE_NAME"), &mut |table| {
        for index in &table.indexes {
            for number in 0..index.parts.len() {
                if !emit(&statistics_row(table, index, number))? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    })
}

fn statistics_row(table: &TableModel, index: &IndexModel, number: usize) -> Vec<Datum> {
    let part = index.parts[number];
    let column = table.by_ordinal(part.ordinal);
    let hidden = column.filter(|column| column.hidden);
    let expression = hidden.and_then(|column| column.generated.as_ref());
    let (kind, order) = match index.special {
        Some(SpecialIndex::FullText) => ("FULLTEXT", Datum::Null),
        Some(SpecialIndex::Spatial) => ("SPATIAL", Datum::text("A")),
        None => ("BTREE", Datum::text(if part.descending { "D" } else { "A" })),
    };
    let is_nullable = column.is_some_and(|column| column.ty.nullable);
    let cardinality = table.statistics.distinct(index.number, number + 1);
    let cardinality = cardinality.min(table.statistics.counted_rows());
    vec![
        def(),
        Datum::text(&*table.schema),
        Datum::text(&*table.name),
        Datum::Int((!index.unique).into()),
        Datum::text(&*table.schema),
        Datum::text(&*index.name),
        Datum::UInt(number as u64 + 1),
        maybe_text(column.filter(|column| !column.hidden).map(|column| &*column.name)),
        order,
        Datum::Int(cardinality as i64),
        part.prefix
            .filter(|_| index.special.is_none())
            .map_or(Datum::Null, |prefix| Datum::Int(prefix.into())),
        Datum::Null,
        Datum::text(if is_nullable { "YES" } else { "" }),
        Datum::text(kind),
        Datum::text(""),
        Datum::text(&*index.comment),
        Datum::text(if index.visible { "YES" } else { "NO" }),
        maybe_text(expression.map(|expression| &*expression.text)),
    ]
}

fn usage_columns() -> Vec<VirtualColumn> {
    vec![
        text("CONSTRAINT_CATALOG", 64),
        exact("CONSTRAINT_SCHEMA"),
        text("CONSTRAINT_NAME", 64),
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        text("COLUMN_NAME", 64),
        number("ORDINAL_POSITION"),
        number("POSITION_IN_UNIQUE_CONSTRAINT"),
        text("REFERENCED_TABLE_SCHEMA", 64),
        text("REFERENCED_TABLE_NAME", 64),
        text("REFERENCED_COLUMN_NAME", 64),
    ]
}

fn fill_usage(context: &VirtualContext<'_>, hints: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    each_stored(context, hints, ("TABLE_SCHEMA", "TABLE_NAME"), &mut |table| {
        for index in table.indexes.iter().filter(|index| index.unique) {
            for (part, position) in index.parts.iter().zip(1..) {
                let column = table.by_ordinal(part.ordinal).filter(|column| !column.hidden);
                let Some(column) = column.filter(|column| is_seen(context, table, &column.name))
                else {
                    continue;
                };
                let row = usage_row(table, &index.name, &column.name, position, None);
                if !emit(&row)? {
                    return Ok(false);
                }
            }
        }
        for key in &table.foreign_keys {
            for (number, ordinal) in key.columns.iter().enumerate() {
                let Some(column) = table.by_ordinal(*ordinal) else { continue };
                if !is_seen(context, table, &column.name) {
                    continue;
                }
                let parent = Some((key, number));
                let row = usage_row(table, &key.name, &column.name, number as u64 + 1, parent);
                if !emit(&row)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    })
}

/// Whether the user may see a column.
fn is_seen(context: &VirtualContext<'_>, table: &TableModel, column: &str) -> bool {
    !context.session.privileges_on_column(&table.schema, &table.name, column).is_empty()
}

fn usage_row(
    table: &TableModel,
    constraint: &str,
    column: &str,
    position: u64,
    parent: Option<(&ForeignKeyModel, usize)>,
) -> Vec<Datum> {
    vec![
        def(),
        Datum::text(&*table.schema),
        Datum::text(constraint),
        def(),
        Datum::text(&*table.schema),
        Datum::text(&*table.name),
        Datum::text(column),
        Datum::UInt(position),
        maybe_number(parent.map(|(_, number)| number as u64 + 1)),
        maybe_text(parent.map(|(key, _)| &*key.parent_schema)),
        maybe_text(parent.map(|(key, _)| &*key.parent_table)),
        maybe_text(parent.and_then(|(key, number)| key.parent_columns.get(number))),
    ]
}

fn constraint_columns() -> Vec<VirtualColumn> {
    vec![
        text("CONSTRAINT_CATALOG", 64),
        exact("CONSTRAINT_SCHEMA"),
        text("CONSTRAINT_NAME", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        text("CONSTRAINT_TYPE", 11),
        text("ENFORCED", 3),
    ]
}

fn fill_constraints(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    each_stored(context, hints, ("TABLE_SCHEMA", "TABLE_NAME"), &mut |table| {
        for (name, kind, enforced) in constraints(table) {
            let row = [
                def(),
                Datum::text(&*table.schema),
                Datum::text(&*name),
                Datum::text(&*table.schema),
                Datum::text(&*table.name),
                Datum::text(kind),
                Datum::text(if enforced { "YES" } else { "NO" }),
            ];
            if !emit(&row)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Name, kind and whether it is enforced, of each constraint of a table.
fn constraints(table: &TableModel) -> Vec<(Arc<str>, &'static str, bool)> {
    let unique = table.indexes.iter().filter(|index| index.unique).map(|index| {
        let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
        (Arc::clone(&index.name), kind, true)
    });
    let foreign = table.foreign_keys.iter().map(|key| (Arc::clone(&key.name), "FOREIGN KEY", true));
    let checks =
        table.checks.iter().map(|check| (Arc::clone(&check.name), "CHECK", check.enforced));
    unique.chain(foreign).chain(checks).collect()
}

fn extension_columns() -> Vec<VirtualColumn> {
    vec![
        text("CONSTRAINT_CATALOG", 64),
        exact("CONSTRAINT_SCHEMA"),
        text("CONSTRAINT_NAME", 64),
        exact("TABLE_NAME"),
        long_text("ENGINE_ATTRIBUTE"),
        long_text("SECONDARY_ENGINE_ATTRIBUTE"),
    ]
}

fn fill_extensions(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    each_stored(context, hints, ("CONSTRAINT_SCHEMA", "TABLE_NAME"), &mut |table| {
        for index in table.indexes.iter().filter(|index| index.unique) {
            let row = [
                def(),
                Datum::text(&*table.schema),
                Datum::text(&*index.name),
                Datum::text(&*table.name),
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

fn referential_columns() -> Vec<VirtualColumn> {
    vec![
        text("CONSTRAINT_CATALOG", 64),
        exact("CONSTRAINT_SCHEMA"),
        text("CONSTRAINT_NAME", 64),
        text("UNIQUE_CONSTRAINT_CATALOG", 64),
        text("UNIQUE_CONSTRAINT_SCHEMA", 64),
        text("UNIQUE_CONSTRAINT_NAME", 64),
        text("MATCH_OPTION", 7),
        text("UPDATE_RULE", 11),
        text("DELETE_RULE", 11),
        exact("TABLE_NAME"),
        exact("REFERENCED_TABLE_NAME"),
    ]
}

fn fill_referential(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    each_stored(context, hints, ("CONSTRAINT_SCHEMA", "TABLE_NAME"), &mut |table| {
        for key in &table.foreign_keys {
            let row = [
                def(),
                Datum::text(&*table.schema),
                Datum::text(&*key.name),
                def(),
                Datum::text(&*key.parent_schema),
                maybe_text(unique_key_of(context, key)?),
                Datum::text("NONE"),
                Datum::text(rule(key.on_update)),
                Datum::text(rule(key.on_delete)),
                Datum::text(&*table.name),
                Datum::text(&*key.parent_table),
            ];
            if !emit(&row)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// The parent's unique index over the columns that a foreign key names.
fn unique_key_of(context: &VirtualContext<'_>, key: &ForeignKeyModel) -> Result<Option<Arc<str>>> {
    let parent = context.catalog.shared().find_table(&key.parent_schema, &key.parent_table)?;
    let Some(parent) = parent else { return Ok(None) };
    let is_over = |index: &&IndexModel| {
        index.unique
            && index.parts.len() == key.parent_columns.len()
            && index.parts.iter().zip(&key.parent_columns).all(|(part, name)| {
                parent.by_ordinal(part.ordinal).is_some_and(|column| same_name(&column.name, name))
            })
    };
    Ok(parent.indexes.iter().find(is_over).map(|index| Arc::clone(&index.name)))
}

fn rule(action: ReferentialAction) -> &'static str {
    super::super::definition_text::action_text(action).unwrap_or("NO ACTION")
}

fn check_columns() -> Vec<VirtualColumn> {
    vec![
        text("CONSTRAINT_CATALOG", 64),
        exact("CONSTRAINT_SCHEMA"),
        text("CONSTRAINT_NAME", 64),
        long_text("CHECK_CLAUSE"),
    ]
}

fn fill_checks(context: &VirtualContext<'_>, hints: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    each_stored(context, hints, ("CONSTRAINT_SCHEMA", ""), &mut |table| {
        for check in &table.checks {
            let row = [
                def(),
                Datum::text(&*table.schema),
                Datum::text(&*check.name),
                Datum::text(&*check.text),
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
        number("INDEX_ID"),
        text("NAME", 193),
        number("TABLE_ID"),
        int("TYPE"),
        int("N_FIELDS"),
        int("PAGE_NO"),
        int("SPACE"),
        int("MERGE_THRESHOLD"),
    ]
}

fn fill_innodb(context: &VirtualContext<'_>, hints: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    each_stored(context, hints, ("", ""), &mut |table| {
        let definition = table.table.definition();
        for index in table.indexes.iter().filter(|_| table.has_rows()) {
            let Some(stored) = definition.indexes.get(index.number) else { continue };
            let kind = i64::from(index.unique) * 2 + i64::from(index.primary);
            let row = [
                Datum::UInt(stored.index_id.0),
                Datum::text(&*index.name),
                Datum::UInt(table.id.0),
                Datum::Int(kind),
                Datum::Int(index.parts.len() as i64),
                Datum::Int(stored.root_page.0.into()),
                Datum::Int(definition.space.0.into()),
                Datum::Int(50),
            ];
            if !emit(&row)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}
