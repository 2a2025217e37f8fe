//! `SHOW`.

use firn_sql_types::error::Result;

use super::super::ast::{Show, ShowCreate, ShowFilter, TableName};
use super::super::lexer::Kind;
use super::Parser;

impl Parser<'_> {
    pub(super) fn show(&mut self) -> Result<Show> {
        self.expect("SHOW")?;
        let extended = self.accept("EXTENDED");
        let full = self.accept("FULL");
        if extended || full {
            return self.show_with_words(extended, full);
        }
        let scope = self.accept_any(&["GLOBAL", "SESSION", "LOCAL"]);
        let global = scope.map(|word| word == "GLOBAL");
        match self.upper().as_str() {
            "VARIABLES" => {
                self.at += 1;
                Ok(Show::Variables { global: global == Some(true), filter: self.show_filter()? })
            }
            "STATUS" => {
                self.at += 1;
                Ok(Show::Status { global: global == Some(true), filter: self.show_filter()? })
            }
            _ if global.is_some() => self.error(),
            "TABLES" | "COLUMNS" | "FIELDS" | "PROCESSLIST" | "INDEX" | "INDEXES" | "KEYS" => {
                self.show_with_words(false, false)
            }
            "CREATE" => self.show_create().map(Show::Create),
            _ => self.show_catalog(),
        }
    }

    fn show_with_words(&mut self, extended: bool, full: bool) -> Result<Show> {
        match self.upper().as_str() {
            "TABLES" => {
                self.at += 1;
                let schema = self.show_schema()?;
                Ok(Show::Tables { extended, full, schema, filter: self.show_filter()? })
            }
            "COLUMNS" | "FIELDS" => {
                self.at += 1;
                let table = self.show_table()?;
                Ok(Show::Columns { extended, full, table, filter: self.show_filter()? })
            }
            "INDEX" | "INDEXES" | "KEYS" if !full => {
                self.at += 1;
                let table = self.show_table()?;
                let filter = self.where_clause()?.map(ShowFilter::Where);
                Ok(Show::Indexes { extended, table, filter })
            }
            "PROCESSLIST" if !extended => {
                self.at += 1;
                Ok(Show::Processlist { full })
            }
            _ => self.error(),
        }
    }

    /// Objects of the catalog.
    fn show_catalog(&mut self) -> Result<Show> {
        match self.upper().as_str() {
            "DATABASES" | "SCHEMAS" => {
                self.at += 1;
                self.show_filter().map(Show::Databases)
            }
            "TABLE" => {
                self.expect_all(&["TABLE", "STATUS"])?;
                let schema = self.show_schema()?;
                Ok(Show::TableStatus { schema, filter: self.show_filter()? })
            }
            "OPEN" => {
                self.expect_all(&["OPEN", "TABLES"])?;
                let schema = self.show_schema()?;
                Ok(Show::OpenTables { schema, filter: self.show_filter()? })
            }
            "TRIGGERS" => {
                self.at += 1;
                let schema = self.show_schema()?;
                Ok(Show::Triggers { schema, filter: self.show_filter()? })
            }
            "EVENTS" => {
                self.at += 1;
                let schema = self.show_schema()?;
                Ok(Show::Events { schema, filter: self.show_filter()? })
            }
            "PROCEDURE" => {
                self.expect_all(&["PROCEDURE", "STATUS"])?;
                self.show_filter().map(Show::ProcedureStatus)
            }
            "FUNCTION" => {
                self.expect_all(&["FUNCTION", "STATUS"])?;
                self.show_filter().map(Show::FunctionStatus)
            }
            "CHARACTER" | "CHAR" | "CHARSET" => {
                if !self.charset_words() {
                    return self.error();
                }
                self.show_filter().map(Show::CharacterSets)
            }
            "COLLATION" => {
                self.at += 1;
                self.show_filter().map(Show::Collations)
            }
            _ => self.show_server(),
        }
    }

    /// Objects of the server and of the session.
    fn show_server(&mut self) -> Result<Show> {
        let word = self.upper();
        if self.kind() != Kind::Word {
            return self.error();
        }
        self.at += 1;
        Ok(match word.as_str() {
            "WARNINGS" => Show::Warnings(self.show_limit()?),
            "ERRORS" => Show::Errors(self.show_limit()?),
            "COUNT" => {
                self.parens(|p| p.need(Kind::Star))?;
                match self.expect_any(&["WARNINGS", "ERRORS"])? {
                    "WARNINGS" => Show::WarningCount,
                    _ => Show::ErrorCount,
                }
            }
            "ENGINES" => Show::Engines,
            "STORAGE" => self.expect("ENGINES").map(|()| Show::Engines)?,
            "ENGINE" => {
                let name = if self.accept("ALL") { None } else { Some(self.ident_or_text()?) };
                let what = self.expect_any(&["STATUS", "MUTEX", "LOGS"])?.to_owned();
                Show::Engine { name, what }
            }
            "PRIVILEGES" => Show::Privileges,
            "PLUGINS" => Show::Plugins,
            "GRANTS" => self.show_grants()?,
            "PROFILES" => Show::Profiles,
            "PROFILE" => self.show_profile()?,
            "BINARY" => match self.accept("LOG") {
                true => self.expect("STATUS").map(|()| Show::BinaryLogStatus)?,
                false => self.expect("LOGS").map(|()| Show::BinaryLogs)?,
            },
            "MASTER" => match self.expect_any(&["STATUS", "LOGS"])? {
                "STATUS" => Show::BinaryLogStatus,
                _ => Show::BinaryLogs,
            },
            "BINLOG" | "RELAYLOG" => self.show_log_events()?,
            "REPLICAS" => Show::Replicas,
            "REPLICA" | "SLAVE" => match self.expect_any(&["STATUS", "HOSTS"])? {
                "STATUS" => {
                    if self.accept_all(&["FOR", "CHANNEL"]) {
                        self.ident_or_text()?;
                    }
                    Show::ReplicaStatus
                }
                _ => Show::Replicas,
            },
            _ => {
                self.at -= 1;
                return self.error();
            }
        })
    }

    fn show_grants(&mut self) -> Result<Show> {
        let account = if self.accept("FOR") { Some(self.account()?) } else { None };
        let using = match account.is_some() && self.accept("USING") {
            true => self.list(Self::account)?,
            false => Vec::new(),
        };
        Ok(Show::Grants { account, using })
    }

    fn show_profile(&mut self) -> Result<Show> {
        while self.kind() == Kind::Word && !self.is_any(&["FOR", "LIMIT"]) {
            self.at += 1;
            self.take(Kind::Comma);
        }
        if self.accept_all(&["FOR", "QUERY"]) {
            self.integer::<u64>()?;
        }
        self.show_limit()?;
        Ok(Show::Profile)
    }

    fn show_log_events(&mut self) -> Result<Show> {
        self.expect("EVENTS")?;
        if self.accept("IN") {
            self.string()?;
        }
        if self.accept("FROM") {
            self.integer::<u64>()?;
        }
        self.show_limit()?;
        Ok(Show::BinlogEvents)
    }

    fn show_create(&mut self) -> Result<ShowCreate> {
        self.expect("CREATE")?;
        let words = [
            "DATABASE",
            "SCHEMA",
            "TABLE",
            "VIEW",
            "PROCEDURE",
            "FUNCTION",
            "TRIGGER",
            "EVENT",
            "USER",
        ];
        Ok(match self.expect_any(&words)? {
            "DATABASE" | "SCHEMA" => {
                let if_not_exists = self.if_not_exists();
                ShowCreate::Database { name: self.ident()?, if_not_exists }
            }
            "TABLE" => ShowCreate::Table(self.table_name()?),
            "VIEW" => ShowCreate::View(self.table_name()?),
            "PROCEDURE" => ShowCreate::Procedure(self.table_name()?),
            "FUNCTION" => ShowCreate::Function(self.table_name()?),
            "TRIGGER" => ShowCreate::Trigger(self.table_name()?),
            "EVENT" => ShowCreate::Event(self.table_name()?),
            _ => ShowCreate::User(self.account()?),
        })
    }

    /// `FROM` or `IN` a database.
    fn show_schema(&mut self) -> Result<Option<String>> {
        match self.accept_any(&["FROM", "IN"]) {
            Some(_) => self.ident().map(Some),
            None => Ok(None),
        }
    }

    /// `FROM table [FROM database]`.
    fn show_table(&mut self) -> Result<TableName> {
        self.expect_any(&["FROM", "IN"])?;
        let mut table = self.table_name()?;
        if let Some(schema) = self.show_schema()? {
            table.schema = Some(schema);
        }
        Ok(table)
    }

    /// `LIKE` or `WHERE`.
    fn show_filter(&mut self) -> Result<Option<ShowFilter>> {
        if self.accept("LIKE") {
            return Ok(Some(ShowFilter::Like(self.string()?)));
        }
        Ok(self.where_clause()?.map(ShowFilter::Where))
    }

    /// `LIMIT`, as offset and count.
    fn show_limit(&mut self) -> Result<Option<(u64, u64)>> {
        if !self.accept("LIMIT") {
            return Ok(None);
        }
        let first = self.integer()?;
        if self.take(Kind::Comma) {
            return Ok(Some((first, self.integer()?)));
        }
        let offset = if self.accept("OFFSET") { self.integer()? } else { 0 };
        Ok(Some((offset, first)))
    }
}
