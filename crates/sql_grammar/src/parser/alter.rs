//! `ALTER TABLE`.

use firn_sql_types::error::Result;

use super::super::ast::{
    AlterAction, AlterTable, ColumnDefinition, ColumnPosition, Statement, TableElement, TableOption,
};
use super::super::lexer::Kind;
use super::{Parser, column, dml, partition, table};

pub(super) fn alter_table(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("TABLE")?;
    let table = parser.table_name()?;
    let mut alter = AlterTable { table, actions: Vec::new(), algorithm: None, lock: None };
    loop {
        alter_item(parser, &mut alter)?;
        let comma = parser.take(Kind::Comma);
        let bare_partition =
            parser.are(&["PARTITION", "BY"]) || parser.are(&["REMOVE", "PARTITIONING"]);
        if !comma && !bare_partition {
            break;
        }
    }
    Ok(Statement::AlterTable(Box::new(alter)))
}

fn alter_item(parser: &mut Parser<'_>, alter: &mut AlterTable) -> Result<()> {
    let at_end = matches!(parser.kind(), Kind::End | Kind::Semicolon);
    if at_end && alter.actions.is_empty() {
        return Ok(());
    }
    if parser.is_any(&["ALGORITHM", "LOCK"]) {
        let (algorithm, lock) = table::algorithm_and_lock(parser)?;
        alter.algorithm = algorithm.or(alter.algorithm.take());
        alter.lock = lock.or(alter.lock.take());
        return Ok(());
    }
    if let Some(action) = partition::partition_action(parser)? {
        alter.actions.push(AlterAction::Partitions(action));
        return Ok(());
    }
    alter_action(parser, &mut alter.actions)
}

fn alter_action(parser: &mut Parser<'_>, actions: &mut Vec<AlterAction>) -> Result<()> {
    let action = match parser.upper().as_str() {
        "ADD" => return add(parser, actions),
        "DROP" => drop_part(parser)?,
        "MODIFY" => {
            parser.at += 1;
            parser.accept("COLUMN");
            parser.if_exists();
            let column = changed_column(parser)?;
            AlterAction::ModifyColumn { column, position: column_position(parser)? }
        }
        "CHANGE" => {
            parser.at += 1;
            parser.accept("COLUMN");
            parser.if_exists();
            let name = parser.ident()?;
            let column = changed_column(parser)?;
            AlterAction::ChangeColumn { name, column, position: column_position(parser)? }
        }
        "ALTER" => alter_part(parser)?,
        "RENAME" => rename_part(parser)?,
        "CONVERT" => convert_charset(parser)?,
        "ORDER" => order_rows(parser)?,
        "PARTITION" => AlterAction::Partition(partition::partitioning(parser)?),
        "FORCE" => {
            parser.at += 1;
            AlterAction::Force
        }
        "DISABLE" | "ENABLE" => {
            let enable = parser.accept_any(&["DISABLE", "ENABLE"]) == Some("ENABLE");
            parser.expect("KEYS")?;
            AlterAction::EnableKeys(enable)
        }
        "DISCARD" | "IMPORT" => {
            let import = parser.accept_any(&["DISCARD", "IMPORT"]) == Some("IMPORT");
            parser.expect("TABLESPACE")?;
            AlterAction::Tablespace { import }
        }
        "WITH" | "WITHOUT" => {
            let with = parser.accept_any(&["WITH", "WITHOUT"]) == Some("WITH");
            parser.expect("VALIDATION")?;
            AlterAction::Validation(with)
        }
        _ => alter_options(parser)?,
    };
    actions.push(action);
    Ok(())
}

fn alter_options(parser: &mut Parser<'_>) -> Result<AlterAction> {
    let options: Vec<TableOption> = table::table_options(parser)?;
    if options.is_empty() { parser.error() } else { Ok(AlterAction::Options(options)) }
}

/// `ADD` of a column, of several in parentheses, or of an index or constraint.
fn add(parser: &mut Parser<'_>, actions: &mut Vec<AlterAction>) -> Result<()> {
    parser.expect("ADD")?;
    if let Some(constraint) = table::table_constraint(parser)? {
        actions.push(added(constraint));
        return Ok(());
    }
    parser.accept("COLUMN");
    parser.if_not_exists();
    if parser.kind() == Kind::LeftParen {
        let elements = parser.parens_list(|parser| match table::table_constraint(parser)? {
            Some(constraint) => Ok(constraint),
            None => column::column_definition(parser).map(TableElement::Column),
        })?;
        actions.extend(elements.into_iter().map(added));
        return Ok(());
    }
    let column = column::column_definition(parser)?;
    let position = column_position(parser)?;
    actions.push(AlterAction::AddColumn { column, position });
    Ok(())
}

/// An existing column: its new definition cannot contain a foreign key.
fn changed_column(parser: &mut Parser<'_>) -> Result<ColumnDefinition> {
    let column = column::column_definition(parser)?;
    if column.references.is_some() { parser.error() } else { Ok(column) }
}

fn column_position(parser: &mut Parser<'_>) -> Result<Option<ColumnPosition>> {
    if parser.accept("FIRST") {
        return Ok(Some(ColumnPosition::First));
    }
    if parser.accept("AFTER") {
        return Ok(Some(ColumnPosition::After(parser.ident()?)));
    }
    Ok(None)
}

fn drop_part(parser: &mut Parser<'_>) -> Result<AlterAction> {
    parser.expect("DROP")?;
    Ok(match parser.upper().as_str() {
        "PRIMARY" => {
            parser.expect_all(&["PRIMARY", "KEY"])?;
            AlterAction::DropPrimaryKey
        }
        "FOREIGN" => {
            parser.expect_all(&["FOREIGN", "KEY"])?;
            parser.if_exists();
            AlterAction::DropForeignKey(parser.ident()?)
        }
        "INDEX" | "KEY" => {
            parser.at += 1;
            parser.if_exists();
            AlterAction::DropIndex(table::index_name(parser)?)
        }
        "CHECK" => {
            parser.at += 1;
            AlterAction::DropCheck(parser.ident()?)
        }
        "CONSTRAINT" => {
            parser.at += 1;
            parser.if_exists();
            AlterAction::DropConstraint(parser.ident()?)
        }
        _ => {
            parser.accept("COLUMN");
            parser.if_exists();
            let column = parser.ident()?;
            let _ = parser.accept_any(&["RESTRICT", "CASCADE"]);
            AlterAction::DropColumn(column)
        }
    })
}

fn alter_part(parser: &mut Parser<'_>) -> Result<AlterAction> {
    parser.expect("ALTER")?;
    if parser.accept("INDEX") {
        let index = table::index_name(parser)?;
        let visible = parser.expect_any(&["VISIBLE", "INVISIBLE"])? == "VISIBLE";
        return Ok(AlterAction::SetIndexVisible { index, visible });
    }
    if parser.accept_any(&["CHECK", "CONSTRAINT"]).is_some() {
        let name = parser.ident()?;
        let enforced = !parser.accept("NOT");
        parser.expect("ENFORCED")?;
        return Ok(AlterAction::SetCheckEnforced { name, enforced });
    }
    parser.accept("COLUMN");
    let column = parser.ident()?;
    if parser.accept_all(&["DROP", "DEFAULT"]) {
        return Ok(AlterAction::DropDefault(column));
    }
    parser.expect("SET")?;
    if parser.accept("DEFAULT") {
        return Ok(AlterAction::SetDefault { column, default: column::column_default(parser)? });
    }
    let visible = parser.expect_any(&["VISIBLE", "INVISIBLE"])? == "VISIBLE";
    Ok(AlterAction::SetColumnVisible { column, visible })
}

fn rename_part(parser: &mut Parser<'_>) -> Result<AlterAction> {
    parser.expect("RENAME")?;
    if parser.accept("COLUMN") {
        let from = parser.ident()?;
        parser.expect("TO")?;
        return Ok(AlterAction::RenameColumn { from, to: parser.ident()? });
    }
    if parser.accept_any(&["INDEX", "KEY"]).is_some() {
        let from = parser.ident()?;
        parser.expect("TO")?;
        return Ok(AlterAction::RenameIndex { from, to: parser.ident()? });
    }
    if parser.accept_any(&["TO", "AS"]).is_none() {
        parser.take(Kind::Equal);
    }
    Ok(AlterAction::RenameTable(parser.table_name()?))
}

fn convert_charset(parser: &mut Parser<'_>) -> Result<AlterAction> {
    parser.expect_all(&["CONVERT", "TO"])?;
    if !parser.charset_words() {
        return parser.error();
    }
    parser.take(Kind::Equal);
    let charset = if parser.accept("DEFAULT") { None } else { Some(parser.word_or_text()?) };
    let collation = match parser.accept("COLLATE") {
        true => {
            parser.take(Kind::Equal);
            Some(parser.word_or_text()?)
        }
        false => None,
    };
    Ok(AlterAction::ConvertCharset { charset, collation })
}

fn order_rows(parser: &mut Parser<'_>) -> Result<AlterAction> {
    parser.expect_all(&["ORDER", "BY"])?;
    let mut columns = Vec::new();
    loop {
        let column = dml::column_name(parser)?.column;
        columns.push((column, parser.accept_any(&["ASC", "DESC"]) == Some("DESC")));
        let more = parser.kind() == Kind::Comma && parser.is_ident_at(1);
        if !more {
            return Ok(AlterAction::OrderBy(columns));
        }
        parser.at += 1;
    }
}

fn added(element: TableElement) -> AlterAction {
    match element {
        TableElement::Column(column) => AlterAction::AddColumn { column, position: None },
        TableElement::Index(index) => AlterAction::AddIndex(index),
        TableElement::ForeignKey(key) => AlterAction::AddForeignKey(key),
        TableElement::Check(check) => AlterAction::AddCheck(check),
    }
}
