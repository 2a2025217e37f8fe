//! Carries out the first messages of a connection.

use std::time::Duration;

use firn_base::Environment;
use firn_base::network::{Address, Connection, Delivery, NodeId, NodeIdentity};

use crate::error::LinkError;
use crate::hello::{Answer, Hello, Refusal, judge};

/// What both sides agreed on.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) peer: Hello,
    pub(crate) version: u16,
    /// The epoch that the connection speaks for; 0: none.
    pub(crate) epoch: u64,
    /// Whether a certificate proves who the peer is.
    pub(crate) is_certified: bool,
}

fn agreement(mine: &Hello, peer: Hello, version: u16, is_certified: bool) -> Agreement {
    let epoch = if peer.epoch == 0 { 0 } else { mine.epoch };
    Agreement { peer, version, epoch, is_certified }
}

/// The client's side. Blocks for `timeout` at most, twice.
///
/// # Errors
/// If the two sides may not talk, or the connection ended.
pub(crate) fn introduce(
    connection: &dyn Connection,
    mine: &Hello,
    wanted: Option<NodeId>,
    timeout: Duration,
) -> Result<Agreement, LinkError> {
    connection.send(&[&mine.encode()], timeout)?;
    let mut message = Vec::new();
    connection.receive(&mut message, Some(timeout))?;
    let answer = Answer::decode(&message)?;
    let version = judge(mine, &answer.hello)?;
    let client = || mine.identity.clone();
    let server = answer.hello.identity.clone();
    if let Some(reason) = answer.refusal {
        return Err(Box::new(Refusal::ByServer { client: client(), server, reason }).into());
    }
    let certified = connection.certified();
    let is_certified = certified.is_some();
    if let Some(certified) = certified.filter(|certified| *certified != server) {
        let refusal = Refusal::ServerCertificate { said: server, certified, client: client() };
        return Err(Box::new(refusal).into());
    }
    if let Some(wanted) = wanted.filter(|wanted| *wanted != server.node) {
        return Err(Box::new(Refusal::OtherNode { client: client(), server, wanted }).into());
    }
    Ok(agreement(mine, answer.hello, version, is_certified))
}

/// Asks who is at an address, for a process that does not know its cluster yet. The answer proves
/// nothing. Blocks for `timeout` at most, three times.
///
/// # Errors
/// If nobody answers, or not as a node does.
pub fn meet(
    environment: &Environment,
    address: &Address,
    own: NodeIdentity,
    timeout: Duration,
) -> Result<NodeIdentity, LinkError> {
    let connection = environment.network.connect(address, Delivery::InOrder, timeout)?;
    connection.send(&[&Hello::new(own, 0, 0).encode()], timeout)?;
    let mut message = Vec::new();
    connection.receive(&mut message, Some(timeout))?;
    connection.close();
    Ok(Answer::decode(&message)?.hello.identity)
}

/// The server's side. Blocks for `timeout` at most, twice.
///
/// # Errors
/// If the two sides may not talk, or the connection ended.
pub(crate) fn receive_introduction(
    connection: &dyn Connection,
    mine: Hello,
    timeout: Duration,
) -> Result<Agreement, LinkError> {
    let mut message = Vec::new();
    connection.receive(&mut message, Some(timeout))?;
    let peer = Hello::decode(&message)?;
    let certified = connection.certified();
    let is_certified = certified.is_some();
    let judged = judge(&peer, &mine).and_then(|version| {
        match certified.filter(|certified| *certified != peer.identity) {
            None => Ok(version),
            Some(certified) => Err(Box::new(Refusal::ClientCertificate {
                said: peer.identity.clone(),
                certified,
                server: mine.identity.clone(),
            })),
        }
    });
    let refusal = judged.as_ref().err().map(ToString::to_string);
    let answer = Answer { hello: mine, refusal };
    connection.send(&[&answer.encode()], timeout)?;
    let version = judged?;
    Ok(agreement(&answer.hello, peer, version, is_certified))
}
