//! A zone goes on without the others: the cluster is founded again, of the nodes that are left and
//! with what they have.
//!
//! ```text
//!   firn cluster take-over west
//!      │  who is there, how far is each?         nobody leads; the zone has all pages
//!      │  order: the layout, who leads           to each node of the zone
//!      ▼
//!   node: node.take-over ── ends its parts ── starts again
//!                                               1. the log of the one that leads becomes that of
//!                                                  the new group (firn_consensus::take_over)
//!                                               2. the record has the new layout
//!                                               3. node.take-over is removed
//!      control is founded, the member that leads is elected, its engine opens
//! ```
//!
//! The order is in the node's directory before anything changes, and each step may be done again:
//! a node that dies meanwhile goes on with it. Numbers of nodes, files of pages and positions of
//! the log stay. Members have numbers that the cluster never gave, so members of before that come
//! back have nobody to speak to.
//!
//! Each take-over is a *generation*. A node that hears of a later one than its own has been left
//! behind, and ends ([`crate::left_behind`]).

mod apply;
mod ordering;
mod plan;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use firn_base::Lsn;
use firn_base::disk::Disk;
use firn_base::network::NodeId;
use firn_link::{
    CallError, Caller, Offer, Peer, Placement, Request, Responder, Service, ServiceId,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::framed_file::{self, exact};
use crate::layout::Layout;
use crate::versioned::{decode, encode};
use crate::view::View;

pub use apply::ApplyError;
pub(crate) use apply::apply;
pub use plan::{NoTakeOver, TakeOver, plan};

/// Asks nodes for their layouts, and tells them to go on without the others.
const SERVICE: ServiceId = ServiceId(0x0106);
const VERSION: u8 = 1;
/// The file's name in the node's directory.
const FILE_NAME: &str = "node.take-over";
const MAGIC: [u8; 4] = *b"FnTo";
/// How long a node has to answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// What a node is told. The order of the fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakeOverOrder {
    /// Above that of every node.
    pub(crate) generation: u64,
    /// The cluster from now on. Its members of the log group are new ones.
    pub(crate) layout: Layout,
    /// The node whose log all others continue.
    pub(crate) leader: NodeId,
    /// The end of that log.
    pub(crate) position: Lsn,
}

/// The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Ask {
    Layout,
    TakeOver(Box<TakeOverOrder>),
}

/// The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Reply {
    /// The cluster as the node knows it.
    Layout(Box<Layout>),
    /// The order is in the node's directory.
    Taken,
    Refused(String),
}

/// Why a node does not do what it is asked to.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("{0}")]
    Refused(String),
    #[error("it answers in words of another release")]
    NotUnderstood,
}

impl TakeOverOrder {
    /// The order in a directory, if there is one. Blocks for I/O.
    fn read(disk: &dyn Disk, directory: &Path) -> io::Result<Option<TakeOverOrder>> {
        let Some(bytes) = framed_file::read(disk, &directory.join(FILE_NAME))? else {
            return Ok(None);
        };
        let order = framed_file::unframe(MAGIC, &bytes).filter(|(found, _)| *found == VERSION);
        let order = order.and_then(|(_, body)| exact(body));
        let foreign = || io::Error::other(format!("{FILE_NAME} is damaged or of another release"));
        order.ok_or_else(foreign).map(Some)
    }

    fn write(&self, disk: &dyn Disk, directory: &Path) -> io::Result<()> {
        let bytes = framed_file::frame(MAGIC, VERSION, self);
        framed_file::write(disk, directory, FILE_NAME, &bytes)
    }
}

/// Takes orders for this process.
pub(crate) struct TakeOverService {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    own: NodeId,
    generation: u64,
    view: Arc<View>,
    /// Whether there is an order: the process starts again.
    is_ordered: Mutex<bool>,
}

impl TakeOverService {
    pub(crate) fn new(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        (own, generation): (NodeId, u64),
        view: &Arc<View>,
    ) -> TakeOverService {
        TakeOverService {
            disk: Arc::clone(disk),
            directory: directory.to_owned(),
            own,
            generation,
            view: Arc::clone(view),
            is_ordered: Mutex::new(false),
        }
    }

    pub(crate) fn offer(self: &Arc<TakeOverService>) -> Offer {
        let service = Arc::clone(self) as Arc<dyn Service>;
        Offer { id: SERVICE, placement: Placement::Workers, service }
    }

    /// Whether somebody has ordered that the process starts again.
    pub(crate) fn is_ordered(&self) -> bool {
        *self.is_ordered.lock()
    }

    fn answer(&self, request: &[u8]) -> Reply {
        match decode(VERSION, request) {
            None => Reply::Refused("the order is of another release".to_owned()),
            Some(Ask::Layout) => Reply::Layout(Box::new(Layout::clone(&self.view.layout()))),
            Some(Ask::TakeOver(order)) => match self.take(&order) {
                Ok(()) => Reply::Taken,
                Err(reason) => Reply::Refused(reason),
            },
        }
    }

    fn take(&self, order: &TakeOverOrder) -> Result<(), String> {
        let generation = self.generation;
        if order.generation <= generation {
            return Err(format!("the cluster has been taken over {generation} times already"));
        }
        if order.layout.node(self.own).is_none() {
            return Err("the node has no place in the cluster that goes on".to_owned());
        }
        // Held while the order is written: one at a time.
        let mut is_ordered = self.is_ordered.lock();
        order.write(&*self.disk, &self.directory).map_err(|error| error.to_string())?;
        *is_ordered = true;
        Ok(())
    }
}

impl Service for TakeOverService {
    fn serve(&self, _: &Peer, request: Request, responder: Responder) {
        responder.reply(encode(VERSION, &self.answer(&request.payload)));
    }
}

/// Tells the node at the other end of a link. Blocks for the answer.
fn order(caller: &Caller, order: &TakeOverOrder) -> Result<(), TakeOverError> {
    match ask(caller, &Ask::TakeOver(Box::new(order.clone())))? {
        Reply::Taken => Ok(()),
        Reply::Refused(reason) => Err(TakeOverError::Refused(reason)),
        Reply::Layout(_) => Err(TakeOverError::NotUnderstood),
    }
}

/// The cluster as the node at the other end of a link knows it. Blocks for the answer.
fn layout_of(caller: &Caller) -> Result<Layout, TakeOverError> {
    match ask(caller, &Ask::Layout)? {
        Reply::Layout(layout) => Ok(*layout),
        Reply::Refused(reason) => Err(TakeOverError::Refused(reason)),
        Reply::Taken => Err(TakeOverError::NotUnderstood),
    }
}

fn ask(caller: &Caller, ask: &Ask) -> Result<Reply, TakeOverError> {
    let answer = caller.call(SERVICE, encode(VERSION, ask), TIMEOUT)?;
    decode(VERSION, &answer).ok_or(TakeOverError::NotUnderstood)
}

#[cfg(test)]
mod tests;
