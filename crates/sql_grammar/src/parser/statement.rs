//! Selects the statement by its first words.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{CreateView, Expr, OnConflict, Statement};
use super::super::lexer::Kind;
use super::{
    Parser, account, admin, alter, column, dml, expression, query, schema, session, show, table,
    transaction,
};

/// The only statement of the text, up to its end or a semicolon.
pub(crate) fn whole_statement(parser: &mut Parser<'_>) -> Result<Statement> {
    if matches!(parser.kind(), Kind::End | Kind::Semicolon) && parser.tokens.len() <= 2 {
        return Err(SqlError::empty_query());
    }
    let statement = statement(parser)?;
    if !matches!(statement, Statement::Unsupported { .. }) {
        parser.take(Kind::Semicolon);
        parser.need(Kind::End)?;
    }
    Ok(statement)
}

/// The only expression of the text.
pub(crate) fn whole_expression(parser: &mut Parser<'_>) -> Result<Expr> {
    let expr = expression::expression(parser)?;
    parser.need(Kind::End)?;
    Ok(expr)
}

/// The only column type of the text.
pub(crate) fn whole_column_type(parser: &mut Parser<'_>) -> Result<super::super::ast::ColumnType> {
    let column_type = column::column_type(parser)?;
    parser.need(Kind::End)?;
    Ok(column_type)
}

pub(super) fn statement(parser: &mut Parser<'_>) -> Result<Statement> {
    if parser.kind() == Kind::LeftParen && query::begins_query_in_parens(parser) {
        return query::select_statement(parser).map(|s| Statement::Select(Box::new(s)));
    }
    match parser.upper().as_str() {
        "SELECT" | "VALUES" | "TABLE" => {
            query::select_statement(parser).map(|s| Statement::Select(Box::new(s)))
        }
        "WITH" => with_statement(parser),
        "INSERT" | "REPLACE" => dml::insert(parser),
        "UPDATE" => dml::update(parser, None),
        "DELETE" => dml::delete(parser, None),
        "LOAD" => dml::load(parser),
        "DO" => {
            parser.at += 1;
            parser.list(expression::expression).map(Statement::Do)
        }
        "CALL" => dml::call(parser),
        "HANDLER" => dml::handler(parser),
        "CREATE" => create(parser),
        "ALTER" => alter(parser),
        "DROP" => drop(parser),
        "RENAME" => rename(parser),
        "TRUNCATE" => {
            parser.at += 1;
            parser.accept("TABLE");
            parser.table_name().map(Statement::Truncate)
        }
        _ => statement_of_session(parser),
    }
}

fn statement_of_session(parser: &mut Parser<'_>) -> Result<Statement> {
    match parser.upper().as_str() {
        "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "XA" | "LOCK"
        | "UNLOCK" => transaction::transaction_statement(parser),
        "SET" => session::set(parser),
        "USE" => {
            parser.at += 1;
            parser.ident().map(Statement::Use)
        }
        "PREPARE" => session::prepare(parser),
        "EXECUTE" => session::execute(parser),
        "DEALLOCATE" => {
            parser.at += 1;
            session::deallocate(parser)
        }
        "SHOW" => show::show(parser).map(|show| Statement::Show(Box::new(show))),
        "DESCRIBE" | "DESC" | "EXPLAIN" => session::explain(parser),
        "HELP" => {
            parser.at += 1;
            parser.ident_or_text().map(Statement::Help)
        }
        "KILL" => session::kill(parser),
        "GET" => session::get_diagnostics(parser),
        "SIGNAL" => session::signal(parser),
        "RESIGNAL" => session::resignal(parser),
        "GRANT" => account::grant(parser),
        "REVOKE" => account::revoke(parser),
        _ => statement_of_server(parser),
    }
}

fn statement_of_server(parser: &mut Parser<'_>) -> Result<Statement> {
    match parser.upper().as_str() {
        "ANALYZE" | "CHECK" | "CHECKSUM" | "OPTIMIZE" | "REPAIR" => admin::maintenance(parser),
        "FLUSH" => admin::flush(parser),
        "RESET" => admin::reset(parser),
        "PURGE" => admin::purge(parser),
        word => match unsupported(word) {
            Some(what) => Ok(Statement::Unsupported { what }),
            None => parser.error(),
        },
    }
}

fn with_statement(parser: &mut Parser<'_>) -> Result<Statement> {
    let first = parser.at;
    let parameters = parser.parameters;
    let with = query::with(parser)?;
    match parser.upper().as_str() {
        "UPDATE" => dml::update(parser, with),
        "DELETE" => dml::delete(parser, with),
        _ => {
            (parser.at, parser.parameters) = (first, parameters);
            query::select_statement(parser).map(|s| Statement::Select(Box::new(s)))
        }
    }
}

fn create(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("CREATE")?;
    match parser.upper().as_str() {
        "DATABASE" | "SCHEMA" => schema::create_database(parser),
        "TEMPORARY" | "TABLE" => table::create_table(parser),
        "UNIQUE" | "FULLTEXT" | "SPATIAL" | "INDEX" => table::create_index(parser),
        "USER" => account::create_user(parser),
        "ROLE" => account::create_role(parser),
        "PROCEDURE" => unsupported_as("CREATE PROCEDURE"),
        "FUNCTION" | "AGGREGATE" => unsupported_as("CREATE FUNCTION"),
        "TRIGGER" => unsupported_as("CREATE TRIGGER"),
        "EVENT" => unsupported_as("CREATE EVENT"),
        "SERVER" => unsupported_as("CREATE SERVER"),
        "TABLESPACE" | "UNDO" => unsupported_as("CREATE TABLESPACE"),
        "LOGFILE" => unsupported_as("CREATE LOGFILE GROUP"),
        "RESOURCE" => unsupported_as("CREATE RESOURCE GROUP"),
        _ if parser.are(&["OR", "REPLACE", "SPATIAL"]) => {
            unsupported_as("CREATE SPATIAL REFERENCE SYSTEM")
        }
        _ => {
            let or_replace = parser.accept_all(&["OR", "REPLACE"]);
            create_with_definer(parser, or_replace, false)
        }
    }
}

/// Objects that may have `DEFINER` before them: views, and stored programs.
fn create_with_definer(
    parser: &mut Parser<'_>,
    or_replace: bool,
    alter: bool,
) -> Result<Statement> {
    let head = schema::view_head(parser)?;
    match parser.upper().as_str() {
        "VIEW" => {
            let view = CreateView { or_replace, alter, ..head };
            schema::view(parser, view).map(|view| Statement::CreateView(Box::new(view)))
        }
        "PROCEDURE" => unsupported_as("CREATE PROCEDURE"),
        "FUNCTION" => unsupported_as("CREATE FUNCTION"),
        "TRIGGER" => unsupported_as("CREATE TRIGGER"),
        "EVENT" => unsupported_as("CREATE EVENT"),
        _ => parser.error(),
    }
}

fn alter(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("ALTER")?;
    match parser.upper().as_str() {
        "DATABASE" | "SCHEMA" => schema::alter_database(parser),
        "TABLE" => alter::alter_table(parser),
        "USER" => account::alter_user(parser),
        "PROCEDURE" => unsupported_as("ALTER PROCEDURE"),
        "FUNCTION" => unsupported_as("ALTER FUNCTION"),
        "EVENT" => unsupported_as("ALTER EVENT"),
        "SERVER" => unsupported_as("ALTER SERVER"),
        "INSTANCE" if parser.accept_all(&["INSTANCE", "SWITCHOVER"]) => {
            let to = parser.accept("TO").then(|| parser.ident_or_text()).transpose()?;
            Ok(Statement::Switchover { to })
        }
        "INSTANCE" => unsupported_as("ALTER INSTANCE"),
        "TABLESPACE" | "UNDO" => unsupported_as("ALTER TABLESPACE"),
        "LOGFILE" => unsupported_as("ALTER LOGFILE GROUP"),
        "RESOURCE" => unsupported_as("ALTER RESOURCE GROUP"),
        _ => create_with_definer(parser, false, true),
    }
}

fn drop(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("DROP")?;
    match parser.upper().as_str() {
        "DATABASE" | "SCHEMA" => {
            parser.at += 1;
            let if_exists = parser.if_exists();
            Ok(Statement::DropDatabase { if_exists, name: parser.ident()? })
        }
        "TEMPORARY" | "TABLE" | "TABLES" => table::drop_table(parser),
        "INDEX" => table::drop_index(parser),
        "VIEW" => {
            parser.at += 1;
            let if_exists = parser.if_exists();
            let views = parser.list(Parser::table_name)?;
            let _ = parser.accept_any(&["RESTRICT", "CASCADE"]);
            Ok(Statement::DropView { if_exists, views })
        }
        "USER" => account::drop_user(parser),
        "ROLE" => account::drop_role(parser),
        "PREPARE" => session::deallocate(parser),
        "PROCEDURE" => drop_program(parser, "PROCEDURE"),
        "FUNCTION" => drop_program(parser, "FUNCTION"),
        "TRIGGER" => drop_program(parser, "TRIGGER"),
        "EVENT" => drop_program(parser, "EVENT"),
        "SERVER" => unsupported_as("DROP SERVER"),
        "TABLESPACE" | "UNDO" => unsupported_as("DROP TABLESPACE"),
        "LOGFILE" => unsupported_as("DROP LOGFILE GROUP"),
        "RESOURCE" => unsupported_as("DROP RESOURCE GROUP"),
        "SPATIAL" => unsupported_as("DROP SPATIAL REFERENCE SYSTEM"),
        _ => parser.error(),
    }
}

fn drop_program(parser: &mut Parser<'_>, kind: &'static str) -> Result<Statement> {
    parser.at += 1;
    let if_exists = parser.if_exists();
    Ok(Statement::DropProgram { kind, if_exists, name: parser.table_name()? })
}

fn rename(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.expect("RENAME")?;
    if parser.is("USER") {
        return account::rename_user(parser);
    }
    parser.expect_any(&["TABLE", "TABLES"])?;
    let pairs = parser.list(|parser| {
        let from = parser.table_name()?;
        parser.expect("TO")?;
        Ok((from, parser.table_name()?))
    })?;
    Ok(Statement::RenameTable(pairs))
}

/// `IGNORE` or `REPLACE`, for rows whose keys already exist.
pub(super) fn on_conflict(parser: &mut Parser<'_>) -> OnConflict {
    match parser.accept_any(&["IGNORE", "REPLACE"]) {
        Some("IGNORE") => OnConflict::Ignore,
        Some(_) => OnConflict::Replace,
        None => OnConflict::Refuse,
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
