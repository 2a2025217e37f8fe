//! `SET`, prepared statements, `EXPLAIN`, `KILL`, diagnostics.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    Explain, ExplainFormat, ExplainTarget, Expr, GetDiagnostics, PrepareSource, RoleChoice,
    SetItem, SetPassword, SetValue, Signal, Statement, TransactionScope, VariableScope,
};
use super::super::lexer::Kind;
use super::{Parser, account, expression, statement, transaction};

pub(super) fn set(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("SET")?;
    if let Some(statement) = set_statement(parser)? {
        return Ok(statement);
    }
    let mut items = vec![set_item(parser, VariableScope::Session)?];
    while parser.take(Kind::Comma) {
        items.push(set_item(parser, VariableScope::Session)?);
    }
    Ok(Statement::Set(items))
}

/// Statements that begin with `SET` and set no variable.
fn set_statement(parser: &mut Parser<'_>) -> Result<Option<Statement>> {
    let scopes = [
        ("GLOBAL", TransactionScope::Global),
        ("SESSION", TransactionScope::Session),
        ("LOCAL", TransactionScope::Session),
    ];
    for (word, scope) in scopes {
        if parser.accept_all(&[word, "TRANSACTION"]) {
            return transaction::set_transaction(parser, scope).map(Some);
        }
    }
    if parser.is_at(1, "ISOLATION") || parser.is_at(1, "READ") {
        parser.expect("TRANSACTION")?;
        return transaction::set_transaction(parser, TransactionScope::Next).map(Some);
    }
    if parser.is("PASSWORD") && parser.kind_at(1) != Kind::Dot {
        return set_password(parser).map(Some);
    }
    if parser.accept_all(&["DEFAULT", "ROLE"]) {
        let roles = role_choice(parser)?;
        parser.expect("TO")?;
        let to = parser.list(account::account)?;
        return Ok(Some(Statement::SetDefaultRole { roles, to }));
    }
    if parser.is("ROLE") && !matches!(parser.kind_at(1), Kind::Equal | Kind::Assign) {
        parser.at += 1;
        return role_choice(parser).map(|choice| Some(Statement::SetRole(choice)));
    }
    if parser.are(&["RESOURCE", "GROUP"]) {
        return Ok(Some(Statement::Unsupported { what: "SET RESOURCE GROUP" }));
    }
    Ok(None)
}

/// `NONE`, `ALL`, `ALL EXCEPT …`, `DEFAULT`, or roles.
pub(super) fn role_choice(parser: &mut Parser<'_>) -> Result<RoleChoice> {
    if parser.accept("NONE") {
        return Ok(RoleChoice::None);
    }
    if parser.accept("DEFAULT") {
        return Ok(RoleChoice::Default);
    }
    if parser.accept("ALL") {
        return match parser.accept("EXCEPT") {
            true => parser.list(account::account).map(RoleChoice::AllExcept),
            false => Ok(RoleChoice::All),
        };
    }
    parser.list(account::account).map(RoleChoice::Roles)
}

fn set_password(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("PASSWORD")?;
    let account = if parser.accept("FOR") { Some(account::account(parser)?) } else { None };
    let password = if parser.accept_all(&["TO", "RANDOM"]) {
        None
    } else {
        if !parser.take(Kind::Equal) {
            parser.need(Kind::Assign)?;
        }
        Some(parser.string()?)
    };
    let current_password = if parser.accept("REPLACE") { Some(parser.string()?) } else { None };
    let retain_current = parser.accept_all(&["RETAIN", "CURRENT", "PASSWORD"]);
    let set = SetPassword { account, password, current_password, retain_current };
    Ok(Statement::SetPassword(set))
}

fn set_item(parser: &mut Parser<'_>, scope: VariableScope) -> Result<SetItem> {
    if parser.kind() == Kind::UserVariable {
        let name = parser.variable()?;
        assigns(parser)?;
        return Ok(SetItem::UserVariable { name, value: expression::expression(parser)? });
    }
    if parser.kind() == Kind::AtAt {
        let (said, name) = expression::system_variable_name(parser)?;
        assigns(parser)?;
        let scope = match said.as_str() {
            "global" => VariableScope::Global,
            "persist" => VariableScope::Persist,
            "persist_only" => VariableScope::PersistOnly,
            _ => VariableScope::Session,
        };
        return Ok(SetItem::SystemVariable { scope, name, value: set_value(parser)? });
    }
    if parser.is("NAMES") && !assigns_at(parser, 1) {
        return set_names(parser);
    }
    if parser.is_any(&["CHARACTER", "CHAR", "CHARSET"]) && parser.charset_words() {
        let charset = if parser.accept("DEFAULT") { None } else { Some(parser.word_or_text()?) };
        return Ok(SetItem::CharacterSet(charset));
    }
    let scope = scope_word(parser).unwrap_or(scope);
    let mut name = any_variable_name(parser)?;
    if parser.take(Kind::Dot) {
        name = format!("{name}.{}", parser.any_ident()?.to_ascii_lowercase());
    }
    assigns(parser)?;
    Ok(SetItem::SystemVariable { scope, name, value: set_value(parser)? })
}

fn any_variable_name(parser: &mut Parser<'_>) -> Result<String> {
    parser.ident().map(|name| name.to_ascii_lowercase())
}

fn scope_word(parser: &mut Parser<'_>) -> Option<VariableScope> {
    if assigns_at(parser, 1) {
        return None;
    }
    Some(match parser.accept_any(&["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"])? {
        "GLOBAL" => VariableScope::Global,
        "PERSIST" => VariableScope::Persist,
        "PERSIST_ONLY" => VariableScope::PersistOnly,
        _ => VariableScope::Session,
    })
}

fn assigns_at(parser: &Parser<'_>, ahead: usize) -> bool {
    matches!(parser.kind_at(ahead), Kind::Equal | Kind::Assign)
}

fn assigns(parser: &mut Parser<'_>) -> Result<()> {
    if !assigns_at(parser, 0) {
        return parser.error();
    }
    parser.at += 1;
    Ok(())
}

fn set_value(parser: &mut Parser<'_>) -> Result<SetValue> {
    let ends = matches!(parser.kind_at(1), Kind::Comma | Kind::Semicolon | Kind::End);
    if ends && parser.accept("DEFAULT") {
        return Ok(SetValue::Default);
    }
    if ends && let Some(word) = parser.accept_any(&["ON", "ALL", "BINARY", "ROW", "SYSTEM"]) {
        return Ok(SetValue::Word(word.to_owned()));
    }
    expression::expression(parser).map(SetValue::Value)
}

fn set_names(parser: &mut Parser<'_>) -> Result<SetItem> {
    parser.expect("NAMES")?;
    if parser.accept("DEFAULT") {
        return Ok(SetItem::Names { charset: None, collation: None });
    }
    let charset = Some(parser.word_or_text()?);
    let collation = if parser.accept("COLLATE") { Some(parser.word_or_text()?) } else { None };
    Ok(SetItem::Names { charset, collation })
}

pub(super) fn prepare(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("PREPARE")?;
    let name = parser.ident()?;
    parser.expect("FROM")?;
    let source = match parser.kind() {
        Kind::UserVariable => PrepareSource::Variable(parser.variable()?),
        _ => PrepareSource::Text(parser.string()?),
    };
    Ok(Statement::Prepare { name, source })
}

pub(super) fn execute(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("EXECUTE")?;
    let name = parser.ident()?;
    let using = if parser.accept("USING") { parser.list(Parser::variable)? } else { Vec::new() };
    Ok(Statement::Execute { name, using })
}

pub(super) fn deallocate(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("PREPARE")?;
    parser.ident().map(Statement::Deallocate)
}

/// `DESCRIBE` of a table, or `EXPLAIN` of a statement; the three words mean the same.
pub(super) fn explain(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect_any(&["DESCRIBE", "DESC", "EXPLAIN"])?;
    let analyze = parser.accept("ANALYZE");
    let format = explain_format(parser)?;
    let into = if parser.accept("INTO") { Some(parser.variable()?) } else { None };
    if parser.accept("FOR") {
        if parser.accept("CONNECTION") {
            let target = ExplainTarget::Connection(parser.integer()?);
            let explain = Explain { analyze, format, into, target };
            return Ok(Statement::Explain(Box::new(explain)));
        }
        parser.expect_any(&["SCHEMA", "DATABASE"])?;
        return Err(SqlError::not_supported("EXPLAIN FOR SCHEMA"));
    }
    if !begins_explainable(parser) {
        if analyze || format.is_some() || into.is_some() {
            return parser.error();
        }
        let table = parser.table_name()?;
        let named = matches!(parser.kind(), Kind::Word | Kind::Quoted | Kind::Text);
        let column = if named { Some(parser.ident_or_text()?) } else { None };
        return Ok(Statement::Describe { table, column });
    }
    let target = ExplainTarget::Statement(statement::statement(parser)?);
    Ok(Statement::Explain(Box::new(Explain { analyze, format, into, target })))
}

fn begins_explainable(parser: &Parser<'_>) -> bool {
    parser.is_any(&["SELECT", "WITH", "TABLE", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"])
        || parser.kind() == Kind::LeftParen
}

fn explain_format(parser: &mut Parser<'_>) -> Result<Option<ExplainFormat>> {
    if !(parser.is("FORMAT") && parser.kind_at(1) == Kind::Equal) {
        parser.accept_any(&["EXTENDED", "PARTITIONS"]);
        return Ok(None);
    }
    parser.at += 2;
    let name = parser.ident_or_text()?;
    match name.to_ascii_uppercase().as_str() {
        "TRADITIONAL" | "DEFAULT" => Ok(Some(ExplainFormat::Traditional)),
        "JSON" => Ok(Some(ExplainFormat::Json)),
        "TREE" => Ok(Some(ExplainFormat::Tree)),
        _ => Err(SqlError::new(1791, format!("Unknown EXPLAIN format name: '{name}'"))),
    }
}

pub(super) fn kill(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("KILL")?;
    let query_only = parser.accept_any(&["QUERY", "CONNECTION"]) == Some("QUERY");
    Ok(Statement::Kill { query_only, id: expression::expression(parser)? })
}

pub(super) fn get_diagnostics(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("GET")?;
    let stacked = parser.accept_any(&["CURRENT", "STACKED"]) == Some("STACKED");
    parser.expect("DIAGNOSTICS")?;
    let condition = match parser.accept("CONDITION") {
        true => Some(expression::simple(parser)?),
        false => None,
    };
    let items = parser.list(|parser| {
        let variable = parser.variable()?;
        parser.need(Kind::Equal)?;
        Ok((variable, parser.ident()?.to_ascii_uppercase()))
    })?;
    Ok(Statement::GetDiagnostics(GetDiagnostics { stacked, condition, items }))
}

pub(super) fn signal(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("SIGNAL")?;
    parser.expect("SQLSTATE")?;
    parser.accept("VALUE");
    let sqlstate = Some(parser.string()?);
    let items = signal_items(parser)?;
    Ok(Statement::Signal(Signal { sqlstate, items }))
}

pub(super) fn resignal(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("RESIGNAL")?;
    let sqlstate = match parser.accept("SQLSTATE") {
        true => {
            parser.accept("VALUE");
            Some(parser.string()?)
        }
        false => None,
    };
    let items = signal_items(parser)?;
    Ok(Statement::Resignal(Signal { sqlstate, items }))
}

fn signal_items(parser: &mut Parser<'_>) -> Result<Vec<(String, Expr)>> {
    if !parser.accept("SET") {
        return Ok(Vec::new());
    }
    parser.list(|parser| {
        let item = parser.ident()?.to_ascii_uppercase();
        parser.need(Kind::Equal)?;
        Ok((item, expression::simple(parser)?))
    })
}
