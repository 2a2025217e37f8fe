//! What the objects of one remote node share: the link, the numbers handed out, and the latest news
//! from the node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::rows::{CancelListener, Cancellation, RowsError, RowsResult, TableRef};
use firn_format::key::CollationKeys;

use crate::codec::{decode, encode};
use crate::link::Link;
use crate::message::{Answer, Call, CallNumber, HandedTable, Handle, Message, NodeCall, Reply};

use super::tables::Tables;

/// A client's connection to a node.
pub(super) struct Connection {
    link: Arc<dyn Link>,
    next_call: AtomicU64,
    next_handle: AtomicU64,
    definitions_version: AtomicU64,
    pub(super) tables: Tables,
    pub(super) collations: Arc<dyn CollationKeys>,
}

impl Connection {
    pub(super) fn over(link: Arc<dyn Link>, collations: Arc<dyn CollationKeys>) -> Arc<Connection> {
        Arc::new(Connection {
            link,
            next_call: AtomicU64::new(1),
            next_handle: AtomicU64::new(1),
            definitions_version: AtomicU64::new(0),
            tables: Tables::default(),
            collations,
        })
    }

    /// A new handle (M1).
    pub(super) fn new_handle(&self) -> Handle {
        Handle(self.next_handle.fetch_add(1, Ordering::Relaxed))
    }

    /// The newest version of the node's definitions that this client has heard of.
    pub(super) fn definitions_version(&self) -> u64 {
        self.definitions_version.load(Ordering::Acquire)
    }

    /// Makes a call. The caller ends it through `cancellation`. Blocks.
    ///
    /// # Errors
    /// [`RowsError::Unavailable`] if the reply does not come, or cannot be read.
    pub(super) fn call(
        self: &Arc<Self>,
        call: Call<'_>,
        cancellation: Option<&Cancellation>,
    ) -> RowsResult<Reply> {
        let number = CallNumber(self.next_call.fetch_add(1, Ordering::Relaxed));
        let message = encode(&Message::Call { number, call })?;
        let replied = match cancellation {
            Some(cancellation) => {
                let send = || self.link.call(message);
                cancellation.during(self.canceller(number), send)
            }
            None => self.link.call(message),
        };
        let bytes = replied
            .map_err(|error| RowsError::Unavailable { reason: error.reason.into_boxed_str() })?;
        let reply: Reply = decode(&bytes)?;
        self.definitions_version.fetch_max(reply.definitions_version, Ordering::AcqRel);
        Ok(reply)
    }

    /// Cancels a call, from whichever thread wants it.
    fn canceller(self: &Arc<Self>, number: CallNumber) -> CancelListener {
        let connection = Arc::clone(self);
        Arc::new(move || connection.cast(&Message::Cancel(number)))
    }

    /// Sends a message that has no reply.
    pub(super) fn cast(&self, message: &Message<'_>) {
        // The service makes up for a lost message when the link ends (M5).
        if let Ok(message) = encode(message) {
            self.link.cast(message);
        }
    }

    /// Asks the node itself.
    ///
    /// # Errors
    /// Like [`Connection::call`], but returns the node's answer.
    pub(super) fn ask_node(
        self: &Arc<Self>,
        call: NodeCall<'_>,
        cancellation: Option<&Cancellation>,
    ) -> RowsResult<Answer> {
        self.call(Call::Node(call), cancellation)?.outcome
    }

    /// The table of a reply.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn receive(self: &Arc<Self>, handed: HandedTable) -> RowsResult<TableRef> {
        Ok(self.tables.receive(self, handed)?)
    }

    /// The table in an answer, if there is one.
    ///
    /// # Errors
    /// The answer has another kind.
    pub(super) fn table_in(self: &Arc<Self>, answer: Answer) -> RowsResult<Option<TableRef>> {
        match answer {
            Answer::Table(table) => table.map(|table| self.receive(table)).transpose(),
            other => Err(unexpected(&other)),
        }
    }

    /// The number in an answer.
    ///
    /// # Errors
    /// The answer has another kind.
    pub(super) fn number_in(&self, answer: Answer) -> RowsResult<u64> {
        match answer {
            Answer::Number(number) => Ok(number),
            other => Err(unexpected(&other)),
        }
    }
}

/// The error for an answer of the wrong kind.
pub(super) fn unexpected(answer: &Answer) -> RowsError {
    let name = format!("{answer:?}");
    let kind = name.split(['(', ' ']).next().unwrap_or_default();
    RowsError::Unavailable { reason: format!("it answered {kind}, which was not asked").into() }
}
