//! `PARTITION BY`, and the actions of `ALTER TABLE` on partitions.

use firn_sql_types::error::Result;

use super::super::ast::{
    Expr, PartitionAction, PartitionBound, PartitionDefinition, PartitionMethod, PartitionValues,
    Partitioning,
};
use super::super::lexer::Kind;
use super::{Parser, expression, table};

type NamedOptions = Vec<(String, String)>;

/// `PARTITION BY …`.
pub(super) fn partitioning(parser: &mut Parser<'_>) -> Result<Partitioning> {
    parser.expect_all(&["PARTITION", "BY"])?;
    let method = partition_method(parser)?;
    let count = if parser.accept("PARTITIONS") { Some(parser.integer()?) } else { None };
    let subpartitions = subpartitioning(parser)?;
    let partitions = match parser.kind() == Kind::LeftParen && parser.is_at(1, "PARTITION") {
        true => partition_definitions(parser)?,
        false => Vec::new(),
    };
    Ok(Partitioning { method, count, subpartitions, partitions })
}

fn subpartitioning(parser: &mut Parser<'_>) -> Result<Option<(PartitionMethod, Option<u32>)>> {
    if !parser.accept_all(&["SUBPARTITION", "BY"]) {
        return Ok(None);
    }
    let method = partition_method(parser)?;
    let count = if parser.accept("SUBPARTITIONS") { Some(parser.integer()?) } else { None };
    Ok(Some((method, count)))
}

fn partition_method(parser: &mut Parser<'_>) -> Result<PartitionMethod> {
    let linear = parser.accept("LINEAR");
    let allowed: &[&'static str] =
        if linear { &["HASH", "KEY"] } else { &["HASH", "KEY", "RANGE", "LIST"] };
    Ok(match parser.expect_any(allowed)? {
        "HASH" => {
            PartitionMethod::Hash { linear, expression: parser.parens(expression::expression)? }
        }
        "KEY" => {
            let algorithm = match parser.accept("ALGORITHM") {
                true => {
                    parser.need(Kind::Equal)?;
                    Some(parser.integer()?)
                }
                false => None,
            };
            let columns = parser.parens_maybe_empty(Parser::ident)?;
            PartitionMethod::Key { linear, algorithm, columns }
        }
        "RANGE" if parser.accept("COLUMNS") => {
            PartitionMethod::RangeColumns(parser.parens_list(Parser::ident)?)
        }
        "RANGE" => PartitionMethod::Range(parser.parens(expression::expression)?),
        _ if parser.accept("COLUMNS") => {
            PartitionMethod::ListColumns(parser.parens_list(Parser::ident)?)
        }
        _ => PartitionMethod::List(parser.parens(expression::expression)?),
    })
}

fn partition_definitions(parser: &mut Parser<'_>) -> Result<Vec<PartitionDefinition>> {
    parser.parens_list(|parser| {
        parser.expect("PARTITION")?;
        let name = parser.ident()?;
        let values = partition_values(parser)?;
        let options = partition_options(parser)?;
        let subpartitions = match parser.kind() {
            Kind::LeftParen => parser.parens_list(subpartition)?,
            _ => Vec::new(),
        };
        Ok(PartitionDefinition { name, values, options, subpartitions })
    })
}

fn subpartition(parser: &mut Parser<'_>) -> Result<(String, NamedOptions)> {
    parser.expect("SUBPARTITION")?;
    Ok((parser.ident_or_text()?, partition_options(parser)?))
}

fn partition_values(parser: &mut Parser<'_>) -> Result<PartitionValues> {
    if !parser.accept("VALUES") {
        return Ok(PartitionValues::None);
    }
    if parser.accept("IN") {
        return parser.parens_list(list_value).map(PartitionValues::In);
    }
    parser.expect_all(&["LESS", "THAN"])?;
    if parser.accept("MAXVALUE") {
        return Ok(PartitionValues::LessThan(vec![PartitionBound::MaxValue]));
    }
    let bounds = parser.parens_list(|parser| match parser.accept("MAXVALUE") {
        true => Ok(PartitionBound::MaxValue),
        false => expression::expression(parser).map(PartitionBound::Value),
    })?;
    Ok(PartitionValues::LessThan(bounds))
}

fn list_value(parser: &mut Parser<'_>) -> Result<Vec<Expr>> {
    match parser.kind() {
        Kind::LeftParen => parser.parens_list(expression::expression),
        _ => Ok(vec![expression::expression(parser)?]),
    }
}

fn partition_options(parser: &mut Parser<'_>) -> Result<NamedOptions> {
    let mut options = Vec::new();
    loop {
        parser.accept_all(&["STORAGE"]);
        let word = parser.upper();
        match word.as_str() {
            "ENGINE" | "COMMENT" | "MAX_ROWS" | "MIN_ROWS" | "TABLESPACE" | "NODEGROUP" => {
                parser.at += 1;
            }
            "DATA" | "INDEX" if parser.is_at(1, "DIRECTORY") => parser.at += 2,
            _ => return Ok(options),
        }
        parser.take(Kind::Equal);
        options.push((word, table::option_value(parser)?));
    }
}

/// Partitions by name, or `ALL`, which is an empty list.
fn partitions_or_all(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    if parser.accept("ALL") { Ok(Vec::new()) } else { parser.list(Parser::ident) }
}

/// An action on partitions, if one begins here.
pub(super) fn partition_action(parser: &mut Parser<'_>) -> Result<Option<PartitionAction>> {
    if parser.accept_all(&["REMOVE", "PARTITIONING"]) {
        return Ok(Some(PartitionAction::Remove));
    }
    if !parser.is_at(1, "PARTITION") {
        return Ok(None);
    }
    let word = parser.upper();
    let known = matches!(
        word.as_str(),
        "ADD"
            | "COALESCE"
            | "DROP"
            | "REORGANIZE"
            | "EXCHANGE"
            | "TRUNCATE"
            | "ANALYZE"
            | "CHECK"
            | "OPTIMIZE"
            | "REBUILD"
            | "REPAIR"
            | "DISCARD"
            | "IMPORT"
    );
    if !known {
        return Ok(None);
    }
    parser.at += 2;
    let _ = parser.accept_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
    Ok(Some(match word.as_str() {
        "ADD" if parser.accept("PARTITIONS") => PartitionAction::AddCount(parser.integer()?),
        "ADD" => PartitionAction::Add(partition_definitions(parser)?),
        "COALESCE" => PartitionAction::Coalesce(parser.integer()?),
        "DROP" => {
            parser.if_exists();
            PartitionAction::Drop(parser.list(Parser::ident)?)
        }
        "REORGANIZE" => reorganize(parser)?,
        "EXCHANGE" => exchange(parser)?,
        _ => maintain_partitions(parser, word)?,
    }))
}

fn reorganize(parser: &mut Parser<'_>) -> Result<PartitionAction> {
    let from = match parser.is_ident_at(0) {
        true => parser.list(Parser::ident)?,
        false => return Ok(PartitionAction::Reorganize { from: Vec::new(), into: Vec::new() }),
    };
    parser.expect("INTO")?;
    Ok(PartitionAction::Reorganize { from, into: partition_definitions(parser)? })
}

fn exchange(parser: &mut Parser<'_>) -> Result<PartitionAction> {
    let partition = parser.ident()?;
    parser.expect_all(&["WITH", "TABLE"])?;
    let table = parser.table_name()?;
    let without = parser.accept_all(&["WITHOUT", "VALIDATION"]);
    if !without {
        parser.accept_all(&["WITH", "VALIDATION"]);
    }
    Ok(PartitionAction::Exchange { partition, table, validate: !without })
}

fn maintain_partitions(parser: &mut Parser<'_>, operation: String) -> Result<PartitionAction> {
    let partitions = partitions_or_all(parser)?;
    if matches!(operation.as_str(), "DISCARD" | "IMPORT") {
        parser.expect("TABLESPACE")?;
    }
    while parser.accept_any(&["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED"]).is_some() {}
    Ok(PartitionAction::Maintain { operation, partitions })
}
