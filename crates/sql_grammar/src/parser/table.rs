//! `CREATE TABLE`: indexes, constraints, options; `CREATE INDEX`, `DROP TABLE`, `DROP INDEX`.

use firn_sql_types::error::Result;

use super::super::ast::{
    Check, CreateTable, ForeignKey, IndexDefinition, IndexKind, KeyPart, KeySource, OnConflict,
    ReferenceAction, References, Statement, TableElement, TableOption, TableSource,
};
use super::super::lexer::Kind;
use super::Parser;

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

impl Parser<'_> {
    pub(super) fn create_table(&mut self) -> Result<Statement> {
        let temporary = self.accept("TEMPORARY");
        self.expect("TABLE")?;
        let if_not_exists = self.if_not_exists();
        let table = self.table_name()?;
        if self.is("LIKE") || (self.kind() == Kind::LeftParen && self.is_at(1, "LIKE")) {
            let parens = self.take(Kind::LeftParen);
            self.expect("LIKE")?;
            let like = self.table_name()?;
            if parens {
                self.need(Kind::RightParen)?;
            }
            return Ok(Statement::CreateTableLike { temporary, if_not_exists, table, like });
        }
        let elements = match self.kind() == Kind::LeftParen && !self.begins_query_in_parens() {
            true => self.parens_list(Self::table_element)?,
            false => Vec::new(),
        };
        let options = self.table_options()?;
        let partitioning = match self.are(&["PARTITION", "BY"]) {
            true => Some(self.partitioning()?),
            false => None,
        };
        let source = self.table_source()?;
        if elements.is_empty() && source.is_none() {
            return self.error();
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

    fn table_source(&mut self) -> Result<Option<TableSource>> {
        let on_conflict = self.on_conflict();
        let said = self.accept("AS") || on_conflict != OnConflict::Refuse;
        let follows = self.begins_query(0)
            || (self.kind() == Kind::LeftParen && self.begins_query_in_parens());
        if !said && !follows {
            return Ok(None);
        }
        Ok(Some(TableSource { on_conflict, query: *self.query()? }))
    }

    fn table_element(&mut self) -> Result<TableElement> {
        if let Some(constraint) = self.table_constraint()? {
            return Ok(constraint);
        }
        self.column_definition().map(TableElement::Column)
    }

    /// An index, key or constraint; `None` if a column is here.
    pub(super) fn table_constraint(&mut self) -> Result<Option<TableElement>> {
        let ahead = match self.is("CONSTRAINT") {
            true if self.begins_constraint(1) => 1,
            true => 2,
            false => 0,
        };
        Ok(Some(match self.upper_at(ahead).as_str() {
            "CHECK" => TableElement::Check(self.check()?),
            "FOREIGN" => TableElement::ForeignKey(self.foreign_key()?),
            "PRIMARY" | "UNIQUE" => TableElement::Index(self.unique_or_primary()?),
            _ if ahead > 0 => {
                self.at += ahead;
                return self.error();
            }
            "INDEX" | "KEY" => {
                self.at += 1;
                TableElement::Index(self.index_body(IndexKind::Plain, None)?)
            }
            "FULLTEXT" | "SPATIAL" => {
                let kind = match self.expect_any(&["FULLTEXT", "SPATIAL"])? {
                    "FULLTEXT" => IndexKind::Fulltext,
                    _ => IndexKind::Spatial,
                };
                let _ = self.accept_any(&["INDEX", "KEY"]);
                TableElement::Index(self.index_body(kind, None)?)
            }
            _ => return Ok(None),
        }))
    }

    fn begins_constraint(&self, ahead: usize) -> bool {
        ["CHECK", "FOREIGN", "PRIMARY", "UNIQUE"].iter().any(|word| self.is_at(ahead, word))
    }

    /// `CONSTRAINT [name]`, if present.
    fn constraint_name(&mut self) -> Result<Option<String>> {
        if !self.accept("CONSTRAINT") || self.begins_constraint(0) {
            return Ok(None);
        }
        self.ident().map(Some)
    }

    /// `[CONSTRAINT name] CHECK (…) [[NOT] ENFORCED]`.
    pub(super) fn check(&mut self) -> Result<Check> {
        let name = self.constraint_name()?;
        self.expect("CHECK")?;
        let expression = self.parens(Self::expression)?;
        let refused = self.accept_all(&["NOT", "ENFORCED"]);
        if !refused {
            self.accept("ENFORCED");
        }
        Ok(Check { name, expression, enforced: !refused })
    }

    fn foreign_key(&mut self) -> Result<ForeignKey> {
        let mut name = self.constraint_name()?;
        self.expect_all(&["FOREIGN", "KEY"])?;
        let if_not_exists = self.if_not_exists();
        if if_not_exists || self.kind() != Kind::LeftParen {
            let index = self.ident()?;
            name.get_or_insert(index);
        }
        let columns = self.parens_list(Self::ident)?;
        Ok(ForeignKey { name, columns, references: self.references()? })
    }

    /// `REFERENCES …`.
    pub(super) fn references(&mut self) -> Result<References> {
        self.expect("REFERENCES")?;
        let table = self.table_name()?;
        let columns = match self.kind() {
            Kind::LeftParen => self.parens_list(Self::ident)?,
            _ => Vec::new(),
        };
        let mut references = References { table, columns, on_delete: None, on_update: None };
        if self.accept("MATCH") {
            self.expect_any(&["FULL", "PARTIAL", "SIMPLE"])?;
        }
        while self.is("ON") {
            let update = self.is_at(1, "UPDATE");
            let said = if update { &mut references.on_update } else { &mut references.on_delete };
            if said.is_some() {
                return self.error();
            }
            self.expect("ON")?;
            self.expect_any(&["UPDATE", "DELETE"])?;
            *said = Some(self.reference_action()?);
        }
        Ok(references)
    }

    fn reference_action(&mut self) -> Result<ReferenceAction> {
        Ok(match self.expect_any(&["RESTRICT", "CASCADE", "SET", "NO"])? {
            "RESTRICT" => ReferenceAction::Restrict,
            "CASCADE" => ReferenceAction::Cascade,
            "NO" => self.expect("ACTION").map(|()| ReferenceAction::NoAction)?,
            _ => match self.expect_any(&["NULL", "DEFAULT"])? {
                "NULL" => ReferenceAction::SetNull,
                _ => ReferenceAction::SetDefault,
            },
        })
    }

    fn unique_or_primary(&mut self) -> Result<IndexDefinition> {
        let name = self.constraint_name()?;
        if self.accept_all(&["PRIMARY", "KEY"]) {
            return self.index_body(IndexKind::Primary, name);
        }
        self.expect("UNIQUE")?;
        let _ = self.accept_any(&["INDEX", "KEY"]);
        self.index_body(IndexKind::Unique, name)
    }

    /// Name, parts and options of an index.
    fn index_body(
        &mut self,
        kind: IndexKind,
        constraint: Option<String>,
    ) -> Result<IndexDefinition> {
        let if_not_exists = self.if_not_exists();
        let mut name = constraint;
        if self.kind() != Kind::LeftParen && !self.is_any(&["USING", "TYPE"]) {
            let own = self.ident()?;
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
        self.index_options(&mut index)?;
        index.parts = self.parens_list(Self::key_part)?;
        self.index_options(&mut index)?;
        Ok(index)
    }

    /// A column with or without a length, or an expression in parentheses.
    pub(super) fn key_part(&mut self) -> Result<KeyPart> {
        let source = if self.kind() == Kind::LeftParen {
            KeySource::Expression(self.parens(Self::expression)?)
        } else {
            let name = self.ident()?;
            let prefix_length = match self.kind() {
                Kind::LeftParen => Some(self.parens(Self::integer)?),
                _ => None,
            };
            KeySource::Column { name, prefix_length }
        };
        let descending = self.accept_any(&["ASC", "DESC"]) == Some("DESC");
        Ok(KeyPart { source, descending })
    }

    fn index_options(&mut self, index: &mut IndexDefinition) -> Result<()> {
        loop {
            match self.upper().as_str() {
                "USING" | "TYPE" => {
                    self.at += 1;
                    let algorithm = self.expect_any(&["BTREE", "HASH", "RTREE"])?;
                    index.algorithm = Some(algorithm.to_owned());
                }
                "VISIBLE" | "INVISIBLE" => {
                    index.visible = Some(self.is("VISIBLE"));
                    self.at += 1;
                }
                "COMMENT" => {
                    self.at += 1;
                    index.comment = Some(self.string()?);
                }
                "WITH" if self.is_at(1, "PARSER") => {
                    self.at += 2;
                    index.parser = Some(self.ident()?);
                }
                word @ ("KEY_BLOCK_SIZE" | "ENGINE_ATTRIBUTE" | "SECONDARY_ENGINE_ATTRIBUTE") => {
                    self.at += 1;
                    self.take(Kind::Equal);
                    index.ignored.push((word.to_owned(), self.option_value()?));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Table options, with or without commas between them.
    pub(super) fn table_options(&mut self) -> Result<Vec<TableOption>> {
        let mut options = Vec::new();
        while let Some(option) = self.table_option()? {
            options.push(option);
            let more = self.kind() == Kind::Comma && self.begins_table_option(1);
            self.at += usize::from(more);
        }
        Ok(options)
    }

    /// Whether a table option begins some tokens ahead.
    pub(super) fn begins_table_option(&self, ahead: usize) -> bool {
        let word = self.upper_at(ahead);
        let word = word.as_str();
        OTHER_OPTIONS.contains(&word)
            || matches!(word, "ENGINE" | "TYPE" | "AUTO_INCREMENT" | "COMMENT" | "ROW_FORMAT")
            || matches!(word, "DEFAULT" | "CHARACTER" | "CHAR" | "CHARSET" | "COLLATE")
            || matches!(word, "UNION" | "START" | "TABLESPACE" | "DATA" | "INDEX")
                && self.is_directory_or_union(ahead)
    }

    fn is_directory_or_union(&self, ahead: usize) -> bool {
        match self.upper_at(ahead).as_str() {
            "UNION" => {
                let after = 1 + usize::from(self.kind_at(ahead + 1) == Kind::Equal);
                self.kind_at(ahead + after) == Kind::LeftParen
                    && !self.begins_query(ahead + after + 1)
            }
            "START" => self.is_at(ahead + 1, "TRANSACTION"),
            "TABLESPACE" => true,
            _ => self.is_at(ahead + 1, "DIRECTORY"),
        }
    }

    fn table_option(&mut self) -> Result<Option<TableOption>> {
        if !self.begins_table_option(0) {
            return Ok(None);
        }
        if self.is("DEFAULT") && !self.is_any_at(1, &["CHARACTER", "CHAR", "CHARSET", "COLLATE"]) {
            return Ok(None);
        }
        self.accept("DEFAULT");
        if self.charset_words() {
            self.take(Kind::Equal);
            return Ok(Some(TableOption::Charset(self.word_or_text()?)));
        }
        let word = self.upper();
        self.at += 1;
        if matches!(word.as_str(), "DATA" | "INDEX" | "START") {
            self.at += 1;
        }
        self.take(Kind::Equal);
        Ok(Some(match word.as_str() {
            "ENGINE" | "TYPE" => TableOption::Engine(self.word_or_text()?),
            "AUTO_INCREMENT" => TableOption::AutoIncrement(self.integer()?),
            "COLLATE" => TableOption::Collation(self.word_or_text()?),
            "COMMENT" => TableOption::Comment(self.string()?),
            "ROW_FORMAT" => TableOption::RowFormat(self.any_ident()?.to_ascii_uppercase()),
            "UNION" => {
                let tables = self.parens_maybe_empty(Self::table_name)?;
                TableOption::Other(word, format!("{} tables", tables.len()))
            }
            "START" => TableOption::Other("START TRANSACTION".to_owned(), String::new()),
            _ => {
                let value = self.option_value()?;
                let storage = word == "TABLESPACE" && self.accept("STORAGE");
                if storage {
                    self.expect_any(&["DISK", "MEMORY"])?;
                }
                TableOption::Other(word, value)
            }
        }))
    }

    fn is_any_at(&self, ahead: usize, list: &[&str]) -> bool {
        list.iter().any(|word| self.is_at(ahead, word))
    }

    /// A word, string or number as text.
    pub(super) fn option_value(&mut self) -> Result<String> {
        match self.kind() {
            Kind::Integer | Kind::Decimal | Kind::Hex => {
                let token = self.advance();
                Ok(self.text_of(token).to_owned())
            }
            _ => self.word_or_text(),
        }
    }

    pub(super) fn create_index(&mut self) -> Result<Statement> {
        let kind = match self.accept_any(&["UNIQUE", "FULLTEXT", "SPATIAL"]) {
            Some("UNIQUE") => IndexKind::Unique,
            Some("FULLTEXT") => IndexKind::Fulltext,
            Some(_) => IndexKind::Spatial,
            None => IndexKind::Plain,
        };
        self.expect("INDEX")?;
        let if_not_exists = self.if_not_exists();
        let mut index = IndexDefinition {
            kind,
            name: Some(self.ident()?),
            if_not_exists,
            algorithm: None,
            parts: Vec::new(),
            visible: None,
            comment: None,
            parser: None,
            ignored: Vec::new(),
        };
        self.index_options(&mut index)?;
        self.expect("ON")?;
        let table = self.table_name()?;
        index.parts = self.parens_list(Self::key_part)?;
        self.index_options(&mut index)?;
        self.algorithm_and_lock()?;
        Ok(Statement::CreateIndex { table, index })
    }

    /// `ALGORITHM = …` and `LOCK = …`, in upper case.
    pub(super) fn algorithm_and_lock(&mut self) -> Result<(Option<String>, Option<String>)> {
        let (mut algorithm, mut lock) = (None, None);
        while let Some(word) = self.accept_any(&["ALGORITHM", "LOCK"]) {
            self.take(Kind::Equal);
            let value = Some(self.any_ident()?.to_ascii_uppercase());
            if word == "LOCK" { lock = value } else { algorithm = value }
        }
        Ok((algorithm, lock))
    }

    pub(super) fn drop_table(&mut self) -> Result<Statement> {
        let temporary = self.accept("TEMPORARY");
        self.expect_any(&["TABLE", "TABLES"])?;
        let if_exists = self.if_exists();
        let tables = self.list(Self::table_name)?;
        let _ = self.accept_any(&["RESTRICT", "CASCADE"]);
        Ok(Statement::DropTable { temporary, if_exists, tables })
    }

    pub(super) fn drop_index(&mut self) -> Result<Statement> {
        self.expect("INDEX")?;
        let name = self.index_name()?;
        self.expect("ON")?;
        let table = self.table_name()?;
        self.algorithm_and_lock()?;
        Ok(Statement::DropIndex { table, name })
    }

    /// An index's name, which may be `PRIMARY`.
    pub(super) fn index_name(&mut self) -> Result<String> {
        if self.accept("PRIMARY") { Ok("PRIMARY".to_owned()) } else { self.ident() }
    }
}
