//! `CREATE TABLE`, `CREATE TABLE … LIKE`, `CREATE TABLE … AS SELECT`.

use std::sync::Arc;

use firn_api::rows::MetadataLock;
use firn_base::TableId;
use firn_format::value::CollationId;
use firn_sql_grammar::ast;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{SqlType, TypeKind};

use super::super::lookup::{COPY_PREFIX, TEMPORARY_SCHEMA_PREFIX};
use super::super::model::{ColumnModel, DefaultValue, TableModel, same_name};
use super::table_builder::TableDraft;
use super::{
    CreateTableAs, DdlContext, DdlOutcome, QueryColumn, charset, check, check_identifier, column,
    foreign_key, from_rows, index, row_size,
};

pub(super) fn create_table(
    context: &DdlContext<'_>,
    statement: &ast::CreateTable,
) -> Result<DdlOutcome> {
    if statement.partitioning.is_some() {
        return Err(SqlError::not_supported("PARTITION BY"));
    }
    let (schema, name) = new_name(context, &statement.table)?;
    if exists(context, &schema, &name, statement.temporary)? {
        return already_there(context, &name, statement.if_not_exists);
    }
    let mut draft = empty_draft(context, &schema, &name, &statement.options)?;
    draft.temporary = statement.temporary;
    let query_columns = match &statement.source {
        Some(source) => {
            let current = context.current_schema.unwrap_or(&schema);
            context.expressions.query_columns(&source.query, current)?
        }
        None => Vec::new(),
    };
    add_columns(context, &mut draft, statement)?;
    let query_columns = add_query_columns(context, &mut draft, query_columns)?;
    add_elements(context, &mut draft, statement)?;
    foreign_key::drop_superfluous_indexes(&mut draft);
    check::whole(context, &draft, 0)?;
    row_size::check_new(context, &draft)?;
    context.lock_parents(&draft.foreign_keys)?;
    let table = store(context, &draft)?;
    Ok(match &statement.source {
        None => DdlOutcome::done(),
        Some(source) => DdlOutcome::CreateTableAs(Box::new(CreateTableAs {
            columns: query_columns
                .iter()
                .filter_map(|name| table.column(name))
                .map(|column| column.ordinal)
                .collect(),
            table,
            on_conflict: source.on_conflict,
            query: source.query.clone(),
        })),
    })
}

pub(super) fn create_table_like(
    context: &DdlContext<'_>,
    temporary: bool,
    if_not_exists: bool,
    table: &ast::TableName,
    like: &ast::TableName,
) -> Result<DdlOutcome> {
    context.lock_names([like], MetadataLock::Read)?;
    let original = context.table(like)?;
    if original.view().is_some() {
        let message = format!("'{}.{}' is not BASE TABLE", original.schema, original.name);
        return Err(SqlError::new(1347, message));
    }
    let (schema, name) = new_name(context, table)?;
    if exists(context, &schema, &name, temporary)? {
        return already_there(context, &name, if_not_exists);
    }
    let mut draft = TableDraft::of(&original).renumbered();
    // Foreign keys stay with the original; names of checks belong to the table.
    draft.foreign_keys.clear();
    let old_prefix = format!("{}_chk_", original.name);
    for (check, number) in draft.checks.iter_mut().zip(1..) {
        let number = check
            .name
            .strip_prefix(old_prefix.as_str())
            .map_or_else(|| number.to_string(), str::to_owned);
        check.name = format!("{name}_chk_{number}").into();
    }
    (draft.schema, draft.name) = (schema, name);
    draft.temporary = temporary;
    draft.created_us = now_us(context);
    store(context, &draft)?;
    Ok(DdlOutcome::done())
}

/// The schema and name of a new table.
///
/// # Errors
/// 1046 without a current schema, 1049 for an unknown one, 1059 and 1103 for invalid names.
pub(super) fn new_name(
    context: &DdlContext<'_>,
    table: &ast::TableName,
) -> Result<(Arc<str>, Arc<str>)> {
    let schema = context.schema_of(table)?;
    check_schema_is_writable(context, schema)?;
    check_table_name(&table.name)?;
    Ok((schema.into(), table.name.as_str().into()))
}

/// `Incorrect table name 't'`
pub(super) fn check_table_name(name: &str) -> Result<()> {
    if name.is_empty() || name.ends_with(' ') || name.starts_with(COPY_PREFIX) {
        return Err(SqlError::new(1103, format!("Incorrect table name '{name}'")));
    }
    check_identifier(name)
}

/// Refuses schemas that cannot contain tables of users.
pub(super) fn check_schema_is_writable(context: &DdlContext<'_>, schema: &str) -> Result<()> {
    let is_made_up = ["information_schema", "performance_schema"]
        .iter()
        .any(|made_up| made_up.eq_ignore_ascii_case(schema));
    if is_made_up {
        let message =
            format!("Access denied for user '{}' to database '{schema}'", context.account);
        return Err(SqlError::new(1044, message));
    }
    if schema.starts_with(TEMPORARY_SCHEMA_PREFIX)
        || !context.catalog.shared().has_schema(schema)?
    {
        return Err(super::super::lookup::unknown_schema(schema));
    }
    Ok(())
}

pub(super) fn exists(
    context: &DdlContext<'_>,
    schema: &str,
    name: &str,
    temporary: bool,
) -> Result<bool> {
    let found = match temporary {
        true => context.catalog.temporary_table(schema, name)?,
        false => context.catalog.shared().find_table(schema, name)?,
    };
    Ok(found.is_some())
}

fn already_there(context: &DdlContext<'_>, name: &str, if_not_exists: bool) -> Result<DdlOutcome> {
    let message = format!("Table '{name}' already exists");
    if !if_not_exists {
        return Err(SqlError::new(1050, message));
    }
    context.evaluation.note(1050, || message);
    Ok(DdlOutcome::done())
}

pub(super) fn now_us(context: &DdlContext<'_>) -> u64 {
    context.clock.wall_time_ms() * 1000
}

fn empty_draft(
    context: &DdlContext<'_>,
    schema: &str,
    name: &str,
    options: &[ast::TableOption],
) -> Result<TableDraft> {
    let collation = context.catalog.shared().schema(schema)?.collation;
    let mut draft = TableDraft::new(schema, name, collation);
    draft.created_us = now_us(context);
    apply_options(context, &mut draft, options)?;
    Ok(draft)
}

/// Applies table options.
///
/// # Errors
/// Unknown character sets, collations and engines.
pub(super) fn apply_options(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    options: &[ast::TableOption],
) -> Result<()> {
    let (mut charset, mut collation) = (None, None);
    for option in options {
        match option {
            ast::TableOption::Engine(engine) => check_engine(context, engine, &draft.name)?,
            ast::TableOption::AutoIncrement(next) => draft.auto_increment_start = Some(*next),
            ast::TableOption::Charset(name) => charset = Some(name.as_str()),
            ast::TableOption::Collation(name) => collation = Some(name.as_str()),
            ast::TableOption::Comment(comment) => {
                if comment.chars().count() > 2048 {
                    let message =
                        format!("Comment for table '{}' is too long (max = 2048)", draft.name);
                    return Err(SqlError::new(1628, message));
                }
                draft.comment = comment.as_str().into();
            }
            ast::TableOption::RowFormat(format) => {
                let shown = if format.eq_ignore_ascii_case("DEFAULT") { "" } else { format };
                draft.row_format = shown.to_uppercase().into();
            }
            ast::TableOption::Other(name, value) => set_other(draft, name, value),
        }
    }
    // `DEFAULT` means the schema's, which the draft already has.
    charset = charset.filter(|name| !name.eq_ignore_ascii_case("DEFAULT"));
    collation = collation.filter(|name| !name.eq_ignore_ascii_case("DEFAULT"));
    if let Some(collation) = charset::resolve(charset, collation)? {
        draft.collation = collation;
    }
    Ok(())
}

/// Options that are only shown again; the others have no meaning here.
fn set_other(draft: &mut TableDraft, name: &str, value: &str) {
    const SHOWN: [&str; 9] = [
        "MIN_ROWS",
        "MAX_ROWS",
        "AVG_ROW_LENGTH",
        "PACK_KEYS",
        "STATS_PERSISTENT",
        "STATS_AUTO_RECALC",
        "STATS_SAMPLE_PAGES",
        "CHECKSUM",
        "KEY_BLOCK_SIZE",
    ];
    let Some(name) = SHOWN.into_iter().find(|shown| shown.eq_ignore_ascii_case(name)) else {
        return;
    };
    draft.other_options.retain(|(other, _)| **other != *name);
    if !value.eq_ignore_ascii_case("DEFAULT") {
        draft.other_options.push((name.into(), value.into()));
    }
}

/// There is only one engine, which stores all tables; names of MySQL's engines are accepted for it.
fn check_engine(context: &DdlContext<'_>, engine: &str, table: &str) -> Result<()> {
    const TAKEN: [&str; 8] =
        ["INNODB", "MYISAM", "MEMORY", "HEAP", "ARCHIVE", "ARIA", "FIRN", "NDBCLUSTER"];
    let engine_upper = engine.to_uppercase();
    if !TAKEN.contains(&engine_upper.as_str()) {
        return Err(SqlError::new(1286, format!("Unknown storage engine '{engine}'")));
    }
    if engine_upper != "INNODB" && engine_upper != "FIRN" {
        context
            .evaluation
            .warn(1266, || format!("Using storage engine InnoDB for table '{table}'"));
    }
    Ok(())
}

fn add_columns(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    statement: &ast::CreateTable,
) -> Result<()> {
    for element in &statement.elements {
        let ast::TableElement::Column(definition) = element else { continue };
        let number = draft.take_number();
        let column = column::column(context, definition, number, draft.collation)?;
        draft.add_column(column, None)?;
    }
    Ok(())
}

/// Adds indexes, checks and foreign keys in MySQL's order: keys first, then what depends on them.
fn add_elements(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    statement: &ast::CreateTable,
) -> Result<()> {
    for element in &statement.elements {
        match element {
            ast::TableElement::Column(column) => add_column_keys(context, draft, column)?,
            ast::TableElement::Index(definition) => index::add(context, draft, definition)?,
            _ => {}
        }
    }
    index::check_primary_columns(statement, draft)?;
    for element in &statement.elements {
        match element {
            ast::TableElement::Column(column) => {
                for check in &column.checks {
                    check::add(context, draft, check, Some(&column.name))?;
                }
                foreign_key::add_of_column(context, draft, column)?;
            }
            ast::TableElement::Check(definition) => check::add(context, draft, definition, None)?,
            ast::TableElement::ForeignKey(key) => foreign_key::add(context, draft, key)?,
            ast::TableElement::Index(_) => {}
        }
    }
    Ok(())
}

/// The keys written in a column's definition.
pub(super) fn add_column_keys(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    column: &ast::ColumnDefinition,
) -> Result<()> {
    let of_kind = |kind| ast::IndexDefinition {
        kind,
        name: None,
        if_not_exists: false,
        algorithm: None,
        parts: vec![ast::KeyPart {
            source: ast::KeySource::Column { name: column.name.clone(), prefix_length: None },
            descending: false,
        }],
        visible: None,
        comment: None,
        parser: None,
        ignored: Vec::new(),
    };
    if column.primary_key {
        index::add(context, draft, &of_kind(ast::IndexKind::Primary))?;
    }
    if column.unique {
        index::add(context, draft, &of_kind(ast::IndexKind::Unique))?;
    }
    Ok(())
}

/// Adds the columns of a query after those that are only defined; returns the names of the query's
/// columns in order.
fn add_query_columns(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    columns: Vec<QueryColumn>,
) -> Result<Vec<String>> {
    let mut names = Vec::with_capacity(columns.len());
    let mut before = draft.columns.len();
    for column in columns {
        names.push(column.name.clone());
        // A column that is both defined and selected is one column, with the defined type.
        let mut defined = draft.columns[..before].iter();
        if let Some(place) = defined.position(|own| same_name(&own.name, &column.name)) {
            draft.columns[place..].rotate_left(1);
            before -= 1;
            continue;
        }
        column::check_result_name(&column.name)?;
        let number = draft.take_number();
        let model = model_of_query_column(context, column, number, draft.collation);
        draft.add_column(model, None)?;
    }
    Ok(names)
}

pub(super) fn model_of_query_column(
    context: &DdlContext<'_>,
    column: QueryColumn,
    ordinal: u16,
    collation: CollationId,
) -> ColumnModel {
    let origin = column.origin.as_ref().and_then(|(table, of)| table.by_ordinal(*of));
    let kind = kept_kind(column.ty.kind, collation);
    let ty = SqlType { kind, ..column.ty };
    let default = match origin.map(|origin| &origin.default) {
        Some(default @ (DefaultValue::Literal(_) | DefaultValue::CurrentTimestamp { .. })) => {
            default.clone()
        }
        _ if ty.nullable => DefaultValue::Null,
        _ if matches!(ty.kind, TypeKind::Text { .. } | TypeKind::Blob { .. }) => DefaultValue::None,
        _ if origin.is_none_or(|origin| origin.auto_increment) => {
            super::values::implicit_default(&ty.kind)
                .map_or(DefaultValue::None, DefaultValue::Literal)
        }
        _ => DefaultValue::None,
    };
    let _ = context;
    let (width, decimals) = column.width.unzip();
    ColumnModel {
        ordinal,
        name: column.name.as_str().into(),
        unsigned: ty.kind.is_unsigned() && ty.kind.is_numeric()
            || origin.is_some_and(|origin| origin.unsigned),
        ty,
        default,
        on_update_now: origin.and_then(|origin| origin.on_update_now),
        generated: None,
        auto_increment: false,
        invisible: false,
        hidden: false,
        comment: origin.map(|origin| Arc::clone(&origin.comment)).unwrap_or_default(),
        zerofill: origin.is_some_and(|origin| origin.zerofill),
        display_width: width.or(origin.and_then(|origin| origin.display_width)),
        display_decimals: decimals.or(origin.and_then(|origin| origin.display_decimals)),
        geometry: origin.map(|origin| Arc::clone(&origin.geometry)).unwrap_or_default(),
    }
}

/// The type with which a column stores an expression: texts that are too long for a row become long
/// texts.
fn kept_kind(kind: TypeKind, table: CollationId) -> TypeKind {
    match kind {
        TypeKind::Varchar { max_chars, collation } if max_chars > 16_383 => {
            let collation = if collation == CollationId::BINARY { table } else { collation };
            TypeKind::Text { max_bytes: u32::MAX, collation }
        }
        TypeKind::Varbinary { max_bytes } if max_bytes > 65_532 => {
            TypeKind::Blob { max_bytes: u32::MAX }
        }
        TypeKind::Null => TypeKind::Varbinary { max_bytes: 0 },
        other => other,
    }
}

/// Stores a draft as a new table.
///
/// # Errors
/// Errors of the node.
pub(super) fn store(context: &DdlContext<'_>, draft: &TableDraft) -> Result<Arc<TableModel>> {
    let draft = draft.renumbered();
    let id = match draft.temporary {
        true => store_temporary(context, &draft)?,
        false => {
            let mut definitions = context.definitions()?;
            let id = definitions.create_table(draft.definition()?).map_err(from_rows)?;
            definitions.commit().map_err(from_rows)?;
            id
        }
    };
    let table = context.catalog.shared().table_by_id(id)?;
    let table =
        table.ok_or_else(|| super::super::lookup::no_such_table(&draft.schema, &draft.name))?;
    if let Some(start) = draft.auto_increment_start {
        super::set_auto_increment(context, &table, start)?;
    }
    Ok(table)
}

fn store_temporary(context: &DdlContext<'_>, draft: &TableDraft) -> Result<TableId> {
    let catalog = context.catalog;
    let namespace = catalog.namespace();
    let mut definitions = context.definitions()?;
    let node = context.catalog.shared().node();
    if node.schema_options(&namespace).map_err(from_rows)?.is_none() {
        definitions.create_schema(&namespace, &[]).map_err(from_rows)?;
    }
    let mut definition = draft.definition()?;
    definition.schema_name = namespace.to_string();
    definition.name = format!("{}", catalog.next_temporary_number());
    let id = definitions.create_table(definition).map_err(from_rows)?;
    definitions.commit().map_err(from_rows)?;
    catalog.put_temporary(&draft.schema, &draft.name, id);
    Ok(id)
}
