//! `INSERT`, `REPLACE`, `UPDATE`, `DELETE`, `LOAD DATA`, `CALL`, `HANDLER`.

use firn_sql_types::error::Result;

use super::super::ast::{
    Assignment, Call, ColumnName, Delete, FileFormat, Handler, HandlerPosition, HandlerRead,
    Insert, InsertSource, LoadData, LoadTarget, Priority, RowAlias, Statement, TableName,
    TableWithJoins, Update, ValueOrDefault, With,
};
use super::super::lexer::Kind;
use super::expression::comparison_operator;
use super::{Parser, expression, from, query, statement, transaction};

pub(super) fn insert(parser: &mut Parser<'_>) -> Result<Statement> {
    let replace = parser.expect_any(&["INSERT", "REPLACE"])? == "REPLACE";
    let hints = parser.hints();
    let priority = priority(parser);
    let ignore = !replace && parser.accept("IGNORE");
    parser.accept("INTO");
    let table = parser.table_name()?;
    let partitions = from::partition_names(parser)?;
    let (columns, source) = insert_rows(parser)?;
    let row_alias = match (&source, replace) {
        (InsertSource::Values(_), false) => row_alias(parser)?,
        _ => None,
    };
    let on_duplicate = match !replace && parser.accept("ON") {
        true => {
            parser.expect_all(&["DUPLICATE", "KEY", "UPDATE"])?;
            parser.list(assignment)?
        }
        false => Vec::new(),
    };
    Ok(Statement::Insert(Box::new(Insert {
        replace,
        priority,
        ignore,
        table,
        partitions,
        columns,
        source,
        row_alias,
        on_duplicate,
        hints,
    })))
}

fn priority(parser: &mut Parser<'_>) -> Priority {
    match parser.accept_any(&["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "CONCURRENT"]) {
        Some("LOW_PRIORITY") => Priority::Low,
        Some("HIGH_PRIORITY") => Priority::High,
        Some("DELAYED") => Priority::Delayed,
        Some(_) => Priority::Concurrent,
        None => Priority::Normal,
    }
}

/// `(columns) VALUES …`, `(columns) SELECT …`, or `SET …`.
fn insert_rows(parser: &mut Parser<'_>) -> Result<(Vec<String>, InsertSource)> {
    if parser.accept("SET") {
        let set = parser.list(assignment)?;
        let (columns, row) = set.into_iter().map(|a| (a.column.column, a.value)).unzip();
        return Ok((columns, InsertSource::Values(vec![row])));
    }
    let mut columns = Vec::new();
    if parser.kind() == Kind::LeftParen && !query::begins_query_in_parens(parser) {
        columns =
            parser.parens_maybe_empty(|parser| column_name(parser).map(|name| name.column))?;
    }
    if parser.kind() == Kind::Word
        && (parser.is("VALUE") || (parser.is("VALUES") && !parser.is_at(1, "ROW")))
    {
        parser.at += 1;
        let rows = parser.list(|parser| parser.parens_maybe_empty(value_or_default))?;
        return Ok((columns, InsertSource::Values(rows)));
    }
    if parser.accept("VALUES") {
        let rows = parser.list(|parser| {
            parser.expect("ROW")?;
            parser.parens_maybe_empty(value_or_default)
        })?;
        return Ok((columns, InsertSource::Values(rows)));
    }
    if !query::begins_query(parser, 0) && parser.kind() != Kind::LeftParen {
        return parser.error();
    }
    Ok((columns, InsertSource::Query(query::query(parser)?)))
}

fn value_or_default(parser: &mut Parser<'_>) -> Result<ValueOrDefault> {
    if parser.is("DEFAULT") && parser.kind_at(1) != Kind::LeftParen {
        parser.at += 1;
        return Ok(ValueOrDefault::Default);
    }
    expression::expression(parser).map(ValueOrDefault::Value)
}

fn row_alias(parser: &mut Parser<'_>) -> Result<Option<RowAlias>> {
    if !parser.accept("AS") {
        return Ok(None);
    }
    let name = parser.ident()?;
    let columns = match parser.kind() {
        Kind::LeftParen => parser.parens_list(Parser::ident)?,
        _ => Vec::new(),
    };
    Ok(Some(RowAlias { name, columns }))
}

/// A column, optionally with its table's and database's names.
pub(super) fn column_name(parser: &mut Parser<'_>) -> Result<ColumnName> {
    let mut parts = vec![parser.ident()?];
    while parser.take(Kind::Dot) {
        parts.push(parser.any_ident()?);
    }
    let mut parts = parts.into_iter().rev();
    let column = parts.next().unwrap_or_default();
    let name = parts.next();
    let schema = parts.next();
    Ok(ColumnName { table: name.map(|name| TableName { schema, name }), column })
}

/// `column = value`.
pub(super) fn assignment(parser: &mut Parser<'_>) -> Result<Assignment> {
    let column = column_name(parser)?;
    if !parser.take(Kind::Equal) {
        parser.need(Kind::Assign)?;
    }
    Ok(Assignment { column, value: value_or_default(parser)? })
}

pub(super) fn update(parser: &mut Parser<'_>, with: Option<With>) -> Result<Statement> {
    parser.expect("UPDATE")?;
    let hints = parser.hints();
    let low_priority = parser.accept("LOW_PRIORITY");
    let ignore = parser.accept("IGNORE");
    let tables = from::table_references(parser)?;
    parser.expect("SET")?;
    let assignments = parser.list(assignment)?;
    let selection = query::where_clause(parser)?;
    let order_by = if parser.is("ORDER") { query::order_by(parser)? } else { Vec::new() };
    let limit = match parser.accept("LIMIT") {
        true => Some(query::limit_value(parser)?),
        false => None,
    };
    Ok(Statement::Update(Box::new(Update {
        with,
        low_priority,
        ignore,
        tables,
        assignments,
        selection,
        order_by,
        limit,
        hints,
    })))
}

pub(super) fn delete(parser: &mut Parser<'_>, with: Option<With>) -> Result<Statement> {
    parser.expect("DELETE")?;
    let hints = parser.hints();
    let (mut low_priority, mut quick, mut ignore) = (false, false, false);
    while let Some(word) = parser.accept_any(&["LOW_PRIORITY", "QUICK", "IGNORE"]) {
        match word {
            "LOW_PRIORITY" => low_priority = true,
            "QUICK" => quick = true,
            _ => ignore = true,
        }
    }
    let (targets, tables) = delete_tables(parser)?;
    let selection = query::where_clause(parser)?;
    let one = targets.is_empty();
    let order_by = if one && parser.is("ORDER") { query::order_by(parser)? } else { Vec::new() };
    let limit = match one && parser.accept("LIMIT") {
        true => Some(query::limit_value(parser)?),
        false => None,
    };
    Ok(Statement::Delete(Box::new(Delete {
        with,
        low_priority,
        quick,
        ignore,
        targets,
        tables,
        selection,
        order_by,
        limit,
        hints,
    })))
}

/// `FROM t`, `t, u FROM …` or `FROM t, u USING …`.
fn delete_tables(parser: &mut Parser<'_>) -> Result<(Vec<TableName>, Vec<TableWithJoins>)> {
    if !parser.accept("FROM") {
        let targets = parser.list(delete_target)?;
        parser.expect("FROM")?;
        return Ok((targets, from::table_references(parser)?));
    }
    if has_several_targets(parser) {
        let targets = parser.list(delete_target)?;
        parser.expect("USING")?;
        return Ok((targets, from::table_references(parser)?));
    }
    let relation = from::named_table(parser)?;
    Ok((Vec::new(), vec![TableWithJoins { relation, joins: Vec::new() }]))
}

/// Whether `USING` or a comma or `.*` follows the name of a table to delete from.
fn has_several_targets(parser: &Parser<'_>) -> bool {
    let mut ahead = 1;
    if parser.kind_at(ahead) == Kind::Dot {
        ahead += if parser.kind_at(2) == Kind::Star { 0 } else { 2 };
    }
    parser.is_at(ahead, "USING") || matches!(parser.kind_at(ahead), Kind::Comma | Kind::Dot)
}

/// A table to delete from, optionally with `.*`, an old spelling.
fn delete_target(parser: &mut Parser<'_>) -> Result<TableName> {
    let table = parser.table_name()?;
    if parser.kind() == Kind::Dot && parser.kind_at(1) == Kind::Star {
        parser.at += 2;
    }
    Ok(table)
}

pub(super) fn load(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("LOAD")?;
    if parser.is("XML") || parser.is("INDEX") {
        let what = if parser.is("XML") { "LOAD XML" } else { "LOAD INDEX INTO CACHE" };
        return Ok(Statement::Unsupported { what });
    }
    parser.expect("DATA")?;
    let priority = priority(parser);
    let local = parser.accept("LOCAL");
    parser.expect("INFILE")?;
    let path = parser.string()?;
    let on_conflict = statement::on_conflict(parser);
    parser.expect_all(&["INTO", "TABLE"])?;
    let table = parser.table_name()?;
    let partitions = from::partition_names(parser)?;
    let charset = if parser.charset_words() { Some(parser.word_or_text()?) } else { None };
    let format = file_format(parser)?;
    let ignore_lines = ignored_lines(parser)?;
    let targets = match parser.kind() {
        Kind::LeftParen => parser.parens_maybe_empty(load_target)?,
        _ => Vec::new(),
    };
    let set = if parser.accept("SET") { parser.list(assignment)? } else { Vec::new() };
    Ok(Statement::LoadData(Box::new(LoadData {
        local,
        priority,
        path,
        on_conflict,
        table,
        partitions,
        charset,
        format,
        ignore_lines,
        targets,
        set,
    })))
}

fn ignored_lines(parser: &mut Parser<'_>) -> Result<u64> {
    if !parser.accept("IGNORE") {
        return Ok(0);
    }
    let lines = parser.integer()?;
    parser.expect_any(&["LINES", "ROWS"])?;
    Ok(lines)
}

fn load_target(parser: &mut Parser<'_>) -> Result<LoadTarget> {
    match parser.kind() {
        Kind::UserVariable => parser.variable().map(LoadTarget::Variable),
        _ => parser.ident().map(LoadTarget::Column),
    }
}

/// `FIELDS …` and `LINES …`.
pub(super) fn file_format(parser: &mut Parser<'_>) -> Result<FileFormat> {
    let mut format = FileFormat::default();
    if parser.accept_any(&["FIELDS", "COLUMNS"]).is_some() {
        let first = parser.at;
        while parser.is_any(&["TERMINATED", "OPTIONALLY", "ENCLOSED", "ESCAPED"]) {
            field_format(parser, &mut format)?;
        }
        if parser.at == first {
            return parser.error();
        }
    }
    if parser.accept("LINES") {
        let first = parser.at;
        while let Some(word) = parser.accept_any(&["STARTING", "TERMINATED"]) {
            parser.expect("BY")?;
            let text = format_text(parser)?;
            match word {
                "STARTING" => format.lines_starting_by = text,
                _ => format.lines_terminated_by = text,
            }
        }
        if parser.at == first {
            return parser.error();
        }
    }
    Ok(format)
}

fn field_format(parser: &mut Parser<'_>, format: &mut FileFormat) -> Result<()> {
    format.optionally_enclosed |= parser.accept("OPTIONALLY");
    let word = parser.expect_any(&["TERMINATED", "ENCLOSED", "ESCAPED"])?;
    parser.expect("BY")?;
    let text = format_text(parser)?;
    match word {
        "TERMINATED" => format.fields_terminated_by = text,
        "ENCLOSED" => format.enclosed_by = text,
        _ => format.escaped_by = text,
    }
    Ok(())
}

/// A string, also in hexadecimal.
fn format_text(parser: &mut Parser<'_>) -> Result<String> {
    if parser.kind() == Kind::Text {
        return parser.string();
    }
    let bytes = transaction::byte_string(parser)?;
    String::from_utf8(bytes).or_else(|_| parser.error())
}

pub(super) fn call(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("CALL")?;
    let procedure = parser.table_name()?;
    let arguments = match parser.kind() {
        Kind::LeftParen => parser.parens_maybe_empty(expression::expression)?,
        _ => Vec::new(),
    };
    Ok(Statement::Call(Call { procedure, arguments }))
}

pub(super) fn handler(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("HANDLER")?;
    let table = parser.table_name()?;
    let handler = match parser.expect_any(&["OPEN", "READ", "CLOSE"])? {
        "OPEN" => {
            let named = parser.accept("AS") || parser.is_ident_at(0);
            let alias = if named { Some(parser.ident()?) } else { None };
            Handler::Open { table, alias }
        }
        "CLOSE" => Handler::Close(table.name),
        _ => Handler::Read(Box::new(handler_read(parser, table)?)),
    };
    Ok(Statement::Handler(handler))
}

fn handler_read(parser: &mut Parser<'_>, table: TableName) -> Result<HandlerRead> {
    let bare = parser.is_any(&["FIRST", "NEXT"]) && !position_follows(parser, 1);
    let index = if bare { None } else { Some(handler_index(parser)?) };
    let position = handler_position(parser)?;
    let selection = query::where_clause(parser)?;
    let (mut limit, mut offset) = (None, None);
    if parser.accept("LIMIT") {
        limit = Some(query::limit_value(parser)?);
        if parser.take(Kind::Comma) {
            offset = limit.replace(query::limit_value(parser)?);
        } else if parser.accept("OFFSET") {
            offset = Some(query::limit_value(parser)?);
        }
    }
    Ok(HandlerRead { table, index, position, selection, limit, offset })
}

fn handler_index(parser: &mut Parser<'_>) -> Result<String> {
    if parser.accept("PRIMARY") { Ok("PRIMARY".to_owned()) } else { parser.ident() }
}

fn position_follows(parser: &Parser<'_>, ahead: usize) -> bool {
    ["FIRST", "NEXT", "PREV", "LAST"].iter().any(|word| parser.is_at(ahead, word))
        || comparison_operator(parser.kind_at(ahead)).is_some()
}

fn handler_position(parser: &mut Parser<'_>) -> Result<HandlerPosition> {
    if let Some(comparison) = comparison_operator(parser.kind()) {
        parser.at += 1;
        let values = parser.parens_list(expression::expression)?;
        return Ok(HandlerPosition::Key { comparison, values });
    }
    Ok(match parser.expect_any(&["FIRST", "NEXT", "PREV", "LAST"])? {
        "FIRST" => HandlerPosition::First,
        "NEXT" => HandlerPosition::Next,
        "PREV" => HandlerPosition::Previous,
        _ => HandlerPosition::Last,
    })
}
