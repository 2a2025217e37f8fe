//! `INSERT`, `REPLACE`, `UPDATE`, `DELETE`, `LOAD DATA`, `CALL`, `HANDLER`.

use firn_sql_types::error::Result;

use super::super::ast::{
    Assignment, Call, ColumnName, Delete, FileFormat, Handler, HandlerPosition, HandlerRead,
    Insert, InsertSource, LoadData, LoadTarget, Priority, RowAlias, Statement, TableName,
    TableWithJoins, Update, ValueOrDefault, With,
};
use super::super::lexer::Kind;
use super::Parser;
use super::expression::comparison;

impl Parser<'_> {
    pub(super) fn insert(&mut self) -> Result<Statement> {
        let replace = self.expect_any(&["INSERT", "REPLACE"])? == "REPLACE";
        let hints = self.hints();
        let priority = self.priority();
        let ignore = !replace && self.accept("IGNORE");
        self.accept("INTO");
        let table = self.table_name()?;
        let partitions = self.partition_names()?;
        let (columns, source) = self.insert_rows()?;
        let row_alias = match (&source, replace) {
            (InsertSource::Values(_), false) => self.row_alias()?,
            _ => None,
        };
        let on_duplicate = match !replace && self.accept("ON") {
            true => {
                self.expect_all(&["DUPLICATE", "KEY", "UPDATE"])?;
                self.list(Self::assignment)?
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

    fn priority(&mut self) -> Priority {
        match self.accept_any(&["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "CONCURRENT"]) {
            Some("LOW_PRIORITY") => Priority::Low,
            Some("HIGH_PRIORITY") => Priority::High,
            Some("DELAYED") => Priority::Delayed,
            Some(_) => Priority::Concurrent,
            None => Priority::Normal,
        }
    }

    /// `(columns) VALUES …`, `(columns) SELECT …`, or `SET …`.
    fn insert_rows(&mut self) -> Result<(Vec<String>, InsertSource)> {
        if self.accept("SET") {
            let set = self.list(Self::assignment)?;
            let (columns, row) = set.into_iter().map(|a| (a.column.column, a.value)).unzip();
            return Ok((columns, InsertSource::Values(vec![row])));
        }
        let mut columns = Vec::new();
        if self.kind() == Kind::LeftParen && !self.begins_query_in_parens() {
            columns = self.parens_maybe_empty(|p| p.column_name().map(|name| name.column))?;
        }
        if self.kind() == Kind::Word
            && (self.is("VALUE") || (self.is("VALUES") && !self.is_at(1, "ROW")))
        {
            self.at += 1;
            let rows = self.list(|p| p.parens_maybe_empty(Self::value_or_default))?;
            return Ok((columns, InsertSource::Values(rows)));
        }
        if self.accept("VALUES") {
            let rows = self.list(|p| {
                p.expect("ROW")?;
                p.parens_maybe_empty(Self::value_or_default)
            })?;
            return Ok((columns, InsertSource::Values(rows)));
        }
        if !self.begins_query(0) && self.kind() != Kind::LeftParen {
            return self.error();
        }
        Ok((columns, InsertSource::Query(self.query()?)))
    }

    fn value_or_default(&mut self) -> Result<ValueOrDefault> {
        if self.is("DEFAULT") && self.kind_at(1) != Kind::LeftParen {
            self.at += 1;
            return Ok(ValueOrDefault::Default);
        }
        self.expression().map(ValueOrDefault::Value)
    }

    fn row_alias(&mut self) -> Result<Option<RowAlias>> {
        if !self.accept("AS") {
            return Ok(None);
        }
        let name = self.ident()?;
        let columns = match self.kind() {
            Kind::LeftParen => self.parens_list(Self::ident)?,
            _ => Vec::new(),
        };
        Ok(Some(RowAlias { name, columns }))
    }

    /// A column, optionally with its table's and database's names.
    pub(super) fn column_name(&mut self) -> Result<ColumnName> {
        let mut parts = vec![self.ident()?];
        while self.take(Kind::Dot) {
            parts.push(self.any_ident()?);
        }
        let mut parts = parts.into_iter().rev();
        let column = parts.next().unwrap_or_default();
        let name = parts.next();
        let schema = parts.next();
        Ok(ColumnName { table: name.map(|name| TableName { schema, name }), column })
    }

    /// `column = value`.
    pub(super) fn assignment(&mut self) -> Result<Assignment> {
        let column = self.column_name()?;
        if !self.take(Kind::Equal) {
            self.need(Kind::Assign)?;
        }
        Ok(Assignment { column, value: self.value_or_default()? })
    }

    pub(super) fn update(&mut self, with: Option<With>) -> Result<Statement> {
        self.expect("UPDATE")?;
        let hints = self.hints();
        let low_priority = self.accept("LOW_PRIORITY");
        let ignore = self.accept("IGNORE");
        let tables = self.table_references()?;
        self.expect("SET")?;
        let assignments = self.list(Self::assignment)?;
        let selection = self.where_clause()?;
        let order_by = if self.is("ORDER") { self.order_by()? } else { Vec::new() };
        let limit = match self.accept("LIMIT") {
            true => Some(self.limit_value()?),
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

    pub(super) fn delete(&mut self, with: Option<With>) -> Result<Statement> {
        self.expect("DELETE")?;
        let hints = self.hints();
        let (mut low_priority, mut quick, mut ignore) = (false, false, false);
        while let Some(word) = self.accept_any(&["LOW_PRIORITY", "QUICK", "IGNORE"]) {
            match word {
                "LOW_PRIORITY" => low_priority = true,
                "QUICK" => quick = true,
                _ => ignore = true,
            }
        }
        let (targets, tables) = self.delete_tables()?;
        let selection = self.where_clause()?;
        let one = targets.is_empty();
        let order_by = if one && self.is("ORDER") { self.order_by()? } else { Vec::new() };
        let limit = match one && self.accept("LIMIT") {
            true => Some(self.limit_value()?),
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
    fn delete_tables(&mut self) -> Result<(Vec<TableName>, Vec<TableWithJoins>)> {
        if !self.accept("FROM") {
            let targets = self.list(Self::delete_target)?;
            self.expect("FROM")?;
            return Ok((targets, self.table_references()?));
        }
        if self.has_several_targets() {
            let targets = self.list(Self::delete_target)?;
            self.expect("USING")?;
            return Ok((targets, self.table_references()?));
        }
        let relation = self.named_table()?;
        Ok((Vec::new(), vec![TableWithJoins { relation, joins: Vec::new() }]))
    }

    /// Whether `USING` or a comma or `.*` follows the name of a table to delete from.
    fn has_several_targets(&self) -> bool {
        let mut ahead = 1;
        if self.kind_at(ahead) == Kind::Dot {
            ahead += if self.kind_at(2) == Kind::Star { 0 } else { 2 };
        }
        self.is_at(ahead, "USING") || matches!(self.kind_at(ahead), Kind::Comma | Kind::Dot)
    }

    /// A table to delete from, optionally with `.*`, an old spelling.
    fn delete_target(&mut self) -> Result<TableName> {
        let table = self.table_name()?;
        if self.kind() == Kind::Dot && self.kind_at(1) == Kind::Star {
            self.at += 2;
        }
        Ok(table)
    }

    pub(super) fn load(&mut self) -> Result<Statement> {
        self.expect("LOAD")?;
        if self.is("XML") || self.is("INDEX") {
            let what = if self.is("XML") { "LOAD XML" } else { "LOAD INDEX INTO CACHE" };
            return Ok(Statement::Unsupported { what });
        }
        self.expect("DATA")?;
        let priority = self.priority();
        let local = self.accept("LOCAL");
        self.expect("INFILE")?;
        let path = self.string()?;
        let on_conflict = self.on_conflict();
        self.expect_all(&["INTO", "TABLE"])?;
        let table = self.table_name()?;
        let partitions = self.partition_names()?;
        let charset = if self.charset_words() { Some(self.word_or_text()?) } else { None };
        let format = self.file_format()?;
        let ignore_lines = self.ignored_lines()?;
        let targets = match self.kind() {
            Kind::LeftParen => self.parens_maybe_empty(Self::load_target)?,
            _ => Vec::new(),
        };
        let set = if self.accept("SET") { self.list(Self::assignment)? } else { Vec::new() };
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

    fn ignored_lines(&mut self) -> Result<u64> {
        if !self.accept("IGNORE") {
            return Ok(0);
        }
        let lines = self.integer()?;
        self.expect_any(&["LINES", "ROWS"])?;
        Ok(lines)
    }

    fn load_target(&mut self) -> Result<LoadTarget> {
        match self.kind() {
            Kind::UserVariable => self.variable().map(LoadTarget::Variable),
            _ => self.ident().map(LoadTarget::Column),
        }
    }

    /// `FIELDS …` and `LINES …`.
    pub(super) fn file_format(&mut self) -> Result<FileFormat> {
        let mut format = FileFormat::default();
        if self.accept_any(&["FIELDS", "COLUMNS"]).is_some() {
            let first = self.at;
            while self.is_any(&["TERMINATED", "OPTIONALLY", "ENCLOSED", "ESCAPED"]) {
                self.field_format(&mut format)?;
            }
            if self.at == first {
                return self.error();
            }
        }
        if self.accept("LINES") {
            let first = self.at;
            while let Some(word) = self.accept_any(&["STARTING", "TERMINATED"]) {
                self.expect("BY")?;
                let text = self.format_text()?;
                match word {
                    "STARTING" => format.lines_starting_by = text,
                    _ => format.lines_terminated_by = text,
                }
            }
            if self.at == first {
                return self.error();
            }
        }
        Ok(format)
    }

    fn field_format(&mut self, format: &mut FileFormat) -> Result<()> {
        format.optionally_enclosed |= self.accept("OPTIONALLY");
        let word = self.expect_any(&["TERMINATED", "ENCLOSED", "ESCAPED"])?;
        self.expect("BY")?;
        let text = self.format_text()?;
        match word {
            "TERMINATED" => format.fields_terminated_by = text,
            "ENCLOSED" => format.enclosed_by = text,
            _ => format.escaped_by = text,
        }
        Ok(())
    }

    /// A string, also in hexadecimal.
    fn format_text(&mut self) -> Result<String> {
        if self.kind() == Kind::Text {
            return self.string();
        }
        let bytes = self.byte_string()?;
        String::from_utf8(bytes).or_else(|_| self.error())
    }

    pub(super) fn call(&mut self) -> Result<Statement> {
        self.expect("CALL")?;
        let procedure = self.table_name()?;
        let arguments = match self.kind() {
            Kind::LeftParen => self.parens_maybe_empty(Self::expression)?,
            _ => Vec::new(),
        };
        Ok(Statement::Call(Call { procedure, arguments }))
    }

    pub(super) fn handler(&mut self) -> Result<Statement> {
        self.expect("HANDLER")?;
        let table = self.table_name()?;
        let handler = match self.expect_any(&["OPEN", "READ", "CLOSE"])? {
            "OPEN" => {
                let named = self.accept("AS") || self.is_ident_at(0);
                let alias = if named { Some(self.ident()?) } else { None };
                Handler::Open { table, alias }
            }
            "CLOSE" => Handler::Close(table.name),
            _ => Handler::Read(Box::new(self.handler_read(table)?)),
        };
        Ok(Statement::Handler(handler))
    }

    fn handler_read(&mut self, table: TableName) -> Result<HandlerRead> {
        let bare = self.is_any(&["FIRST", "NEXT"]) && !self.position_follows(1);
        let index = if bare { None } else { Some(self.handler_index()?) };
        let position = self.handler_position()?;
        let selection = self.where_clause()?;
        let (mut limit, mut offset) = (None, None);
        if self.accept("LIMIT") {
            limit = Some(self.limit_value()?);
            if self.take(Kind::Comma) {
                offset = limit.replace(self.limit_value()?);
            } else if self.accept("OFFSET") {
                offset = Some(self.limit_value()?);
            }
        }
        Ok(HandlerRead { table, index, position, selection, limit, offset })
    }

    fn handler_index(&mut self) -> Result<String> {
        if self.accept("PRIMARY") { Ok("PRIMARY".to_owned()) } else { self.ident() }
    }

    fn position_follows(&self, ahead: usize) -> bool {
        ["FIRST", "NEXT", "PREV", "LAST"].iter().any(|word| self.is_at(ahead, word))
            || comparison(self.kind_at(ahead)).is_some()
    }

    fn handler_position(&mut self) -> Result<HandlerPosition> {
        if let Some(comparison) = comparison(self.kind()) {
            self.at += 1;
            let values = self.parens_list(Self::expression)?;
            return Ok(HandlerPosition::Key { comparison, values });
        }
        Ok(match self.expect_any(&["FIRST", "NEXT", "PREV", "LAST"])? {
            "FIRST" => HandlerPosition::First,
            "NEXT" => HandlerPosition::Next,
            "PREV" => HandlerPosition::Previous,
            _ => HandlerPosition::Last,
        })
    }
}
