//! `ALTER TABLE`.

use firn_sql_types::error::Result;

use super::super::ast::{
    AlterAction, AlterTable, ColumnDefinition, ColumnPosition, Statement, TableElement, TableOption,
};
use super::super::lexer::Kind;
use super::Parser;

impl Parser<'_> {
    pub(super) fn alter_table(&mut self) -> Result<Statement> {
        self.expect("TABLE")?;
        let table = self.table_name()?;
        let mut alter = AlterTable { table, actions: Vec::new(), algorithm: None, lock: None };
        loop {
            self.alter_item(&mut alter)?;
            let comma = self.take(Kind::Comma);
            let bare_partition =
                self.are(&["PARTITION", "BY"]) || self.are(&["REMOVE", "PARTITIONING"]);
            if !comma && !bare_partition {
                break;
            }
        }
        Ok(Statement::AlterTable(Box::new(alter)))
    }

    fn alter_item(&mut self, alter: &mut AlterTable) -> Result<()> {
        let at_end = matches!(self.kind(), Kind::End | Kind::Semicolon);
        if at_end && alter.actions.is_empty() {
            return Ok(());
        }
        if self.is_any(&["ALGORITHM", "LOCK"]) {
            let (algorithm, lock) = self.algorithm_and_lock()?;
            alter.algorithm = algorithm.or(alter.algorithm.take());
            alter.lock = lock.or(alter.lock.take());
            return Ok(());
        }
        if let Some(action) = self.partition_action()? {
            alter.actions.push(AlterAction::Partitions(action));
            return Ok(());
        }
        self.alter_action(&mut alter.actions)
    }

    fn alter_action(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        let action = match self.upper().as_str() {
            "ADD" => return self.add(actions),
            "DROP" => self.drop_part()?,
            "MODIFY" => {
                self.at += 1;
                self.accept("COLUMN");
                self.if_exists();
                let column = self.changed_column()?;
                AlterAction::ModifyColumn { column, position: self.column_position()? }
            }
            "CHANGE" => {
                self.at += 1;
                self.accept("COLUMN");
                self.if_exists();
                let name = self.ident()?;
                let column = self.changed_column()?;
                AlterAction::ChangeColumn { name, column, position: self.column_position()? }
            }
            "ALTER" => self.alter_part()?,
            "RENAME" => self.rename_part()?,
            "CONVERT" => self.convert_charset()?,
            "ORDER" => self.order_rows()?,
            "PARTITION" => AlterAction::Partition(self.partitioning()?),
            "FORCE" => {
                self.at += 1;
                AlterAction::Force
            }
            "DISABLE" | "ENABLE" => {
                let enable = self.accept_any(&["DISABLE", "ENABLE"]) == Some("ENABLE");
                self.expect("KEYS")?;
                AlterAction::EnableKeys(enable)
            }
            "DISCARD" | "IMPORT" => {
                let import = self.accept_any(&["DISCARD", "IMPORT"]) == Some("IMPORT");
                self.expect("TABLESPACE")?;
                AlterAction::Tablespace { import }
            }
            "WITH" | "WITHOUT" => {
                let with = self.accept_any(&["WITH", "WITHOUT"]) == Some("WITH");
                self.expect("VALIDATION")?;
                AlterAction::Validation(with)
            }
            _ => self.alter_options()?,
        };
        actions.push(action);
        Ok(())
    }

    fn alter_options(&mut self) -> Result<AlterAction> {
        let options: Vec<TableOption> = self.table_options()?;
        if options.is_empty() { self.error() } else { Ok(AlterAction::Options(options)) }
    }

    /// `ADD` of a column, of several in parentheses, or of an index or constraint.
    fn add(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        self.expect("ADD")?;
        if let Some(constraint) = self.table_constraint()? {
            actions.push(added(constraint));
            return Ok(());
        }
        self.accept("COLUMN");
        self.if_not_exists();
        if self.kind() == Kind::LeftParen {
            let elements = self.parens_list(|p| match p.table_constraint()? {
                Some(constraint) => Ok(constraint),
                None => p.column_definition().map(TableElement::Column),
            })?;
            actions.extend(elements.into_iter().map(added));
            return Ok(());
        }
        let column = self.column_definition()?;
        let position = self.column_position()?;
        actions.push(AlterAction::AddColumn { column, position });
        Ok(())
    }

    /// An existing column: its new definition cannot contain a foreign key.
    fn changed_column(&mut self) -> Result<ColumnDefinition> {
        let column = self.column_definition()?;
        if column.references.is_some() { self.error() } else { Ok(column) }
    }

    fn column_position(&mut self) -> Result<Option<ColumnPosition>> {
        if self.accept("FIRST") {
            return Ok(Some(ColumnPosition::First));
        }
        if self.accept("AFTER") {
            return Ok(Some(ColumnPosition::After(self.ident()?)));
        }
        Ok(None)
    }

    fn drop_part(&mut self) -> Result<AlterAction> {
        self.expect("DROP")?;
        Ok(match self.upper().as_str() {
            "PRIMARY" => {
                self.expect_all(&["PRIMARY", "KEY"])?;
                AlterAction::DropPrimaryKey
            }
            "FOREIGN" => {
                self.expect_all(&["FOREIGN", "KEY"])?;
                self.if_exists();
                AlterAction::DropForeignKey(self.ident()?)
            }
            "INDEX" | "KEY" => {
                self.at += 1;
                self.if_exists();
                AlterAction::DropIndex(self.index_name()?)
            }
            "CHECK" => {
                self.at += 1;
                AlterAction::DropCheck(self.ident()?)
            }
            "CONSTRAINT" => {
                self.at += 1;
                self.if_exists();
                AlterAction::DropConstraint(self.ident()?)
            }
            _ => {
                self.accept("COLUMN");
                self.if_exists();
                let column = self.ident()?;
                let _ = self.accept_any(&["RESTRICT", "CASCADE"]);
                AlterAction::DropColumn(column)
            }
        })
    }

    fn alter_part(&mut self) -> Result<AlterAction> {
        self.expect("ALTER")?;
        if self.accept("INDEX") {
            let index = self.index_name()?;
            let visible = self.expect_any(&["VISIBLE", "INVISIBLE"])? == "VISIBLE";
            return Ok(AlterAction::SetIndexVisible { index, visible });
        }
        if self.accept_any(&["CHECK", "CONSTRAINT"]).is_some() {
            let name = self.ident()?;
            let enforced = !self.accept("NOT");
            self.expect("ENFORCED")?;
            return Ok(AlterAction::SetCheckEnforced { name, enforced });
        }
        self.accept("COLUMN");
        let column = self.ident()?;
        if self.accept_all(&["DROP", "DEFAULT"]) {
            return Ok(AlterAction::DropDefault(column));
        }
        self.expect("SET")?;
        if self.accept("DEFAULT") {
            return Ok(AlterAction::SetDefault { column, default: self.column_default()? });
        }
        let visible = self.expect_any(&["VISIBLE", "INVISIBLE"])? == "VISIBLE";
        Ok(AlterAction::SetColumnVisible { column, visible })
    }

    fn rename_part(&mut self) -> Result<AlterAction> {
        self.expect("RENAME")?;
        if self.accept("COLUMN") {
            let from = self.ident()?;
            self.expect("TO")?;
            return Ok(AlterAction::RenameColumn { from, to: self.ident()? });
        }
        if self.accept_any(&["INDEX", "KEY"]).is_some() {
            let from = self.ident()?;
            self.expect("TO")?;
            return Ok(AlterAction::RenameIndex { from, to: self.ident()? });
        }
        if self.accept_any(&["TO", "AS"]).is_none() {
            self.take(Kind::Equal);
        }
        Ok(AlterAction::RenameTable(self.table_name()?))
    }

    fn convert_charset(&mut self) -> Result<AlterAction> {
        self.expect_all(&["CONVERT", "TO"])?;
        if !self.charset_words() {
            return self.error();
        }
        self.take(Kind::Equal);
        let charset = if self.accept("DEFAULT") { None } else { Some(self.word_or_text()?) };
        let collation = match self.accept("COLLATE") {
            true => {
                self.take(Kind::Equal);
                Some(self.word_or_text()?)
            }
            false => None,
        };
        Ok(AlterAction::ConvertCharset { charset, collation })
    }

    fn order_rows(&mut self) -> Result<AlterAction> {
        self.expect_all(&["ORDER", "BY"])?;
        let mut columns = Vec::new();
        loop {
            let column = self.column_name()?.column;
            columns.push((column, self.accept_any(&["ASC", "DESC"]) == Some("DESC")));
            let more = self.kind() == Kind::Comma && self.is_ident_at(1);
            if !more {
                return Ok(AlterAction::OrderBy(columns));
            }
            self.at += 1;
        }
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
