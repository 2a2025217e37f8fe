//! One suite that every log store must pass, behind the feature `conformance`.
//!
//! A case uses a stream through several lives of a process. When a life ends, its process loses
//! power. The next life must find what the store had reported as durable, and nothing that was
//! never appended. The store must therefore be tested over a medium that really loses what is not
//! durable: a simulated disk, or copies behind a simulated network.
//!
//! ```text
//!   for case in conformance::CASES {
//!       (case.run)(&MyStream::new());       // each case over a new, empty stream
//!   }
//! ```
//!
//! A store that keeps its log in copies elsewhere can lose some of them, be reached by one process
//! and not by another, and be told to take log only from another node. It also runs
//! [`REMOTE_CASES`], which ask for these events through [`Copies`].
//!
//! Cases start their tasks with the environment's spawner and wait on events or by sleeping, so
//! they run under a simulator as well.

use std::sync::Arc;

use firn_base::{Environment, Lsn};

use super::LogStore;

mod appender;
mod epochs;
mod following;
mod kept;
mod remote;
mod writing;

pub use appender::Appender;
pub use kept::KeptLog;

/// A process of one life.
pub trait Node: Sync {
    /// The world of the process.
    fn environment(&self) -> &Environment;

    /// The stream, as this process sees it.
    fn store(&self) -> Arc<dyn LogStore>;

    /// The stream, as another process sees it at the same time. The same store if only one process
    /// can open it.
    fn other_store(&self) -> Arc<dyn LogStore>;

    /// Tells the store that only its readers still need log before `lsn`. The store may truncate it
    /// later, and only in part.
    fn let_go(&self, lsn: Lsn);

    /// The copies of the log that other nodes keep, if this is such a store.
    fn copies(&self) -> Option<&dyn Copies> {
        None
    }
}

/// What can happen to the copies of a log that is kept elsewhere. Each of these lasts until
/// [`Copies::heal`] or the end of the process.
pub trait Copies: Sync {
    /// Some copies stop to answer, and a majority goes on.
    fn lose_minority(&self);

    /// A majority of the copies stops answering, so no copy is certain to be complete.
    fn lose_majority(&self);

    /// This process no longer reaches any copy; the process of [`Node::other_store`] does.
    fn isolate(&self);

    /// The copies take no more log, because they are full or slow.
    fn hold_back(&self);

    /// The copies take log only from the node that is called `leader`.
    fn lead_at(&self, leader: &str);

    /// Everything works again.
    fn heal(&self);
}

/// What happens in one life.
pub type Life = Box<dyn FnOnce(&dyn Node) + Send>;

/// A stream and the processes that use it.
pub trait Lives {
    /// Runs `life` in a new process; when it returns, the process loses power. Blocks.
    fn live(&self, life: Life);
}

/// A case of the suite.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The property that is tested.
    pub name: &'static str,
    /// Panics if it does not hold.
    pub run: fn(&dyn Lives),
}

pub const CASES: &[Case] = &[
    Case { name: "what was told to be durable survives", run: writing::durable_survives },
    Case { name: "what is submitted becomes durable and is told", run: writing::submitted_is_told },
    Case { name: "commits that are left are answered", run: writing::left_is_answered },
    Case { name: "groups behind a hole wait", run: writing::holes_hold_back },
    Case { name: "a closed writer has made everything durable", run: writing::closed_is_durable },
    Case { name: "groups are read as they were appended", run: writing::reads },
    Case { name: "a newer epoch fences the older writer", run: epochs::older_writer_is_fenced },
    Case { name: "epochs go up across lives", run: epochs::epochs_go_up },
    Case { name: "a race of writers has one winner", run: epochs::race },
    Case { name: "watermarks outlive truncation", run: epochs::watermarks },
    Case { name: "a reader gets each durable group once", run: following::each_group_once },
    Case { name: "leases hold truncation", run: following::leases_hold },
    Case { name: "a reader beyond its limit is dropped", run: following::limit_drops },
];

/// The cases for stores whose log is in copies elsewhere; [`Node::copies`] must return them.
pub const REMOTE_CASES: &[Case] = &[
    Case { name: "a minority is not missed", run: remote::minority },
    Case { name: "copies come and go and lose nothing", run: remote::coming_and_going },
    Case { name: "without a majority nothing becomes durable", run: remote::majority },
    Case { name: "commits that are left wait for a majority", run: remote::left_without_majority },
    Case { name: "what waited for a majority is whole or gone", run: remote::waited },
    Case { name: "a writer that was cut off is fenced", run: remote::cut_off },
    Case { name: "another leader is named", run: remote::another_leader },
    Case { name: "what is not taken stays with the writer", run: remote::back_pressure },
];
