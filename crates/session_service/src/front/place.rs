//! Where a session is open, and what its front keeps of it (S3).

use std::sync::Arc;

use firn_wire::{Carried, LastResults, Login, PeerAddress, ServerError, Session, Status};

use super::attachment::Attachment;
use super::local::LocalPlace;
use super::{LOGIN_TIMEOUT, Route, unreadable, was_not_executed};
use crate::message::{Ask, Done, LoginFacts, Outcome, Resumed, decode, encode};

/// Where a session is open.
pub(super) enum Place {
    Local(LocalPlace),
    Remote(Arc<Attachment>),
}

impl Place {
    pub(super) fn is_over(&self) -> bool {
        match self {
            Place::Local(place) => place.is_over(),
            Place::Remote(attachment) => attachment.is_over(),
        }
    }

    /// Whether the node wants sessions to go on elsewhere (S7).
    pub(super) fn is_leaving(&self) -> bool {
        match self {
            Place::Local(place) => place.all.is_leaving(),
            Place::Remote(attachment) => attachment.is_leaving(),
        }
    }

    /// Ends the session of that connection there.
    pub(super) fn leave(&self, session: u32) {
        match self {
            Place::Local(place) => place.leave(),
            Place::Remote(attachment) => attachment.leave(session),
        }
    }
}

/// What the front keeps of a session (S3).
pub(super) struct Kept {
    pub(super) status: Status,
    pub(super) document: Option<Vec<u8>>,
    /// Counts the documents.
    pub(super) version: u64,
    pub(super) last: LastResults,
    pub(super) is_bound: bool,
    pub(super) reads_at_home: bool,
}

/// How much of what is kept a place knows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// That of the document.
    pub(super) version: u64,
    pub(super) last: LastResults,
}

/// A prepared statement.
#[derive(Clone)]
pub(super) struct PreparedText {
    pub(super) text: Arc<[u8]>,
    pub(super) route: Route,
}

impl Kept {
    pub(super) fn new(document: Option<Vec<u8>>, last: LastResults) -> Kept {
        Kept {
            status: Status::AUTOCOMMIT,
            document,
            version: 0,
            last,
            is_bound: false,
            reads_at_home: false,
        }
    }

    /// Whether the login says all.
    pub(super) fn is_new(&self) -> bool {
        self.document.is_none() && self.last == LastResults::default() && self.may_leave()
    }

    pub(super) fn in_transaction(&self) -> bool {
        self.status.contains(Status::IN_TRANSACTION)
    }

    /// The open transaction has ended.
    pub(super) fn end_transaction(&mut self) {
        self.status.remove(Status::IN_TRANSACTION | Status::IN_TRANSACTION_READONLY);
    }

    /// Whether the session has nothing that it has to leave to go on at another node.
    pub(super) fn may_leave(&self) -> bool {
        !self.in_transaction() && !self.is_bound
    }

    /// What another node is told to open it.
    pub(super) fn resumed(&self) -> Resumed {
        Resumed {
            has_document: self.document.is_some(),
            last: self.last.into(),
            has_left: !self.may_leave(),
        }
    }

    /// Takes over what a session of this process tells.
    pub(super) fn take(&mut self, session: &mut dyn Session) {
        self.status = session.status();
        self.take_over(session.carried());
    }

    /// Takes over what an answer tells.
    pub(super) fn take_answer(&mut self, done: &Done) {
        self.status = done.status();
        self.take_over(Carried {
            document: done.document.as_ref().map(|document| document.0.clone()),
            last: done.last.into(),
            is_bound: done.is_bound,
            reads_at_home: done.reads_at_home,
        });
    }

    pub(super) fn take_over(&mut self, carried: Carried) {
        let Carried { document, last, is_bound, reads_at_home } = carried;
        (self.last, self.is_bound, self.reads_at_home) = (last, is_bound, reads_at_home);
        if document.is_some() {
            self.document = document;
            self.version += 1;
        }
    }

    /// What a place knows that has told all of it.
    pub(super) fn known(&self) -> Known {
        Known { version: self.version, last: self.last }
    }
}

/// Why a session is not open at a node.
pub(super) enum NotOpened {
    /// The node was not reached, or has not answered.
    Unanswered,
    Refused(ServerError),
}

/// Opens a session at another node, as a new one, or with what is kept of it. Blocks.
pub(super) fn open_at(
    attachment: &Arc<Attachment>,
    login: &Login,
    kept: &Kept,
    resumed: Option<Resumed>,
) -> Result<Done, NotOpened> {
    let ask = Ask::Open { front: attachment.front, login: facts(login), resumed };
    let mut body = firn_link::Body::from(encode(&ask));
    if let Some(document) = &kept.document {
        body.push(document.clone());
    }
    let asked = attachment.links.commands.call(attachment.service, body, LOGIN_TIMEOUT);
    let answer = asked.map_err(|error| {
        tracing::debug!(%error, "a session could not be opened");
        attachment.doubt(&error);
        // It may be open all the same. If not, its transaction waits for where it will be.
        if !was_not_executed(&error) {
            attachment.leave(login.connection.id());
        }
        NotOpened::Unanswered
    })?;
    let (done, _) =
        decode::<Done>(&answer).map_err(|error| NotOpened::Refused(unreadable(&error)))?;
    if let Outcome::Refused(fault) | Outcome::Fatal(fault) = done.outcome {
        if fault.did_nothing() {
            attachment.begin_leaving();
            return Err(NotOpened::Unanswered);
        }
        return Err(NotOpened::Refused(fault.into()));
    }
    attachment.enter(&login.connection);
    Ok(done)
}

fn facts(login: &Login) -> LoginFacts {
    LoginFacts {
        connection: login.connection.id(),
        peer: match login.peer() {
            PeerAddress::Tcp(address) => Some(*address),
            PeerAddress::Unix => None,
        },
        user: login.user.clone(),
        account: login.account.clone(),
        schema: login.schema.clone(),
        collation: login.collation,
        capabilities: login.capabilities.bits(),
        attributes: login.attributes.clone(),
        tls: login.tls.as_ref().map(|tls| (tls.version.to_owned(), tls.cipher.clone())),
    }
}
