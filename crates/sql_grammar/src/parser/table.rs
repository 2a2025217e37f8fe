//! `CREATE TABLE`: indexes, constraints, options; `CREATE INDEX`, `DROP TABLE`, `DROP INDEX`.

use firn_sql_types::error::Result;

use super::super::ast::{
    Check, CreateTable, ForeignKey, IndexDefinition, IndexKind, KeyPart, KeySource, OnConflict,
    ReferenceAction, References, Statement, TableElement, TableOption, TableSource,
};
use super::super::lexer::Kind;
use super::{Parser, column, expression, partition, query, statement};

/// Table options that are accepted and ignored, with a value after them.
const OTHER_OPTIONS: &[&str] = &[
    "AUTOEXTEND_SIZE",
    "AVG_ROW_LENGTH",
    "CHECKSUM",
    "COMPRESSION",
    "CONNECTION",
    "DELAY_KEY_WRITE",
    "ENCRYPTION",
    "ENGINE_ATTRIBUTE",
    "INSERT_METHOD",
    "KEY_BLOCK_SIZE",
    "MAX_ROWS",
    "MIN_ROWS",
    "NODEGROUP",
    "PACK_KEYS",
    "PASSWORD",
    "SECONDARY_ENGINE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "STORAGE",
    "TABLE_CHECKSUM",
];

pub(super) fn create_table(parser: &mut Parser<'_>) -> Result<Statement> {
    let temporary = parser.accept("TEMPORARY");
    parser.expect("TABLE")?;
    let if_not_exists = parser.if_not_exists();
    let table = parser.table_name()?;
    if parser.is("LIKE") || (parser.kind() == Kind::LeftParen && parser.is_at(1, "LIKE")) {
        let parens = parser.take(Kind::LeftParen);
        parser.expect("LIKE")?;
        let like = parser.table_name()?;
        if parens {
            parser.need(Kind::RightParen)?;
        }
        return Ok(Statement::CreateTableLike { temporary, if_not_exists, table, like });
    }
    let elements = match parser.kind() == Kind::LeftParen && !query::begins_query_in_parens(parser)
    {
        true => parser.parens_list(table_element)?,
        false => Vec::new(),
    };
    let options = table_options(parser)?;
    let partitioning = match parser.are(&["PARTITION", "BY"]) {
        true => Some(partition::partitioning(parser)?),
        false => None,
    };
    let source = table_source(parser)?;
    if elements.is_empty() && source.is_none() {
        return parser.error();
    }
    Ok(Statement::CreateTable(Box::new(CreateTable {
        temporary,
        if_not_exists,
        table,
        elements,
        options,
        partitioning,
        source,
    })))
}

fn table_source(parser: &mut Parser<'_>) -> Result<Option<TableSource>> {
    let on_conflict = statement::on_conflict(parser);
    let said = parser.accept("AS") || on_conflict != OnConflict::Refuse;
    let follows = query::begins_query(parser, 0)
        || (parser.kind() == Kind::LeftParen && query::begins_query_in_parens(parser));
    if !said && !follows {
        return Ok(None);
    }
    Ok(Some(TableSource { on_conflict, query: *query::query(parser)? }))
}

fn table_element(parser: &mut Parser<'_>) -> Result<TableElement> {
    if let Some(constraint) = table_constraint(parser)? {
        return Ok(constraint);
    }
    column::column_definition(parser).map(TableElement::Column)
}

/// An index, key or constraint; `None` if a column is here.
pub(super) fn table_constraint(parser: &mut Parser<'_>) -> Result<Option<TableElement>> {
    let ahead = match parser.is("CONSTRAINT") {
        true if begins_constraint(parser, 1) => 1,
        true => 2,
        false => 0,
    };
    Ok(Some(match parser.upper_at(ahead).as_str() {
        "CHECK" => TableElement::Check(check(parser)?),
        "FOREIGN" => TableElement::ForeignKey(foreign_key(parser)?),
        "PRIMARY" | "UNIQUE" => TableElement::Index(unique_or_primary(parser)?),
        _ if ahead > 0 => {
            parser.at += ahead;
            return parser.error();
        }
        "INDEX" | "KEY" => {
            parser.at += 1;
            TableElement::Index(index_body(parser, IndexKind::Plain, None)?)
        }
        "FULLTEXT" | "SPATIAL" => {
            let kind = match parser.expect_any(&["FULLTEXT", "SPATIAL"])? {
                "FULLTEXT" => IndexKind::Fulltext,
                _ => IndexKind::Spatial,
            };
            let _ = parser.accept_any(&["INDEX", "KEY"]);
            TableElement::Index(index_body(parser, kind, None)?)
        }
        _ => return Ok(None),
    }))
}

fn begins_constraint(parser: &Parser<'_>, ahead: usize) -> bool {
    ["CHECK", "FOREIGN", "PRIMARY", "UNIQUE"].iter().any(|word| parser.is_at(ahead, word))
}

/// `CONSTRAINT [name]`, if present.
fn constraint_name(parser: &mut Parser<'_>) -> Result<Option<String>> {
    if !parser.accept("CONSTRAINT") || begins_constraint(parser, 0) {
        return Ok(None);
    }
    parser.ident().map(Some)
}

/// `[CONSTRAINT name] CHECK (…) [[NOT] ENFORCED]`.
pub(super) fn check(parser: &mut Parser<'_>) -> Result<Check> {
    let name = constraint_name(parser)?;
    parser.expect("CHECK")?;
    let expression = parser.parens(expression::expression)?;
    let refused = parser.accept_all(&["NOT", "ENFORCED"]);
    if !refused {
        parser.accept("ENFORCED");
    }
    Ok(Check { name, expression, enforced: !refused })
}

fn foreign_key(parser: &mut Parser<'_>) -> Result<ForeignKey> {
    let mut name = constraint_name(parser)?;
    parser.expect_all(&["FOREIGN", "KEY"])?;
    let if_not_exists = parser.if_not_exists();
    if if_not_exists || parser.kind() != Kind::LeftParen {
        let index = parser.ident()?;
        name.get_or_insert(index);
    }
    let columns = parser.parens_list(Parser::ident)?;
    Ok(ForeignKey { name, columns, references: references(parser)? })
}

pub(super) fn references(parser: &mut Parser<'_>) -> Result<References> {
    parser.expect("REFERENCES")?;
    let table = parser.table_name()?;
    let columns = match parser.kind() {
        Kind::LeftParen => parser.parens_list(Parser::ident)?,
        _ => Vec::new(),
    };
    let mut references = References { table, columns, on_delete: None, on_update: None };
    if parser.accept("MATCH") {
        parser.expect_any(&["FULL", "PARTIAL", "SIMPLE"])?;
    }
    while parser.is("ON") {
        let update = parser.is_at(1, "UPDATE");
        let said = if update { &mut references.on_update } else { &mut references.on_delete };
        if said.is_some() {
            return parser.error();
        }
        parser.expect("ON")?;
        parser.expect_any(&["UPDATE", "DELETE"])?;
        *said = Some(reference_action(parser)?);
    }
    Ok(references)
}

fn reference_action(parser: &mut Parser<'_>) -> Result<ReferenceAction> {
    Ok(match parser.expect_any(&["RESTRICT", "CASCADE", "SET", "NO"])? {
        "RESTRICT" => ReferenceAction::Restrict,
        "CASCADE" => ReferenceAction::Cascade,
        "NO" => parser.expect("ACTION").map(|()| ReferenceAction::NoAction)?,
        _ => match parser.expect_any(&["NULL", "DEFAULT"])? {
            "NULL" => ReferenceAction::SetNull,
            _ => ReferenceAction::SetDefault,
        },
    })
}

fn unique_or_primary(parser: &mut Parser<'_>) -> Result<IndexDefinition> {
    let name = constraint_name(parser)?;
    if parser.accept_all(&["PRIMARY", "KEY"]) {
        return index_body(parser, IndexKind::Primary, name);
    }
    parser.expect("UNIQUE")?;
    let _ = parser.accept_any(&["INDEX", "KEY"]);
    index_body(parser, IndexKind::Unique, name)
}

/// Name, parts and options of an index.
fn index_body(
    parser: &mut Parser<'_>,
    kind: IndexKind,
    constraint: Option<String>,
) -> Result<IndexDefinition> {
    let if_not_exists = parser.if_not_exists();
    let mut name = constraint;
    if parser.kind() != Kind::LeftParen && !parser.is_any(&["USING", "TYPE"]) {
        let own = parser.ident()?;
        if kind != IndexKind::Primary {
            name = Some(own);
        }
    }
    let mut index = IndexDefinition {
        kind,
        name,
        if_not_exists,
        algorithm: None,
        parts: Vec::new(),
        visible: None,
        comment: None,
        parser: None,
        ignored: Vec::new(),
    };
    index_options(parser, &mut index)?;
    index.parts = parser.parens_list(key_part)?;
    index_options(parser, &mut index)?;
    Ok(index)
}

/// A column with or without a length, or an expression in parentheses.
pub(super) fn key_part(parser: &mut Parser<'_>) -> Result<KeyPart> {
    let source = if parser.kind() == Kind::LeftParen {
        KeySource::Expression(parser.parens(expression::expression)?)
    } else {
        let name = parser.ident()?;
        let prefix_length = match parser.kind() {
            Kind::LeftParen => Some(parser.parens(Parser::integer)?),
            _ => None,
        };
        KeySource::Column { name, prefix_length }
    };
    let descending = parser.accept_any(&["ASC", "DESC"]) == Some("DESC");
    Ok(KeyPart { source, descending })
}

fn index_options(parser: &mut Parser<'_>, index: &mut IndexDefinition) -> Result<()> {
    loop {
        match parser.upper().as_str() {
            "USING" | "TYPE" => {
                parser.at += 1;
                let algorithm = parser.expect_any(&["BTREE", "HASH", "RTREE"])?;
                index.algorithm = Some(algorithm.to_owned());
            }
            "VISIBLE" | "INVISIBLE" => {
                index.visible = Some(parser.is("VISIBLE"));
                parser.at += 1;
            }
            "COMMENT" => {
                parser.at += 1;
                index.comment = Some(parser.string()?);
            }
            "WITH" if parser.is_at(1, "PARSER") => {
                parser.at += 2;
                index.parser = Some(parser.ident()?);
            }
            word @ ("KEY_BLOCK_SIZE" | "ENGINE_ATTRIBUTE" | "SECONDARY_ENGINE_ATTRIBUTE") => {
                parser.at += 1;
                parser.take(Kind::Equal);
                index.ignored.push((word.to_owned(), option_value(parser)?));
            }
            _ => return Ok(()),
        }
    }
}

/// Table options, with or without commas between them.
pub(super) fn table_options(parser: &mut Parser<'_>) -> Result<Vec<TableOption>> {
    let mut options = Vec::new();
    while let Some(option) = table_option(parser)? {
        options.push(option);
        let more = parser.kind() == Kind::Comma && begins_table_option(parser, 1);
        parser.at += usize::from(more);
    }
    Ok(options)
}

/// Whether a table option begins some tokens ahead.
pub(super) fn begins_table_option(parser: &Parser<'_>, ahead: usize) -> bool {
    let word = parser.upper_at(ahead);
    let word = word.as_str();
    OTHER_OPTIONS.contains(&word)
        || matches!(word, "ENGINE" | "TYPE" | "AUTO_INCREMENT" | "COMMENT" | "ROW_FORMAT")
        || matches!(word, "DEFAULT" | "CHARACTER" | "CHAR" | "CHARSET" | "COLLATE")
        || matches!(word, "UNION" | "START" | "TABLESPACE" | "DATA" | "INDEX")
            && is_directory_or_union(parser, ahead)
}

fn is_directory_or_union(parser: &Parser<'_>, ahead: usize) -> bool {
    match parser.upper_at(ahead).as_str() {
        "UNION" => {
            let after = 1 + usize::from(parser.kind_at(ahead + 1) == Kind::Equal);
            parser.kind_at(ahead + after) == Kind::LeftParen
                && !query::begins_query(parser, ahead + after + 1)
        }
        "START" => parser.is_at(ahead + 1, "TRANSACTION"),
        "TABLESPACE" => true,
        _ => parser.is_at(ahead + 1, "DIRECTORY"),
    }
}

fn table_option(parser: &mut Parser<'_>) -> Result<Option<TableOption>> {
    if !begins_table_option(parser, 0) {
        return Ok(None);
    }
    if parser.is("DEFAULT") && !is_any_at(parser, 1, &["CHARACTER", "CHAR", "CHARSET", "COLLATE"]) {
        return Ok(None);
    }
    parser.accept("DEFAULT");
    if parser.charset_words() {
        parser.take(Kind::Equal);
        return Ok(Some(TableOption::Charset(parser.word_or_text()?)));
    }
    let word = parser.upper();
    parser.at += 1;
    if matches!(word.as_str(), "DATA" | "INDEX" | "START") {
        parser.at += 1;
    }
    parser.take(Kind::Equal);
    Ok(Some(match word.as_str() {
        "ENGINE" | "TYPE" => TableOption::Engine(parser.word_or_text()?),
        "AUTO_INCREMENT" => TableOption::AutoIncrement(parser.integer()?),
        "COLLATE" => TableOption::Collation(parser.word_or_text()?),
        "COMMENT" => TableOption::Comment(parser.string()?),
        "ROW_FORMAT" => TableOption::RowFormat(parser.any_ident()?.to_ascii_uppercase()),
        "UNION" => {
            let tables = parser.parens_maybe_empty(Parser::table_name)?;
            TableOption::Other(word, format!("{} tables", tables.len()))
        }
        "START" => TableOption::Other("START TRANSACTION".to_owned(), String::new()),
        _ => {
            let value = option_value(parser)?;
            let storage = word == "TABLESPACE" && parser.accept("STORAGE");
            if storage {
                parser.expect_any(&["DISK", "MEMORY"])?;
            }
            TableOption::Other(word, value)
        }
    }))
}

fn is_any_at(parser: &Parser<'_>, ahead: usize, list: &[&str]) -> bool {
    list.iter().any(|word| parser.is_at(ahead, word))
}

/// A word, string or number as text.
pub(super) fn option_value(parser: &mut Parser<'_>) -> Result<String> {
    match parser.kind() {
        Kind::Integer | Kind::Decimal | Kind::Hex => {
            let token = parser.advance();
            Ok(parser.text_of(token).to_owned())
        }
        _ => parser.word_or_text(),
    }
}

pub(super) fn create_index(parser: &mut Parser<'_>) -> Result<Statement> {
    let kind = match parser.accept_any(&["UNIQUE", "FULLTEXT", "SPATIAL"]) {
        Some("UNIQUE") => IndexKind::Unique,
        Some("FULLTEXT") => IndexKind::Fulltext,
        Some(_) => IndexKind::Spatial,
        None => IndexKind::Plain,
    };
    parser.expect("INDEX")?;
    let if_not_exists = parser.if_not_exists();
    let mut index = IndexDefinition {
        kind,
        name: Some(parser.ident()?),
        if_not_exists,
        algorithm: None,
        parts: Vec::new(),
        visible: None,
        comment: None,
        parser: None,
        ignored: Vec::new(),
    };
    index_options(parser, &mut index)?;
    parser.expect("ON")?;
    let table = parser.table_name()?;
    index.parts = parser.parens_list(key_part)?;
    index_options(parser, &mut index)?;
    algorithm_and_lock(parser)?;
    Ok(Statement::CreateIndex { table, index })
}

/// `ALGORITHM = …` and `LOCK = …`, in upper case.
pub(super) fn algorithm_and_lock(
    parser: &mut Parser<'_>,
) -> Result<(Option<String>, Option<String>)> {
    let (mut algorithm, mut lock) = (None, None);
    while let Some(word) = parser.accept_any(&["ALGORITHM", "LOCK"]) {
        parser.take(Kind::Equal);
        let value = Some(parser.any_ident()?.to_ascii_uppercase());
        if word == "LOCK" { lock = value } else { algorithm = value }
    }
    Ok((algorithm, lock))
}

pub(super) fn drop_table(parser: &mut Parser<'_>) -> Result<Statement> {
    let temporary = parser.accept("TEMPORARY");
    parser.expect_any(&["TABLE", "TABLES"])?;
    let if_exists = parser.if_exists();
    let tables = parser.list(Parser::table_name)?;
    let _ = parser.accept_any(&["RESTRICT", "CASCADE"]);
    Ok(Statement::DropTable { temporary, if_exists, tables })
}

pub(super) fn drop_index(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("INDEX")?;
    let name = index_name(parser)?;
    parser.expect("ON")?;
    let table = parser.table_name()?;
    algorithm_and_lock(parser)?;
    Ok(Statement::DropIndex { table, name })
}

/// An index's name, which may be `PRIMARY`.
pub(super) fn index_name(parser: &mut Parser<'_>) -> Result<String> {
    if parser.accept("PRIMARY") { Ok("PRIMARY".to_owned()) } else { parser.ident() }
}
