//! A MySQL client behind sqllogictest's database interface.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};
use sqllogictest::{DB, DBOutput, DefaultColumnType};

/// An error as the `mysql` program prints it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ClientError(String);

impl ClientError {
    /// The number of a server's error; for other errors, the whole text.
    pub(crate) fn code(&self) -> String {
        self.0.split(": ").next().unwrap_or_default().to_owned()
    }
}

impl From<mysql::Error> for ClientError {
    fn from(error: mysql::Error) -> ClientError {
        ClientError(match error {
            mysql::Error::MySqlError(error) => {
                format!("ERROR {} ({}): {}", error.code, error.state, error.message)
            }
            other => other.to_string(),
        })
    }
}

pub(crate) struct Client {
    connection: Conn,
}

impl Client {
    pub(crate) fn connect(port: u16, schema: Option<&str>) -> Client {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .user(Some("root"))
            .db_name(schema)
            .prefer_socket(false);
        Client { connection: Conn::new(options).expect("a connection") }
    }

    /// The connection, for calls that scripts cannot express.
    pub(crate) fn connection(&mut self) -> &mut Conn {
        &mut self.connection
    }

    pub(crate) fn into_connection(self) -> Conn {
        self.connection
    }

    pub(crate) fn set_global(&mut self, assignment: &str) {
        self.connection.query_drop(format!("SET GLOBAL {assignment}")).expect("a setting");
    }

    /// The value of a status variable.
    pub(crate) fn status(&mut self, name: &str) -> u64 {
        let found = self.connection.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        let (_, count): (String, u64) = found.expect("a status").expect("a counter");
        count
    }

    pub(crate) fn make_schema(&mut self, schema: &str) {
        self.connection.query_drop(format!("DROP DATABASE IF EXISTS {schema}")).expect("a drop");
        self.connection.query_drop(format!("CREATE DATABASE {schema}")).expect("a schema");
    }
}

fn shown(value: Value) -> String {
    match value {
        Value::NULL => "NULL".to_owned(),
        Value::Bytes(bytes) if bytes.is_empty() => "(empty)".to_owned(),
        Value::Bytes(bytes) => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let hex = error.as_bytes().iter().map(|byte| format!("{byte:02x}"));
                format!("0x{}", hex.collect::<String>())
            }
        },
        other => other.as_sql(false),
    }
}

impl DB for Client {
    type Error = ClientError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, text: &str) -> Result<DBOutput<DefaultColumnType>, ClientError> {
        let mut result = self.connection.query_iter(text)?;
        let columns = result.columns().as_ref().len();
        if columns == 0 {
            return Ok(DBOutput::StatementComplete(result.affected_rows()));
        }
        let mut rows = Vec::new();
        for row in result.by_ref() {
            rows.push(row?.unwrap().into_iter().map(shown).collect());
        }
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows })
    }

    fn engine_name(&self) -> &str {
        "firn"
    }
}
