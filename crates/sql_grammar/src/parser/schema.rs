//! Databases and views.

use firn_sql_types::error::Result;

use super::super::ast::{
    Account, AlterDatabase, CheckOption, CreateDatabase, CreateView, DatabaseOptions, Statement,
    TableName, ViewAlgorithm,
};
use super::super::lexer::Kind;
use super::{Parser, account, query};

pub(super) fn create_database(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect_any(&["DATABASE", "SCHEMA"])?;
    let if_not_exists = parser.if_not_exists();
    let name = parser.ident()?;
    let options = database_options(parser)?;
    Ok(Statement::CreateDatabase(CreateDatabase { if_not_exists, name, options }))
}

pub(super) fn alter_database(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect_any(&["DATABASE", "SCHEMA"])?;
    let named = parser.is_ident_at(0) && !begins_database_option(parser);
    let name = if named { Some(parser.ident()?) } else { None };
    if !begins_database_option(parser) {
        return parser.error();
    }
    let options = database_options(parser)?;
    Ok(Statement::AlterDatabase(AlterDatabase { name, options }))
}

fn begins_database_option(parser: &Parser<'_>) -> bool {
    parser.is_any(&["DEFAULT", "CHARACTER", "CHAR", "COLLATE"])
        || (parser.is_any(&["CHARSET", "ENCRYPTION"])
            && matches!(parser.kind_at(1), Kind::Equal | Kind::Word | Kind::Text)
            && !parser.is_at(1, "DEFAULT"))
        || parser.are(&["READ", "ONLY"])
}

fn database_options(parser: &mut Parser<'_>) -> Result<DatabaseOptions> {
    let mut options = DatabaseOptions::default();
    while begins_database_option(parser) {
        parser.accept("DEFAULT");
        if parser.charset_words() {
            parser.take(Kind::Equal);
            options.charset = Some(parser.word_or_text()?);
        } else if parser.accept("COLLATE") {
            parser.take(Kind::Equal);
            options.collation = Some(parser.word_or_text()?);
        } else if parser.accept("ENCRYPTION") {
            parser.take(Kind::Equal);
            options.encryption = Some(parser.string()?.eq_ignore_ascii_case("y"));
        } else {
            parser.expect_all(&["READ", "ONLY"])?;
            parser.take(Kind::Equal);
            let said = !parser.accept("DEFAULT") && parser.integer::<u8>()? != 0;
            options.read_only = Some(said);
        }
    }
    Ok(options)
}

/// `ALGORITHM`, `DEFINER` and `SQL SECURITY` before the word `VIEW`.
pub(super) fn view_head(parser: &mut Parser<'_>) -> Result<CreateView> {
    let mut view = empty_view();
    if parser.accept("ALGORITHM") {
        parser.need(Kind::Equal)?;
        view.algorithm = match parser.expect_any(&["UNDEFINED", "MERGE", "TEMPTABLE"])? {
            "UNDEFINED" => ViewAlgorithm::Undefined,
            "MERGE" => ViewAlgorithm::Merge,
            _ => ViewAlgorithm::TempTable,
        };
    }
    if parser.accept("DEFINER") {
        parser.need(Kind::Equal)?;
        view.definer = match account::account(parser)? {
            Account::Current => None,
            named => Some(named),
        };
    }
    if parser.accept_all(&["SQL", "SECURITY"]) {
        view.invoker_security = parser.expect_any(&["DEFINER", "INVOKER"])? == "INVOKER";
    }
    Ok(view)
}

/// From the word `VIEW` on.
pub(super) fn view(parser: &mut Parser<'_>, mut view: CreateView) -> Result<CreateView> {
    parser.expect("VIEW")?;
    view.view = parser.table_name()?;
    if parser.kind() == Kind::LeftParen {
        view.columns = parser.parens_list(Parser::ident)?;
    }
    parser.expect("AS")?;
    let first = parser.at;
    view.query = *query::query(parser)?;
    view.query_text = parser.text_since(first).to_owned();
    if parser.accept("WITH") {
        let local = parser.accept_any(&["CASCADED", "LOCAL"]) == Some("LOCAL");
        parser.expect_all(&["CHECK", "OPTION"])?;
        view.check_option = Some(if local { CheckOption::Local } else { CheckOption::Cascaded });
    }
    Ok(view)
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
