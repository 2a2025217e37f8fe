//! Sessions of root without a connection.

use std::sync::Arc;

use firn_compute::{Instance, SqlService};
use firn_node::endpoint::Endpoint;
use firn_wire::{
    Capabilities, ConnectionControl, Connections, Login, PeerAddress, Query, ReplyRecorder,
    RowFormat, Service, Session, WireError,
};

pub(crate) fn login(instance: &Instance) -> Login {
    let ids = instance.connection_ids();
    Login {
        connection: Arc::new(ConnectionControl::relayed(*ids.end(), PeerAddress::Unix)),
        connections: Arc::new(Connections::new(ids)),
        user: "root".to_owned(),
        account: "root@localhost".to_owned(),
        schema: Some("shop".to_owned()),
        collation: 255,
        capabilities: Capabilities::PROTOCOL_41,
        attributes: Vec::new(),
        tls: None,
    }
}

pub(crate) fn service(endpoint: &Endpoint) -> SqlService {
    SqlService::new(Arc::clone(endpoint.instance()))
}

/// A session in the schema `shop`.
pub(crate) fn open(endpoint: &Endpoint) -> Box<dyn Session> {
    service(endpoint).open(login(endpoint.instance())).unwrap()
}

/// The packets of the answer, or the error.
pub(crate) fn ask(session: &mut dyn Session, text: &str) -> Result<Vec<u8>, String> {
    let mut recorder = ReplyRecorder::new(RowFormat::Text);
    let query = Query { text: text.as_bytes(), attributes: &[], multi_statements: false };
    match session.query(query, &mut recorder.replies()) {
        Ok(()) => Ok(recorder.take()),
        Err(WireError::Refused(error)) => Err(format!("{} {}", error.code, error.message)),
        Err(error) => panic!("{text}: {error}"),
    }
}

pub(crate) fn run(session: &mut dyn Session, text: &str) {
    ask(session, text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// The only value that a query returns.
pub(crate) fn value(session: &mut dyn Session, text: &str) -> Result<String, String> {
    let sent = ask(session, text)?;
    let (mut packets, mut rest) = (Vec::new(), &sent[..]);
    while let Some(([a, b, c, _], after)) = rest.split_first_chunk() {
        let (packet, others) = after.split_at(u32::from_le_bytes([*a, *b, *c, 0]) as usize);
        packets.push(packet);
        rest = others;
    }
    // How many columns, the column, the row, the end.
    let [_, _, row, _] = packets[..] else { panic!("{text} returns {} packets", packets.len()) };
    Ok(String::from_utf8_lossy(&row[1..]).into_owned())
}

/// The error number of a statement that is refused.
pub(crate) fn refusal(session: &mut dyn Session, text: &str) -> u16 {
    let error = ask(session, text).expect_err(text);
    error.split(' ').next().and_then(|code| code.parse().ok()).expect("an error has a number")
}
