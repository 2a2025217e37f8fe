//! The protocol alone, as a baseline for servers: `canned_row PORT` answers each query and each
//! prepared statement with the same row of one text of 119 characters, as sysbench's point selects
//! return it, and everything else with OK.

use firn_base::network::Address;
use std::sync::Arc;

use firn_base::Environment;
use firn_base::event::Event;
use firn_wire::auth::AuthPlugin;
use firn_wire::{
    CancelReason, Canceller, ColumnDefinition, ColumnType, Completion, Credentials, EncodedColumns,
    Execution, FieldDefinition, Login, Prepared, Query, Replies, Server, ServerError,
    ServerOptions, Service, Session, Status, WireError,
};

/// The row's text.
const TEXT: &[u8] = b"68487932199-96439406143-93774651418-41631865787-96406072701-\
    20604855487-25459966574-28203206787-41238978918-19503783441";

fn done() -> Completion<'static> {
    Completion { status: Status::AUTOCOMMIT, ..Completion::default() }
}

struct CannedService;

impl Service for CannedService {
    fn credentials(&self, user: &str, _host: &str) -> Result<Credentials, ServerError> {
        Ok(Credentials::new(format!("{user}@%"), AuthPlugin::CachingSha2Password, String::new()))
    }

    fn open(&self, _login: Login) -> Result<Box<dyn Session>, ServerError> {
        let column = ColumnDefinition {
            collation: 255,
            length_bytes: 480,
            ..ColumnDefinition::new("c", ColumnType::String)
        };
        Ok(Box::new(CannedSession { columns: EncodedColumns::new(&[column]) }))
    }
}

struct CannedSession {
    columns: EncodedColumns,
}

impl CannedSession {
    fn answer(&self, replies: &mut Replies<'_>) -> Result<(), WireError> {
        let mut rows = replies.encoded_columns(&self.columns)?;
        let mut row = rows.row()?;
        row.bytes(TEXT);
        row.end();
        rows.finish(&done())
    }
}

impl Session for CannedSession {
    fn query(&mut self, _query: Query<'_>, replies: &mut Replies<'_>) -> Result<(), WireError> {
        self.answer(replies)
    }

    fn prepare(&mut self, _statement: u32, text: &[u8]) -> Result<Prepared, WireError> {
        let parameters = text.iter().filter(|&&byte| byte == b'?').count();
        let question = ColumnDefinition::new("?", ColumnType::VarString);
        Ok(Prepared {
            parameters: EncodedColumns::new(&vec![question; parameters]),
            columns: self.columns.clone(),
            warnings: 0,
        })
    }

    fn execute(
        &mut self,
        _execution: Execution<'_>,
        replies: &mut Replies<'_>,
    ) -> Result<(), WireError> {
        self.answer(replies)
    }

    fn close_statement(&mut self, _statement: u32) {}

    fn init_db(&mut self, _schema: &[u8], replies: &mut Replies<'_>) -> Result<(), WireError> {
        replies.ok(&done())
    }

    fn reset(&mut self, replies: &mut Replies<'_>) -> Result<(), WireError> {
        replies.ok(&done())
    }

    fn statistics(&mut self) -> String {
        "canned".to_owned()
    }

    fn kill(&mut self, _connection: u32) -> Result<(), WireError> {
        Ok(())
    }

    fn field_list(&mut self, _: &[u8], _: &[u8]) -> Result<Vec<FieldDefinition>, WireError> {
        Ok(Vec::new())
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        Arc::new(Nothing)
    }
}

/// Nothing runs long enough to be interrupted.
struct Nothing;

impl Canceller for Nothing {
    fn cancel(&self, _reason: CancelReason) {}
}

fn main() {
    let port = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3307);
    let options = ServerOptions {
        listen: vec![Address::Tcp(([127, 0, 0, 1], port).into())],
        ..ServerOptions::default()
    };
    let server = Server::start(Environment::system(), options, Arc::new(CannedService))
        .expect("cannot start");
    println!("listening at {:?}", server.addresses());
    Event::new().wait_until(None, || false);
}
