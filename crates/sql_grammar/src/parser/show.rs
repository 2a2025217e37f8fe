//! `SHOW`.

use firn_sql_types::error::Result;

use super::super::ast::{Show, ShowCreate, ShowFilter, TableName};
use super::super::lexer::Kind;
use super::{Parser, account, query};

pub(super) fn show(parser: &mut Parser<'_>) -> Result<Show> {
    parser.expect("SHOW")?;
    let extended = parser.accept("EXTENDED");
    let full = parser.accept("FULL");
    if extended || full {
        return show_with_words(parser, extended, full);
    }
    let scope = parser.accept_any(&["GLOBAL", "SESSION", "LOCAL"]);
    let global = scope.map(|word| word == "GLOBAL");
    match parser.upper().as_str() {
        "VARIABLES" => {
            parser.at += 1;
            Ok(Show::Variables { global: global == Some(true), filter: show_filter(parser)? })
        }
        "STATUS" => {
            parser.at += 1;
            Ok(Show::Status { global: global == Some(true), filter: show_filter(parser)? })
        }
        _ if global.is_some() => parser.error(),
        "TABLES" | "COLUMNS" | "FIELDS" | "PROCESSLIST" | "INDEX" | "INDEXES" | "KEYS" => {
            show_with_words(parser, false, false)
        }
        "CREATE" => show_create(parser).map(Show::Create),
        _ => show_catalog(parser),
    }
}

fn show_with_words(parser: &mut Parser<'_>, extended: bool, full: bool) -> Result<Show> {
    match parser.upper().as_str() {
        "TABLES" => {
            parser.at += 1;
            let schema = show_schema(parser)?;
            Ok(Show::Tables { extended, full, schema, filter: show_filter(parser)? })
        }
        "COLUMNS" | "FIELDS" => {
            parser.at += 1;
            let table = show_table(parser)?;
            Ok(Show::Columns { extended, full, table, filter: show_filter(parser)? })
        }
        "INDEX" | "INDEXES" | "KEYS" if !full => {
            parser.at += 1;
            let table = show_table(parser)?;
            let filter = query::where_clause(parser)?.map(ShowFilter::Where);
            Ok(Show::Indexes { extended, table, filter })
        }
        "PROCESSLIST" if !extended => {
            parser.at += 1;
            Ok(Show::Processlist { full })
        }
        _ => parser.error(),
    }
}

/// Objects of the catalog.
fn show_catalog(parser: &mut Parser<'_>) -> Result<Show> {
    match parser.upper().as_str() {
        "DATABASES" | "SCHEMAS" => {
            parser.at += 1;
            show_filter(parser).map(Show::Databases)
        }
        "TABLE" => {
            parser.expect_all(&["TABLE", "STATUS"])?;
            let schema = show_schema(parser)?;
            Ok(Show::TableStatus { schema, filter: show_filter(parser)? })
        }
        "OPEN" => {
            parser.expect_all(&["OPEN", "TABLES"])?;
            let schema = show_schema(parser)?;
            Ok(Show::OpenTables { schema, filter: show_filter(parser)? })
        }
        "TRIGGERS" => {
            parser.at += 1;
            let schema = show_schema(parser)?;
            Ok(Show::Triggers { schema, filter: show_filter(parser)? })
        }
        "EVENTS" => {
            parser.at += 1;
            let schema = show_schema(parser)?;
            Ok(Show::Events { schema, filter: show_filter(parser)? })
        }
        "PROCEDURE" => {
            parser.expect_all(&["PROCEDURE", "STATUS"])?;
            show_filter(parser).map(Show::ProcedureStatus)
        }
        "FUNCTION" => {
            parser.expect_all(&["FUNCTION", "STATUS"])?;
            show_filter(parser).map(Show::FunctionStatus)
        }
        "CHARACTER" | "CHAR" | "CHARSET" => {
            if !parser.charset_words() {
                return parser.error();
            }
            show_filter(parser).map(Show::CharacterSets)
        }
        "COLLATION" => {
            parser.at += 1;
            show_filter(parser).map(Show::Collations)
        }
        _ => show_server(parser),
    }
}

/// Objects of the server and of the session.
fn show_server(parser: &mut Parser<'_>) -> Result<Show> {
    let word = parser.upper();
    if parser.kind() != Kind::Word {
        return parser.error();
    }
    parser.at += 1;
    Ok(match word.as_str() {
        "WARNINGS" => Show::Warnings(show_limit(parser)?),
        "ERRORS" => Show::Errors(show_limit(parser)?),
        "COUNT" => {
            parser.parens(|parser| parser.need(Kind::Star))?;
            match parser.expect_any(&["WARNINGS", "ERRORS"])? {
                "WARNINGS" => Show::WarningCount,
                _ => Show::ErrorCount,
            }
        }
        "ENGINES" => Show::Engines,
        "STORAGE" => parser.expect("ENGINES").map(|()| Show::Engines)?,
        "ENGINE" => {
            let name = if parser.accept("ALL") { None } else { Some(parser.ident_or_text()?) };
            let what = parser.expect_any(&["STATUS", "MUTEX", "LOGS"])?.to_owned();
            Show::Engine { name, what }
        }
        "PRIVILEGES" => Show::Privileges,
        "PLUGINS" => Show::Plugins,
        "GRANTS" => show_grants(parser)?,
        "PROFILES" => Show::Profiles,
        "PROFILE" => show_profile(parser)?,
        "BINARY" => match parser.accept("LOG") {
            true => parser.expect("STATUS").map(|()| Show::BinaryLogStatus)?,
            false => parser.expect("LOGS").map(|()| Show::BinaryLogs)?,
        },
        "MASTER" => match parser.expect_any(&["STATUS", "LOGS"])? {
            "STATUS" => Show::BinaryLogStatus,
            _ => Show::BinaryLogs,
        },
        "BINLOG" | "RELAYLOG" => show_log_events(parser)?,
        "REPLICAS" => Show::Replicas,
        "REPLICA" | "SLAVE" => match parser.expect_any(&["STATUS", "HOSTS"])? {
            "STATUS" => {
                if parser.accept_all(&["FOR", "CHANNEL"]) {
                    parser.ident_or_text()?;
                }
                Show::ReplicaStatus
            }
            _ => Show::Replicas,
        },
        _ => {
            parser.at -= 1;
            return parser.error();
        }
    })
}

fn show_grants(parser: &mut Parser<'_>) -> Result<Show> {
    let account = if parser.accept("FOR") { Some(account::account(parser)?) } else { None };
    let using = match account.is_some() && parser.accept("USING") {
        true => parser.list(account::account)?,
        false => Vec::new(),
    };
    Ok(Show::Grants { account, using })
}

fn show_profile(parser: &mut Parser<'_>) -> Result<Show> {
    while parser.kind() == Kind::Word && !parser.is_any(&["FOR", "LIMIT"]) {
        parser.at += 1;
        parser.take(Kind::Comma);
    }
    if parser.accept_all(&["FOR", "QUERY"]) {
        parser.integer::<u64>()?;
    }
    show_limit(parser)?;
    Ok(Show::Profile)
}

fn show_log_events(parser: &mut Parser<'_>) -> Result<Show> {
    parser.expect("EVENTS")?;
    if parser.accept("IN") {
        parser.string()?;
    }
    if parser.accept("FROM") {
        parser.integer::<u64>()?;
    }
    show_limit(parser)?;
    Ok(Show::BinlogEvents)
}

fn show_create(parser: &mut Parser<'_>) -> Result<ShowCreate> {
    parser.expect("CREATE")?;
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
    Ok(match parser.expect_any(&words)? {
        "DATABASE" | "SCHEMA" => {
            let if_not_exists = parser.if_not_exists();
            ShowCreate::Database { name: parser.ident()?, if_not_exists }
        }
        "TABLE" => ShowCreate::Table(parser.table_name()?),
        "VIEW" => ShowCreate::View(parser.table_name()?),
        "PROCEDURE" => ShowCreate::Procedure(parser.table_name()?),
        "FUNCTION" => ShowCreate::Function(parser.table_name()?),
        "TRIGGER" => ShowCreate::Trigger(parser.table_name()?),
        "EVENT" => ShowCreate::Event(parser.table_name()?),
        _ => ShowCreate::User(account::account(parser)?),
    })
}

/// `FROM` or `IN` a database.
fn show_schema(parser: &mut Parser<'_>) -> Result<Option<String>> {
    match parser.accept_any(&["FROM", "IN"]) {
        Some(_) => parser.ident().map(Some),
        None => Ok(None),
    }
}

/// `FROM table [FROM database]`.
fn show_table(parser: &mut Parser<'_>) -> Result<TableName> {
    parser.expect_any(&["FROM", "IN"])?;
    let mut table = parser.table_name()?;
    if let Some(schema) = show_schema(parser)? {
        table.schema = Some(schema);
    }
    Ok(table)
}

/// `LIKE` or `WHERE`.
fn show_filter(parser: &mut Parser<'_>) -> Result<Option<ShowFilter>> {
    if parser.accept("LIKE") {
        return Ok(Some(ShowFilter::Like(parser.string()?)));
    }
    Ok(query::where_clause(parser)?.map(ShowFilter::Where))
}

/// `LIMIT`, as offset and count.
fn show_limit(parser: &mut Parser<'_>) -> Result<Option<(u64, u64)>> {
    if !parser.accept("LIMIT") {
        return Ok(None);
    }
    let first = parser.integer()?;
    if parser.take(Kind::Comma) {
        return Ok(Some((first, parser.integer()?)));
    }
    let offset = if parser.accept("OFFSET") { parser.integer()? } else { 0 };
    Ok(Some((offset, first)))
}
