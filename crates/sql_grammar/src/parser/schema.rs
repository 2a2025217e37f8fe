//! Databases and views.

use firn_sql_types::error::Result;

use super::super::ast::{
    Account, AlterDatabase, CheckOption, CreateDatabase, CreateView, DatabaseOptions, Statement,
    TableName, ViewAlgorithm,
};
use super::super::lexer::Kind;
use super::Parser;

impl Parser<'_> {
    pub(super) fn create_database(&mut self) -> Result<Statement> {
        self.expect_any(&["DATABASE", "SCHEMA"])?;
        let if_not_exists = self.if_not_exists();
        let name = self.ident()?;
        let options = self.database_options()?;
        Ok(Statement::CreateDatabase(CreateDatabase { if_not_exists, name, options }))
    }

    pub(super) fn alter_database(&mut self) -> Result<Statement> {
        self.expect_any(&["DATABASE", "SCHEMA"])?;
        let named = self.is_ident_at(0) && !self.begins_database_option();
        let name = if named { Some(self.ident()?) } else { None };
        if !self.begins_database_option() {
            return self.error();
        }
        let options = self.database_options()?;
        Ok(Statement::AlterDatabase(AlterDatabase { name, options }))
    }

    fn begins_database_option(&self) -> bool {
        self.is_any(&["DEFAULT", "CHARACTER", "CHAR", "COLLATE"])
            || (self.is_any(&["CHARSET", "ENCRYPTION"])
                && matches!(self.kind_at(1), Kind::Equal | Kind::Word | Kind::Text)
                && !self.is_at(1, "DEFAULT"))
            || self.are(&["READ", "ONLY"])
    }

    fn database_options(&mut self) -> Result<DatabaseOptions> {
        let mut options = DatabaseOptions::default();
        while self.begins_database_option() {
            self.accept("DEFAULT");
            if self.charset_words() {
                self.take(Kind::Equal);
                options.charset = Some(self.word_or_text()?);
            } else if self.accept("COLLATE") {
                self.take(Kind::Equal);
                options.collation = Some(self.word_or_text()?);
            } else if self.accept("ENCRYPTION") {
                self.take(Kind::Equal);
                options.encryption = Some(self.string()?.eq_ignore_ascii_case("y"));
            } else {
                self.expect_all(&["READ", "ONLY"])?;
                self.take(Kind::Equal);
                let said = !self.accept("DEFAULT") && self.integer::<u8>()? != 0;
                options.read_only = Some(said);
            }
        }
        Ok(options)
    }

    /// `ALGORITHM`, `DEFINER` and `SQL SECURITY` before the word `VIEW`.
    pub(super) fn view_head(&mut self) -> Result<CreateView> {
        let mut view = empty_view();
        if self.accept("ALGORITHM") {
            self.need(Kind::Equal)?;
            view.algorithm = match self.expect_any(&["UNDEFINED", "MERGE", "TEMPTABLE"])? {
                "UNDEFINED" => ViewAlgorithm::Undefined,
                "MERGE" => ViewAlgorithm::Merge,
                _ => ViewAlgorithm::TempTable,
            };
        }
        if self.accept("DEFINER") {
            self.need(Kind::Equal)?;
            view.definer = match self.account()? {
                Account::Current => None,
                named => Some(named),
            };
        }
        if self.accept_all(&["SQL", "SECURITY"]) {
            view.invoker_security = self.expect_any(&["DEFINER", "INVOKER"])? == "INVOKER";
        }
        Ok(view)
    }

    /// From the word `VIEW` on.
    pub(super) fn view(&mut self, mut view: CreateView) -> Result<CreateView> {
        self.expect("VIEW")?;
        view.view = self.table_name()?;
        if self.kind() == Kind::LeftParen {
            view.columns = self.parens_list(Self::ident)?;
        }
        self.expect("AS")?;
        let first = self.at;
        view.query = *self.query()?;
        view.query_text = self.text_since(first).to_owned();
        if self.accept("WITH") {
            let local = self.accept_any(&["CASCADED", "LOCAL"]) == Some("LOCAL");
            self.expect_all(&["CHECK", "OPTION"])?;
            view.check_option =
                Some(if local { CheckOption::Local } else { CheckOption::Cascaded });
        }
        Ok(view)
    }
}

fn empty_view() -> CreateView {
    CreateView {
        or_replace: false,
        alter: false,
        algorithm: ViewAlgorithm::Undefined,
        definer: None,
        invoker_security: false,
        view: TableName { schema: None, name: String::new() },
        columns: Vec::new(),
        query: super::query::empty(),
        query_text: String::new(),
        check_option: None,
    }
}
