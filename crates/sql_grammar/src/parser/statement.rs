//! Selects the statement by its first words.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{CreateView, Expr, OnConflict, Statement};
use super::super::lexer::Kind;
use super::Parser;

impl Parser<'_> {
    /// The only statement of the text, up to its end or a semicolon.
    pub(crate) fn whole_statement(&mut self) -> Result<Statement> {
        if matches!(self.kind(), Kind::End | Kind::Semicolon) && self.tokens.len() <= 2 {
            return Err(SqlError::new(1065, "Query was empty"));
        }
        let statement = self.statement()?;
        if !matches!(statement, Statement::Unsupported { .. }) {
            self.take(Kind::Semicolon);
            self.need(Kind::End)?;
        }
        Ok(statement)
    }

    /// The only expression of the text.
    pub(crate) fn whole_expression(&mut self) -> Result<Expr> {
        let expr = self.expression()?;
        self.need(Kind::End)?;
        Ok(expr)
    }

    /// The only column type of the text.
    pub(crate) fn whole_column_type(&mut self) -> Result<super::super::ast::ColumnType> {
        let column_type = self.column_type()?;
        self.need(Kind::End)?;
        Ok(column_type)
    }

    pub(super) fn statement(&mut self) -> Result<Statement> {
        if self.kind() == Kind::LeftParen && self.begins_query_in_parens() {
            return self.select_statement().map(|s| Statement::Select(Box::new(s)));
        }
        match self.upper().as_str() {
            "SELECT" | "VALUES" | "TABLE" => {
                self.select_statement().map(|s| Statement::Select(Box::new(s)))
            }
            "WITH" => self.with_statement(),
            "INSERT" | "REPLACE" => self.insert(),
            "UPDATE" => self.update(None),
            "DELETE" => self.delete(None),
            "LOAD" => self.load(),
            "DO" => {
                self.at += 1;
                self.list(Self::expression).map(Statement::Do)
            }
            "CALL" => self.call(),
            "HANDLER" => self.handler(),
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "RENAME" => self.rename(),
            "TRUNCATE" => {
                self.at += 1;
                self.accept("TABLE");
                self.table_name().map(Statement::Truncate)
            }
            _ => self.statement_of_session(),
        }
    }

    fn statement_of_session(&mut self) -> Result<Statement> {
        match self.upper().as_str() {
            "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "XA" | "LOCK"
            | "UNLOCK" => self.transaction_statement(),
            "SET" => self.set(),
            "USE" => {
                self.at += 1;
                self.ident().map(Statement::Use)
            }
            "PREPARE" => self.prepare(),
            "EXECUTE" => self.execute(),
            "DEALLOCATE" => {
                self.at += 1;
                self.deallocate()
            }
            "SHOW" => self.show().map(|show| Statement::Show(Box::new(show))),
            "DESCRIBE" | "DESC" | "EXPLAIN" => self.explain(),
            "HELP" => {
                self.at += 1;
                self.ident_or_text().map(Statement::Help)
            }
            "KILL" => self.kill(),
            "GET" => self.get_diagnostics(),
            "SIGNAL" => self.signal(),
            "RESIGNAL" => self.resignal(),
            "GRANT" => self.grant(),
            "REVOKE" => self.revoke(),
            _ => self.statement_of_server(),
        }
    }

    fn statement_of_server(&mut self) -> Result<Statement> {
        match self.upper().as_str() {
            "ANALYZE" | "CHECK" | "CHECKSUM" | "OPTIMIZE" | "REPAIR" => self.maintenance(),
            "FLUSH" => self.flush(),
            "RESET" => self.reset(),
            "PURGE" => self.purge(),
            word => match unsupported(word) {
                Some(what) => Ok(Statement::Unsupported { what }),
                None => self.error(),
            },
        }
    }

    fn with_statement(&mut self) -> Result<Statement> {
        let first = self.at;
        let parameters = self.parameters;
        let with = self.with()?;
        match self.upper().as_str() {
            "UPDATE" => self.update(with),
            "DELETE" => self.delete(with),
            _ => {
                (self.at, self.parameters) = (first, parameters);
                self.select_statement().map(|s| Statement::Select(Box::new(s)))
            }
        }
    }

    fn create(&mut self) -> Result<Statement> {
        self.expect("CREATE")?;
        match self.upper().as_str() {
            "DATABASE" | "SCHEMA" => self.create_database(),
            "TEMPORARY" | "TABLE" => self.create_table(),
            "UNIQUE" | "FULLTEXT" | "SPATIAL" | "INDEX" => self.create_index(),
            "USER" => self.create_user(),
            "ROLE" => self.create_role(),
            "PROCEDURE" => unsupported_as("CREATE PROCEDURE"),
            "FUNCTION" | "AGGREGATE" => unsupported_as("CREATE FUNCTION"),
            "TRIGGER" => unsupported_as("CREATE TRIGGER"),
            "EVENT" => unsupported_as("CREATE EVENT"),
            "SERVER" => unsupported_as("CREATE SERVER"),
            "TABLESPACE" | "UNDO" => unsupported_as("CREATE TABLESPACE"),
            "LOGFILE" => unsupported_as("CREATE LOGFILE GROUP"),
            "RESOURCE" => unsupported_as("CREATE RESOURCE GROUP"),
            _ if self.are(&["OR", "REPLACE", "SPATIAL"]) => {
                unsupported_as("CREATE SPATIAL REFERENCE SYSTEM")
            }
            _ => {
                let or_replace = self.accept_all(&["OR", "REPLACE"]);
                self.create_with_definer(or_replace, false)
            }
        }
    }

    /// Objects that may have `DEFINER` before them: views, and stored programs.
    fn create_with_definer(&mut self, or_replace: bool, alter: bool) -> Result<Statement> {
        let head = self.view_head()?;
        match self.upper().as_str() {
            "VIEW" => {
                let view = CreateView { or_replace, alter, ..head };
                self.view(view).map(|view| Statement::CreateView(Box::new(view)))
            }
            "PROCEDURE" => unsupported_as("CREATE PROCEDURE"),
            "FUNCTION" => unsupported_as("CREATE FUNCTION"),
            "TRIGGER" => unsupported_as("CREATE TRIGGER"),
            "EVENT" => unsupported_as("CREATE EVENT"),
            _ => self.error(),
        }
    }

    fn alter(&mut self) -> Result<Statement> {
        self.expect("ALTER")?;
        match self.upper().as_str() {
            "DATABASE" | "SCHEMA" => self.alter_database(),
            "TABLE" => self.alter_table(),
            "USER" => self.alter_user(),
            "PROCEDURE" => unsupported_as("ALTER PROCEDURE"),
            "FUNCTION" => unsupported_as("ALTER FUNCTION"),
            "EVENT" => unsupported_as("ALTER EVENT"),
            "SERVER" => unsupported_as("ALTER SERVER"),
            "INSTANCE" => unsupported_as("ALTER INSTANCE"),
            "TABLESPACE" | "UNDO" => unsupported_as("ALTER TABLESPACE"),
            "LOGFILE" => unsupported_as("ALTER LOGFILE GROUP"),
            "RESOURCE" => unsupported_as("ALTER RESOURCE GROUP"),
            _ => self.create_with_definer(false, true),
        }
    }

    fn drop(&mut self) -> Result<Statement> {
        self.expect("DROP")?;
        match self.upper().as_str() {
            "DATABASE" | "SCHEMA" => {
                self.at += 1;
                let if_exists = self.if_exists();
                Ok(Statement::DropDatabase { if_exists, name: self.ident()? })
            }
            "TEMPORARY" | "TABLE" | "TABLES" => self.drop_table(),
            "INDEX" => self.drop_index(),
            "VIEW" => {
                self.at += 1;
                let if_exists = self.if_exists();
                let views = self.list(Self::table_name)?;
                let _ = self.accept_any(&["RESTRICT", "CASCADE"]);
                Ok(Statement::DropView { if_exists, views })
            }
            "USER" => self.drop_user(),
            "ROLE" => self.drop_role(),
            "PREPARE" => self.deallocate(),
            "PROCEDURE" => self.drop_program("PROCEDURE"),
            "FUNCTION" => self.drop_program("FUNCTION"),
            "TRIGGER" => self.drop_program("TRIGGER"),
            "EVENT" => self.drop_program("EVENT"),
            "SERVER" => unsupported_as("DROP SERVER"),
            "TABLESPACE" | "UNDO" => unsupported_as("DROP TABLESPACE"),
            "LOGFILE" => unsupported_as("DROP LOGFILE GROUP"),
            "RESOURCE" => unsupported_as("DROP RESOURCE GROUP"),
            "SPATIAL" => unsupported_as("DROP SPATIAL REFERENCE SYSTEM"),
            _ => self.error(),
        }
    }

    fn drop_program(&mut self, kind: &'static str) -> Result<Statement> {
        self.at += 1;
        let if_exists = self.if_exists();
        Ok(Statement::DropProgram { kind, if_exists, name: self.table_name()? })
    }

    fn rename(&mut self) -> Result<Statement> {
        self.expect("RENAME")?;
        if self.is("USER") {
            return self.rename_user();
        }
        self.expect_any(&["TABLE", "TABLES"])?;
        let pairs = self.list(|p| {
            let from = p.table_name()?;
            p.expect("TO")?;
            Ok((from, p.table_name()?))
        })?;
        Ok(Statement::RenameTable(pairs))
    }

    /// `IGNORE` or `REPLACE`, for rows whose keys already exist.
    pub(super) fn on_conflict(&mut self) -> OnConflict {
        match self.accept_any(&["IGNORE", "REPLACE"]) {
            Some("IGNORE") => OnConflict::Ignore,
            Some(_) => OnConflict::Replace,
            None => OnConflict::Refuse,
        }
    }
}

fn unsupported_as(what: &'static str) -> Result<Statement> {
    Ok(Statement::Unsupported { what })
}

/// Statements that are refused as a whole, by their first word.
fn unsupported(word: &str) -> Option<&'static str> {
    Some(match word {
        "INSTALL" => "INSTALL",
        "UNINSTALL" => "UNINSTALL",
        "BINLOG" => "BINLOG",
        "CACHE" => "CACHE INDEX",
        "CHANGE" => "CHANGE REPLICATION SOURCE",
        "STOP" => "STOP REPLICA",
        "CLONE" => "CLONE",
        "IMPORT" => "IMPORT TABLE",
        "RESTART" => "RESTART",
        "SHUTDOWN" => "SHUTDOWN",
        _ => return None,
    })
}
