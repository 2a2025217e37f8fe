//! `SHOW` statements that list, as queries over virtual tables.

use firn_sql_grammar::ast::{Show, ShowFilter};
use firn_sql_grammar::render as expression_text;
use firn_sql_types::error::Result;

use super::super::notation::{identifier, quoted};
use super::ShowContext;

/// A query under construction: columns of a virtual table under the names that are shown.
struct Listing {
    table: &'static str,
    /// Name in the virtual table (or an expression), and displayed name.
    columns: Vec<(String, String)>,
    conditions: Vec<String>,
}

impl Listing {
    fn new(table: &'static str, columns: &[(&str, &str)]) -> Listing {
        let columns =
            columns.iter().map(|(column, shown)| ((*column).into(), (*shown).into())).collect();
        Listing { table, columns, conditions: Vec::new() }
    }

    fn equal(mut self, column: &str, value: &str) -> Listing {
        self.conditions.push(format!("{} = {}", written(column), quoted(value)));
        self
    }

    /// The query with a filter: `LIKE` applies to the first column, `WHERE` to the displayed
    /// columns.
    fn query(mut self, filter: Option<&ShowFilter>) -> String {
        if let (Some(ShowFilter::Like(pattern)), Some((column, _))) = (filter, self.columns.first())
        {
            self.conditions.push(format!("{} LIKE {}", written(column), quoted(pattern)));
        }
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|(column, shown)| format!("{} AS {}", written(column), identifier(shown)))
            .collect();
        let mut query = format!("SELECT {} FROM {}", columns.join(", "), self.table);
        if !self.conditions.is_empty() {
            query.push_str(&format!(" WHERE {}", self.conditions.join(" AND ")));
        }
        match filter {
            Some(ShowFilter::Where(condition)) => {
                format!("SELECT * FROM ({query}) AS `shown` WHERE {}", expression_text(condition))
            }
            _ => query,
        }
    }
}

/// A column of a virtual table in backticks; a constant as it is.
fn written(column: &str) -> String {
    if column.starts_with(|first: char| first.is_ascii_digit()) {
        return column.to_owned();
    }
    identifier(column)
}

/// The name of a column that holds names: `Tables_in_test (a%)`.
fn heading(name: &str, filter: Option<&ShowFilter>) -> String {
    match filter {
        Some(ShowFilter::Like(pattern)) => format!("{name} ({pattern})"),
        _ => name.to_owned(),
    }
}

/// The query for a statement that lists.
///
/// # Errors
/// 1046, 1049 and 1146 for schemas and tables that do not exist.
pub(super) fn query(context: &ShowContext<'_>, show: &Show) -> Result<String> {
    Ok(match show {
        Show::Databases(filter) => {
            let heading = heading("Database", filter.as_ref());
            Listing::new("information_schema.SCHEMATA", &[("SCHEMA_NAME", &heading)])
                .query(filter.as_ref())
        }
        Show::Tables { full, schema, filter, .. } => {
            tables(context, *full, schema.as_deref(), filter.as_ref())?
        }
        Show::TableStatus { schema, filter } => Listing::new("information_schema.TABLES", &STATUS)
            .equal("TABLE_SCHEMA", &context.schema(schema.as_deref())?)
            .query(filter.as_ref()),
        Show::OpenTables { schema, filter } => {
            open_tables(context, schema.as_deref(), filter.as_ref())?
        }
        Show::Columns { full, table, filter, .. } => {
            let (schema, relation) = context.relation(table)?;
            let columns: &[(&str, &str)] = if *full { &FULL_COLUMNS } else { &COLUMNS };
            Listing::new("information_schema.COLUMNS", columns)
                .equal("TABLE_SCHEMA", &schema)
                .equal("TABLE_NAME", name_of(&relation))
                .query(filter.as_ref())
        }
        Show::Indexes { table, filter, .. } => {
            let (schema, relation) = context.relation(table)?;
            Listing::new("information_schema.STATISTICS", &INDEXES)
                .equal("TABLE_SCHEMA", &schema)
                .equal("TABLE_NAME", name_of(&relation))
                .query(filter.as_ref())
        }
        Show::CharacterSets(filter) => Listing::new(
            "information_schema.CHARACTER_SETS",
            &[
                ("CHARACTER_SET_NAME", "Charset"),
                ("DESCRIPTION", "Description"),
                ("DEFAULT_COLLATE_NAME", "Default collation"),
                ("MAXLEN", "Maxlen"),
            ],
        )
        .query(filter.as_ref()),
        Show::Collations(filter) => {
            Listing::new("information_schema.COLLATIONS", &COLLATIONS).query(filter.as_ref())
        }
        Show::Plugins => Listing::new(
            "information_schema.PLUGINS",
            &[
                ("PLUGIN_NAME", "Name"),
                ("PLUGIN_STATUS", "Status"),
                ("PLUGIN_TYPE", "Type"),
                ("PLUGIN_LIBRARY", "Library"),
                ("PLUGIN_LICENSE", "License"),
            ],
        )
        .query(None),
        Show::Triggers { schema, filter } => Listing::new("information_schema.TRIGGERS", &TRIGGERS)
            .equal("TRIGGER_SCHEMA", &context.schema(schema.as_deref())?)
            .query(filter.as_ref()),
        Show::Events { schema, filter } => Listing::new("information_schema.EVENTS", &EVENTS)
            .equal("EVENT_SCHEMA", &context.schema(schema.as_deref())?)
            .query(filter.as_ref()),
        Show::ProcedureStatus(filter) => routines("PROCEDURE", filter.as_ref()),
        Show::FunctionStatus(filter) => routines("FUNCTION", filter.as_ref()),
        // Everything else has been handled before.
        _ => Listing::new("information_schema.ENGINES", &ENGINES).query(None),
    })
}

fn name_of(relation: &super::super::relation::Relation) -> &str {
    match relation {
        super::super::relation::Relation::Table(table) => &table.name,
        super::super::relation::Relation::Virtual(table) => table.name(),
    }
}

fn tables(
    context: &ShowContext<'_>,
    full: bool,
    schema: Option<&str>,
    filter: Option<&ShowFilter>,
) -> Result<String> {
    let schema = context.schema(schema)?;
    let heading = heading(&format!("Tables_in_{schema}"), filter);
    let mut columns = vec![("TABLE_NAME", heading.as_str())];
    if full {
        columns.push(("TABLE_TYPE", "Table_type"));
    }
    Ok(Listing::new("information_schema.TABLES", &columns)
        .equal("TABLE_SCHEMA", &schema)
        .query(filter))
}

fn open_tables(
    context: &ShowContext<'_>,
    schema: Option<&str>,
    filter: Option<&ShowFilter>,
) -> Result<String> {
    let columns = [
        ("TABLE_SCHEMA", "Database"),
        ("TABLE_NAME", "Table"),
        ("0", "In_use"),
        ("0", "Name_locked"),
    ];
    let mut listing = Listing::new("information_schema.TABLES", &columns);
    if let Some(schema) = schema {
        listing = listing.equal("TABLE_SCHEMA", &context.schema(Some(schema))?);
    }
    listing.conditions.push("TABLE_TYPE = 'BASE TABLE'".to_owned());
    if let Some(ShowFilter::Like(pattern)) = filter {
        listing.conditions.push(format!("TABLE_NAME LIKE {}", quoted(pattern)));
        return Ok(listing.query(None));
    }
    Ok(listing.query(filter))
}

fn routines(kind: &str, filter: Option<&ShowFilter>) -> String {
    let mut listing = Listing::new("information_schema.ROUTINES", &ROUTINES);
    listing.conditions.push(format!("ROUTINE_TYPE = {}", quoted(kind)));
    if let Some(ShowFilter::Like(pattern)) = filter {
        listing.conditions.push(format!("ROUTINE_NAME LIKE {}", quoted(pattern)));
        return listing.query(None);
    }
    listing.query(filter)
}

const COLUMNS: [(&str, &str); 6] = [
    ("COLUMN_NAME", "Field"),
    ("COLUMN_TYPE", "Type"),
    ("IS_NULLABLE", "Null"),
    ("COLUMN_KEY", "Key"),
    ("COLUMN_DEFAULT", "Default"),
    ("EXTRA", "Extra"),
];

const FULL_COLUMNS: [(&str, &str); 9] = [
    ("COLUMN_NAME", "Field"),
    ("COLUMN_TYPE", "Type"),
    ("COLLATION_NAME", "Collation"),
    ("IS_NULLABLE", "Null"),
    ("COLUMN_KEY", "Key"),
    ("COLUMN_DEFAULT", "Default"),
    ("EXTRA", "Extra"),
    ("PRIVILEGES", "Privileges"),
    ("COLUMN_COMMENT", "Comment"),
];

const INDEXES: [(&str, &str); 15] = [
    ("TABLE_NAME", "Table"),
    ("NON_UNIQUE", "Non_unique"),
    ("INDEX_NAME", "Key_name"),
    ("SEQ_IN_INDEX", "Seq_in_index"),
    ("COLUMN_NAME", "Column_name"),
    ("COLLATION", "Collation"),
    ("CARDINALITY", "Cardinality"),
    ("SUB_PART", "Sub_part"),
    ("PACKED", "Packed"),
    ("NULLABLE", "Null"),
    ("INDEX_TYPE", "Index_type"),
    ("COMMENT", "Comment"),
    ("INDEX_COMMENT", "Index_comment"),
    ("IS_VISIBLE", "Visible"),
    ("EXPRESSION", "Expression"),
];

const STATUS: [(&str, &str); 18] = [
    ("TABLE_NAME", "Name"),
    ("ENGINE", "Engine"),
    ("VERSION", "Version"),
    ("ROW_FORMAT", "Row_format"),
    ("TABLE_ROWS", "Rows"),
    ("AVG_ROW_LENGTH", "Avg_row_length"),
    ("DATA_LENGTH", "Data_length"),
    ("MAX_DATA_LENGTH", "Max_data_length"),
    ("INDEX_LENGTH", "Index_length"),
    ("DATA_FREE", "Data_free"),
    ("AUTO_INCREMENT", "Auto_increment"),
    ("CREATE_TIME", "Create_time"),
    ("UPDATE_TIME", "Update_time"),
    ("CHECK_TIME", "Check_time"),
    ("TABLE_COLLATION", "Collation"),
    ("CHECKSUM", "Checksum"),
    ("CREATE_OPTIONS", "Create_options"),
    ("TABLE_COMMENT", "Comment"),
];

const COLLATIONS: [(&str, &str); 7] = [
    ("COLLATION_NAME", "Collation"),
    ("CHARACTER_SET_NAME", "Charset"),
    ("ID", "Id"),
    ("IS_DEFAULT", "Default"),
    ("IS_COMPILED", "Compiled"),
    ("SORTLEN", "Sortlen"),
    ("PAD_ATTRIBUTE", "Pad_attribute"),
];

const ENGINES: [(&str, &str); 6] = [
    ("ENGINE", "Engine"),
    ("SUPPORT", "Support"),
    ("COMMENT", "Comment"),
    ("TRANSACTIONS", "Transactions"),
    ("XA", "XA"),
    ("SAVEPOINTS", "Savepoints"),
];

const TRIGGERS: [(&str, &str); 11] = [
    ("TRIGGER_NAME", "Trigger"),
    ("EVENT_MANIPULATION", "Event"),
    ("EVENT_OBJECT_TABLE", "Table"),
    ("ACTION_STATEMENT", "Statement"),
    ("ACTION_TIMING", "Timing"),
    ("CREATED", "Created"),
    ("SQL_MODE", "sql_mode"),
    ("DEFINER", "Definer"),
    ("CHARACTER_SET_CLIENT", "character_set_client"),
    ("COLLATION_CONNECTION", "collation_connection"),
    ("DATABASE_COLLATION", "Database Collation"),
];

const EVENTS: [(&str, &str); 15] = [
    ("EVENT_SCHEMA", "Db"),
    ("EVENT_NAME", "Name"),
    ("DEFINER", "Definer"),
    ("TIME_ZONE", "Time zone"),
    ("EVENT_TYPE", "Type"),
    ("EXECUTE_AT", "Execute at"),
    ("INTERVAL_VALUE", "Interval value"),
    ("INTERVAL_FIELD", "Interval field"),
    ("STARTS", "Starts"),
    ("ENDS", "Ends"),
    ("STATUS", "Status"),
    ("ORIGINATOR", "Originator"),
    ("CHARACTER_SET_CLIENT", "character_set_client"),
    ("COLLATION_CONNECTION", "collation_connection"),
    ("DATABASE_COLLATION", "Database Collation"),
];

const ROUTINES: [(&str, &str); 12] = [
    ("ROUTINE_SCHEMA", "Db"),
    ("ROUTINE_NAME", "Name"),
    ("ROUTINE_TYPE", "Type"),
    ("EXTERNAL_LANGUAGE", "Language"),
    ("DEFINER", "Definer"),
    ("LAST_ALTERED", "Modified"),
    ("CREATED", "Created"),
    ("SECURITY_TYPE", "Security_type"),
    ("ROUTINE_COMMENT", "Comment"),
    ("CHARACTER_SET_CLIENT", "character_set_client"),
    ("COLLATION_CONNECTION", "collation_connection"),
    ("DATABASE_COLLATION", "Database Collation"),
];
