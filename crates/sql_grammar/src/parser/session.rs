//! `SET`, prepared statements, `EXPLAIN`, `KILL`, diagnostics.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    Explain, ExplainFormat, ExplainTarget, Expr, GetDiagnostics, PrepareSource, RoleChoice,
    SetItem, SetPassword, SetValue, Signal, Statement, TransactionScope, VariableScope,
};
use super::super::lexer::Kind;
use super::Parser;

impl Parser<'_> {
    pub(super) fn set(&mut self) -> Result<Statement> {
        self.expect("SET")?;
        if let Some(statement) = self.set_statement()? {
            return Ok(statement);
        }
        let mut items = vec![self.set_item(VariableScope::Session)?];
        while self.take(Kind::Comma) {
            items.push(self.set_item(VariableScope::Session)?);
        }
        Ok(Statement::Set(items))
    }

    /// Statements that begin with `SET` and set no variable.
    fn set_statement(&mut self) -> Result<Option<Statement>> {
        let scopes = [
            ("GLOBAL", TransactionScope::Global),
            ("SESSION", TransactionScope::Session),
            ("LOCAL", TransactionScope::Session),
        ];
        for (word, scope) in scopes {
            if self.accept_all(&[word, "TRANSACTION"]) {
                return self.set_transaction(scope).map(Some);
            }
        }
        if self.is_at(1, "ISOLATION") || self.is_at(1, "READ") {
            self.expect("TRANSACTION")?;
            return self.set_transaction(TransactionScope::Next).map(Some);
        }
        if self.is("PASSWORD") && self.kind_at(1) != Kind::Dot {
            return self.set_password().map(Some);
        }
        if self.accept_all(&["DEFAULT", "ROLE"]) {
            let roles = self.role_choice()?;
            self.expect("TO")?;
            let to = self.list(Self::account)?;
            return Ok(Some(Statement::SetDefaultRole { roles, to }));
        }
        if self.is("ROLE") && !matches!(self.kind_at(1), Kind::Equal | Kind::Assign) {
            self.at += 1;
            return self.role_choice().map(|choice| Some(Statement::SetRole(choice)));
        }
        if self.are(&["RESOURCE", "GROUP"]) {
            return Ok(Some(Statement::Unsupported { what: "SET RESOURCE GROUP" }));
        }
        Ok(None)
    }

    /// `NONE`, `ALL`, `ALL EXCEPT …`, `DEFAULT`, or roles.
    pub(super) fn role_choice(&mut self) -> Result<RoleChoice> {
        if self.accept("NONE") {
            return Ok(RoleChoice::None);
        }
        if self.accept("DEFAULT") {
            return Ok(RoleChoice::Default);
        }
        if self.accept("ALL") {
            return match self.accept("EXCEPT") {
                true => self.list(Self::account).map(RoleChoice::AllExcept),
                false => Ok(RoleChoice::All),
            };
        }
        self.list(Self::account).map(RoleChoice::Roles)
    }

    fn set_password(&mut self) -> Result<Statement> {
        self.expect("PASSWORD")?;
        let account = if self.accept("FOR") { Some(self.account()?) } else { None };
        let password = if self.accept_all(&["TO", "RANDOM"]) {
            None
        } else {
            if !self.take(Kind::Equal) {
                self.need(Kind::Assign)?;
            }
            Some(self.string()?)
        };
        let current_password = if self.accept("REPLACE") { Some(self.string()?) } else { None };
        let retain_current = self.accept_all(&["RETAIN", "CURRENT", "PASSWORD"]);
        let set = SetPassword { account, password, current_password, retain_current };
        Ok(Statement::SetPassword(set))
    }

    fn set_item(&mut self, scope: VariableScope) -> Result<SetItem> {
        if self.kind() == Kind::UserVariable {
            let name = self.variable()?;
            self.assigns()?;
            return Ok(SetItem::UserVariable { name, value: self.expression()? });
        }
        if self.kind() == Kind::AtAt {
            let (said, name) = self.system_variable_name()?;
            self.assigns()?;
            let scope = match said.as_str() {
                "global" => VariableScope::Global,
                "persist" => VariableScope::Persist,
                "persist_only" => VariableScope::PersistOnly,
                _ => VariableScope::Session,
            };
            return Ok(SetItem::SystemVariable { scope, name, value: self.set_value()? });
        }
        if self.is("NAMES") && !self.assigns_at(1) {
            return self.set_names();
        }
        if self.is_any(&["CHARACTER", "CHAR", "CHARSET"]) && self.charset_words() {
            let charset = if self.accept("DEFAULT") { None } else { Some(self.word_or_text()?) };
            return Ok(SetItem::CharacterSet(charset));
        }
        let scope = self.scope_word().unwrap_or(scope);
        let mut name = self.any_variable_name()?;
        if self.take(Kind::Dot) {
            name = format!("{name}.{}", self.any_ident()?.to_ascii_lowercase());
        }
        self.assigns()?;
        Ok(SetItem::SystemVariable { scope, name, value: self.set_value()? })
    }

    fn any_variable_name(&mut self) -> Result<String> {
        self.ident().map(|name| name.to_ascii_lowercase())
    }

    fn scope_word(&mut self) -> Option<VariableScope> {
        if self.assigns_at(1) {
            return None;
        }
        Some(match self.accept_any(&["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"])? {
            "GLOBAL" => VariableScope::Global,
            "PERSIST" => VariableScope::Persist,
            "PERSIST_ONLY" => VariableScope::PersistOnly,
            _ => VariableScope::Session,
        })
    }

    fn assigns_at(&self, ahead: usize) -> bool {
        matches!(self.kind_at(ahead), Kind::Equal | Kind::Assign)
    }

    fn assigns(&mut self) -> Result<()> {
        if !self.assigns_at(0) {
            return self.error();
        }
        self.at += 1;
        Ok(())
    }

    fn set_value(&mut self) -> Result<SetValue> {
        let ends = matches!(self.kind_at(1), Kind::Comma | Kind::Semicolon | Kind::End);
        if ends && self.accept("DEFAULT") {
            return Ok(SetValue::Default);
        }
        if ends && let Some(word) = self.accept_any(&["ON", "ALL", "BINARY", "ROW", "SYSTEM"]) {
            return Ok(SetValue::Word(word.to_owned()));
        }
        self.expression().map(SetValue::Value)
    }

    fn set_names(&mut self) -> Result<SetItem> {
        self.expect("NAMES")?;
        if self.accept("DEFAULT") {
            return Ok(SetItem::Names { charset: None, collation: None });
        }
        let charset = Some(self.word_or_text()?);
        let collation = if self.accept("COLLATE") { Some(self.word_or_text()?) } else { None };
        Ok(SetItem::Names { charset, collation })
    }

    pub(super) fn prepare(&mut self) -> Result<Statement> {
        self.expect("PREPARE")?;
        let name = self.ident()?;
        self.expect("FROM")?;
        let source = match self.kind() {
            Kind::UserVariable => PrepareSource::Variable(self.variable()?),
            _ => PrepareSource::Text(self.string()?),
        };
        Ok(Statement::Prepare { name, source })
    }

    pub(super) fn execute(&mut self) -> Result<Statement> {
        self.expect("EXECUTE")?;
        let name = self.ident()?;
        let using = if self.accept("USING") { self.list(Self::variable)? } else { Vec::new() };
        Ok(Statement::Execute { name, using })
    }

    pub(super) fn deallocate(&mut self) -> Result<Statement> {
        self.expect("PREPARE")?;
        self.ident().map(Statement::Deallocate)
    }

    /// `DESCRIBE` of a table, or `EXPLAIN` of a statement; the three words mean the same.
    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.expect_any(&["DESCRIBE", "DESC", "EXPLAIN"])?;
        let analyze = self.accept("ANALYZE");
        let format = self.explain_format()?;
        let into = if self.accept("INTO") { Some(self.variable()?) } else { None };
        if self.accept("FOR") {
            if self.accept("CONNECTION") {
                let target = ExplainTarget::Connection(self.integer()?);
                let explain = Explain { analyze, format, into, target };
                return Ok(Statement::Explain(Box::new(explain)));
            }
            self.expect_any(&["SCHEMA", "DATABASE"])?;
            return Err(SqlError::not_supported("EXPLAIN FOR SCHEMA"));
        }
        if !self.begins_explainable() {
            if analyze || format.is_some() || into.is_some() {
                return self.error();
            }
            let table = self.table_name()?;
            let named = matches!(self.kind(), Kind::Word | Kind::Quoted | Kind::Text);
            let column = if named { Some(self.ident_or_text()?) } else { None };
            return Ok(Statement::Describe { table, column });
        }
        let target = ExplainTarget::Statement(self.statement()?);
        Ok(Statement::Explain(Box::new(Explain { analyze, format, into, target })))
    }

    fn begins_explainable(&self) -> bool {
        self.is_any(&["SELECT", "WITH", "TABLE", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"])
            || self.kind() == Kind::LeftParen
    }

    fn explain_format(&mut self) -> Result<Option<ExplainFormat>> {
        if !(self.is("FORMAT") && self.kind_at(1) == Kind::Equal) {
            self.accept_any(&["EXTENDED", "PARTITIONS"]);
            return Ok(None);
        }
        self.at += 2;
        let name = self.ident_or_text()?;
        match name.to_ascii_uppercase().as_str() {
            "TRADITIONAL" | "DEFAULT" => Ok(Some(ExplainFormat::Traditional)),
            "JSON" => Ok(Some(ExplainFormat::Json)),
            "TREE" => Ok(Some(ExplainFormat::Tree)),
            _ => Err(SqlError::new(1791, format!("Unknown EXPLAIN format name: '{name}'"))),
        }
    }

    pub(super) fn kill(&mut self) -> Result<Statement> {
        self.expect("KILL")?;
        let query_only = self.accept_any(&["QUERY", "CONNECTION"]) == Some("QUERY");
        Ok(Statement::Kill { query_only, id: self.expression()? })
    }

    pub(super) fn get_diagnostics(&mut self) -> Result<Statement> {
        self.expect("GET")?;
        let stacked = self.accept_any(&["CURRENT", "STACKED"]) == Some("STACKED");
        self.expect("DIAGNOSTICS")?;
        let condition = match self.accept("CONDITION") {
            true => Some(self.simple()?),
            false => None,
        };
        let items = self.list(|p| {
            let variable = p.variable()?;
            p.need(Kind::Equal)?;
            Ok((variable, p.ident()?.to_ascii_uppercase()))
        })?;
        Ok(Statement::GetDiagnostics(GetDiagnostics { stacked, condition, items }))
    }

    pub(super) fn signal(&mut self) -> Result<Statement> {
        self.expect("SIGNAL")?;
        self.expect("SQLSTATE")?;
        self.accept("VALUE");
        let sqlstate = Some(self.string()?);
        let items = self.signal_items()?;
        Ok(Statement::Signal(Signal { sqlstate, items }))
    }

    pub(super) fn resignal(&mut self) -> Result<Statement> {
        self.expect("RESIGNAL")?;
        let sqlstate = match self.accept("SQLSTATE") {
            true => {
                self.accept("VALUE");
                Some(self.string()?)
            }
            false => None,
        };
        let items = self.signal_items()?;
        Ok(Statement::Resignal(Signal { sqlstate, items }))
    }

    fn signal_items(&mut self) -> Result<Vec<(String, Expr)>> {
        if !self.accept("SET") {
            return Ok(Vec::new());
        }
        self.list(|p| {
            let item = p.ident()?.to_ascii_uppercase();
            p.need(Kind::Equal)?;
            Ok((item, p.simple()?))
        })
    }
}
