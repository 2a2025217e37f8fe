//! `SCHEMATA`, `TABLES`, `VIEWS` and other tables with one row per table.

use firn_sql_collation as collation;
use firn_sql_types::error::Result;
use firn_sql_types::{Datum, EvaluationContext, TypeKind};

use super::super::model::{CheckOption, TableModel};
use super::super::options::DEFAULT_COLLATION;
use super::super::virtual_table::{EmitRow, VirtualColumn, VirtualContext};
use super::listing::{Listed, each_stored, each_table, schemas};
use super::{
    FOLDED, Hints, MadeUp, def, exact, int, long_text, maybe_number, moment, number, schema_table,
    text,
};

const PAGE_BYTES: f64 = 16384.0;

pub(super) fn all() -> Vec<MadeUp> {
    let by_table = &["TABLE_SCHEMA", "TABLE_NAME"];
    vec![
        schema_table("SCHEMATA", schemata_columns(), &["SCHEMA_NAME"], fill_schemata),
        schema_table(
            "SCHEMATA_EXTENSIONS",
            extension_columns(),
            &["SCHEMA_NAME"],
            fill_schemata_extensions,
        ),
        schema_table("TABLES", table_columns(), by_table, fill_tables),
        schema_table(
            "TABLES_EXTENSIONS",
            table_extension_columns(),
            by_table,
            fill_table_extensions,
        ),
        schema_table("VIEWS", view_columns(), by_table, fill_views),
        schema_table("PARTITIONS", partition_columns(), by_table, fill_partitions),
        schema_table("INNODB_TABLES", innodb_columns(), &[], fill_innodb_tables),
        schema_table(
            "COLUMN_STATISTICS",
            statistics_columns(),
            &["SCHEMA_NAME", "TABLE_NAME"],
            fill_statistics,
        ),
    ]
}

fn schemata_columns() -> Vec<VirtualColumn> {
    vec![
        text("CATALOG_NAME", 64),
        exact("SCHEMA_NAME"),
        text("DEFAULT_CHARACTER_SET_NAME", 64),
        text("DEFAULT_COLLATION_NAME", 64),
        text("SQL_PATH", 1),
        text("DEFAULT_ENCRYPTION", 3),
    ]
}

fn fill_schemata(context: &VirtualContext<'_>, hints: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    for name in schemas(context, hints.text("SCHEMA_NAME"))? {
        let options = context.catalog.shared().schema(&name);
        // Clients ask for this schema's collation, to name it after columns of its tables.
        let made_up = if &*name == "information_schema" { FOLDED } else { DEFAULT_COLLATION };
        let collation = collation::get(options.map_or(made_up, |options| options.collation));
        let row = [
            def(),
            Datum::text(&*name),
            Datum::text(collation.charset.name()),
            Datum::text(collation.name),
            Datum::Null,
            Datum::text("NO"),
        ];
        if !emit(&row)? {
            break;
        }
    }
    Ok(())
}

fn extension_columns() -> Vec<VirtualColumn> {
    vec![text("CATALOG_NAME", 64), exact("SCHEMA_NAME"), text("OPTIONS", 256)]
}

fn fill_schemata_extensions(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    for name in schemas(context, hints.text("SCHEMA_NAME"))? {
        if !emit(&[def(), Datum::text(&*name), Datum::text("")])? {
            break;
        }
    }
    Ok(())
}

fn table_columns() -> Vec<VirtualColumn> {
    vec![
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        text("TABLE_TYPE", 11),
        text("ENGINE", 64),
        int("VERSION"),
        text("ROW_FORMAT", 10),
        number("TABLE_ROWS"),
        number("AVG_ROW_LENGTH"),
        number("DATA_LENGTH"),
        number("MAX_DATA_LENGTH"),
        number("INDEX_LENGTH"),
        number("DATA_FREE"),
        number("AUTO_INCREMENT"),
        VirtualColumn {
            name: "CREATE_TIME",
            ty: firn_sql_types::SqlType::new(TypeKind::Timestamp { fsp: 0 }),
        },
        moment("UPDATE_TIME"),
        moment("CHECK_TIME"),
        text("TABLE_COLLATION", 64),
        number("CHECKSUM"),
        text("CREATE_OPTIONS", 256),
        text("TABLE_COMMENT", 2048),
    ]
}

fn fill_tables(context: &VirtualContext<'_>, hints: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    each_table(context, hints, ("TABLE_SCHEMA", "TABLE_NAME"), &mut |table| {
        emit(&match table {
            Listed::Stored(table) if table.view().is_some() => view_row(table, context.evaluation),
            Listed::Stored(table) => base_row(context, table),
            Listed::Virtual(table) => made_up_row(table.schema(), table.name()),
        })
    })
}

/// A row in which everything after the table's type is NULL.
fn bare_row(schema: &str, name: &str, kind: &str) -> Vec<Datum> {
    let mut row = vec![def(), Datum::text(schema), Datum::text(name), Datum::text(kind)];
    row.resize(21, Datum::Null);
    row
}

fn made_up_row(schema: &str, name: &str) -> Vec<Datum> {
    let kind = if schema == "information_schema" { "SYSTEM VIEW" } else { "BASE TABLE" };
    let mut row = bare_row(schema, name, kind);
    row[5] = Datum::Int(10);
    row[7] = Datum::UInt(0);
    row[19] = Datum::text("");
    row[20] = Datum::text("");
    row
}

fn view_row(table: &TableModel, evaluation: &EvaluationContext) -> Vec<Datum> {
    let mut row = bare_row(&table.schema, &table.name, "VIEW");
    row[14] = created(table, evaluation);
    row[20] = Datum::text("VIEW");
    row
}

fn base_row(context: &VirtualContext<'_>, table: &TableModel) -> Vec<Datum> {
    let mut row = bare_row(&table.schema, &table.name, "BASE TABLE");
    let statistics = &table.statistics;
    let (rows, data_bytes) = (statistics.counted_rows(), statistics.leaves() * PAGE_BYTES);
    let node = context.catalog.shared().node();
    let next = table.auto_increment.and_then(|_| node.next_auto_increment(&table.table).ok());
    let secondary = table.indexes.iter().filter(|index| !index.primary);
    let index_bytes: f64 =
        secondary.map(|index| statistics.index_leaves(index.number) * PAGE_BYTES).sum();
    let format = if table.row_format.is_empty() { "DYNAMIC" } else { &table.row_format };
    row[4] = Datum::text("InnoDB");
    row[5] = Datum::Int(10);
    row[6] = Datum::text(capitalised(format));
    row[7] = Datum::UInt(rows as u64);
    row[8] = Datum::UInt(if rows >= 1.0 { (data_bytes / rows) as u64 } else { 0 });
    row[9] = Datum::UInt(data_bytes as u64);
    row[10] = Datum::UInt(0);
    row[11] = Datum::UInt(index_bytes as u64);
    row[12] = Datum::UInt(0);
    row[13] = maybe_number(next);
    row[14] = created(table, context.evaluation);
    row[17] = Datum::text(collation::get(table.collation).name);
    row[19] = Datum::text(create_options(table));
    row[20] = Datum::text(&*table.comment);
    row
}

fn create_options(table: &TableModel) -> String {
    let mut options: Vec<String> = table
        .other_options
        .iter()
        .map(|(name, value)| format!("{}={value}", name.to_lowercase()))
        .collect();
    if !table.row_format.is_empty() {
        options.push(format!("row_format={}", table.row_format));
    }
    options.join(" ")
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().collect::<String>() + &letters.as_str().to_lowercase()
    })
}

fn created(table: &TableModel, evaluation: &EvaluationContext) -> Datum {
    let seconds = table.created_us / 1_000_000;
    if seconds == 0 {
        return Datum::Null;
    }
    let local = evaluation.time_zone.to_local((seconds * 1_000_000) as i64);
    local.map_or(Datum::Null, Datum::from)
}

fn table_extension_columns() -> Vec<VirtualColumn> {
    vec![
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        long_text("ENGINE_ATTRIBUTE"),
        long_text("SECONDARY_ENGINE_ATTRIBUTE"),
    ]
}

fn fill_table_extensions(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    each_table(context, hints, ("TABLE_SCHEMA", "TABLE_NAME"), &mut |table| {
        let (schema, name) = (Datum::text(table.schema()), Datum::text(table.name()));
        emit(&[def(), schema, name, Datum::Null, Datum::Null])
    })
}

fn view_columns() -> Vec<VirtualColumn> {
    vec![
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        long_text("VIEW_DEFINITION"),
        text("CHECK_OPTION", 8),
        text("IS_UPDATABLE", 3),
        text("DEFINER", 288),
        text("SECURITY_TYPE", 7),
        text("CHARACTER_SET_CLIENT", 64),
        text("COLLATION_CONNECTION", 64),
    ]
}

fn fill_views(context: &VirtualContext<'_>, hints: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    each_stored(context, hints, ("TABLE_SCHEMA", "TABLE_NAME"), &mut |table| {
        let Some(view) = table.view() else { return Ok(true) };
        let check = match view.check_option {
            CheckOption::None => "NONE",
            CheckOption::Local => "LOCAL",
            CheckOption::Cascaded => "CASCADED",
        };
        let updatable = context.views.is_updatable(table, context);
        let updatable = if updatable { "YES" } else { "NO" };
        let security = if view.security_definer { "DEFINER" } else { "INVOKER" };
        emit(&[
            def(),
            Datum::text(&*table.schema),
            Datum::text(&*table.name),
            match context.session.reads_view(&table.schema, &table.name) {
                true => Datum::text(&*view.body),
                false => Datum::text(""),
            },
            Datum::text(check),
            Datum::text(updatable),
            Datum::text(&*view.definer),
            Datum::text(security),
            Datum::text("utf8mb4"),
            Datum::text("utf8mb4_0900_ai_ci"),
        ])
    })
}

fn partition_columns() -> Vec<VirtualColumn> {
    vec![
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        text("PARTITION_NAME", 64),
        text("SUBPARTITION_NAME", 64),
        number("PARTITION_ORDINAL_POSITION"),
        number("SUBPARTITION_ORDINAL_POSITION"),
        text("SECONDARY_LOAD", 1),
        text("PARTITION_METHOD", 13),
        text("SUBPARTITION_METHOD", 13),
        text("PARTITION_EXPRESSION", 2048),
        text("SUBPARTITION_EXPRESSION", 2048),
        long_text("PARTITION_DESCRIPTION"),
        number("TABLE_ROWS"),
        number("AVG_ROW_LENGTH"),
        number("DATA_LENGTH"),
        number("MAX_DATA_LENGTH"),
        number("INDEX_LENGTH"),
        number("DATA_FREE"),
        moment("CREATE_TIME"),
        moment("UPDATE_TIME"),
        moment("CHECK_TIME"),
        number("CHECKSUM"),
        long_text("PARTITION_COMMENT"),
        text("NODEGROUP", 256),
        text("TABLESPACE_NAME", 268),
    ]
}

fn fill_partitions(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    each_stored(context, hints, ("TABLE_SCHEMA", "TABLE_NAME"), &mut |table| {
        if table.view().is_some() {
            return Ok(true);
        }
        let of_table = base_row(context, table);
        let mut row = of_table[..3].to_vec();
        row.resize(13, Datum::Null);
        row.extend_from_slice(&of_table[7..13]);
        row.push(of_table[14].clone());
        row.extend([Datum::Null, Datum::Null, Datum::Null]);
        row.extend([Datum::text(""), Datum::Null, Datum::Null]);
        emit(&row)
    })
}

fn innodb_columns() -> Vec<VirtualColumn> {
    vec![
        number("TABLE_ID"),
        text("NAME", 655),
        int("FLAG"),
        int("N_COLS"),
        number("SPACE"),
        text("ROW_FORMAT", 12),
        int("ZIP_PAGE_SIZE"),
        text("SPACE_TYPE", 10),
        int("INSTANT_COLS"),
        int("TOTAL_ROW_VERSIONS"),
    ]
}

fn fill_innodb_tables(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    each_stored(context, hints, ("", ""), &mut |table| {
        if table.view().is_some() {
            return Ok(true);
        }
        let definition = table.table.definition();
        emit(&[
            Datum::UInt(table.id.0),
            Datum::text(format!("{}/{}", table.schema, table.name)),
            Datum::Int(33),
            Datum::Int(table.columns.len() as i64),
            Datum::UInt(definition.space.0.into()),
            Datum::text("Dynamic"),
            Datum::Int(0),
            Datum::text("Single"),
            Datum::Int(0),
            Datum::Int(definition.row_version.0.into()),
        ])
    })
}

fn statistics_columns() -> Vec<VirtualColumn> {
    vec![
        exact("SCHEMA_NAME"),
        exact("TABLE_NAME"),
        text("COLUMN_NAME", 64),
        VirtualColumn { name: "HISTOGRAM", ty: firn_sql_types::SqlType::new(TypeKind::Json) },
    ]
}

fn fill_statistics(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    emit: EmitRow<'_>,
) -> Result<()> {
    each_stored(context, hints, ("SCHEMA_NAME", "TABLE_NAME"), &mut |table| {
        for column in table.shown_columns() {
            let Some(histogram) = table.statistics.histogram_json(column.ordinal) else { continue };
            let row = [
                Datum::text(&*table.schema),
                Datum::text(&*table.name),
                Datum::text(&*column.name),
                Datum::from(histogram),
            ];
            if !emit(&row)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}
