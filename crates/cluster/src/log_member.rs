//! A process's member of the cluster's log group.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use firn_api::LogStore;
use firn_base::{Environment, Lsn};
use firn_consensus::{Base, MemberId, Options, Term};
use firn_link::Caller;
use firn_log_service::{LogService, LogServiceOptions};
use firn_storage::group::{GroupLog, GroupOptions, GroupStore, MemberLog, NoPeers, Peers};
use firn_storage::local::{DatabaseId, LocalDirectory, LogOptions, OpenError};

use crate::group_peers::{Door, LinkPeers};
use crate::layout::Layout;
use crate::layout::catalog::LOG_GROUP;

/// The members' log is in this directory below the process's own.
pub(crate) const DIRECTORY: &str = "log-member";
/// Who reads the log, and comes back after a restart, is in this one.
const READERS_DIRECTORY: &str = "log-readers";

/// The member: its log on this process's disk, and the store that the group is for this process.
pub(crate) struct LogMember {
    pub(crate) member: MemberId,
    pub(crate) log: Arc<GroupLog>,
    pub(crate) store: Arc<GroupStore>,
    /// Serves the log to readers elsewhere.
    pub(crate) service: Arc<LogService>,
}

impl LogMember {
    /// Opens the member's log, or founds it, and joins the others. Blocks for I/O.
    pub(crate) fn open(
        environment: &Environment,
        directory: &Path,
        (layout, member): (&Layout, MemberId),
        options: LogOptions,
        (others, door): (Vec<(MemberId, Caller)>, &Arc<Door>),
    ) -> Result<LogMember, OpenError> {
        let (path, readers) = (directory.join(DIRECTORY), directory.join(READERS_DIRECTORY));
        let directory = LocalDirectory::open_for(environment, &path, database_of(layout))?;
        let founding = Base::founding(Term(1), Lsn::FIRST, layout.members());
        let log = Arc::new(GroupLog::open(&directory, options, founding)?);
        let seed = environment.random.next_u64();
        let mut group = GroupOptions::new(Options::new(member, seed));
        let names = layout.log_members().filter_map(|(id, node)| Some((id, node.client_address?)));
        let names: BTreeMap<_, _> = names.map(|(member, at)| (member, at.to_string())).collect();
        group.names = names.clone();
        let peers: Arc<dyn Peers> = match others.is_empty() {
            true => Arc::new(NoPeers),
            false => Arc::new(LinkPeers::new(environment, LOG_GROUP.0, others, Arc::clone(door))),
        };
        let store =
            GroupStore::start(environment, group, Arc::clone(&log) as Arc<dyn MemberLog>, peers)?;
        let store = Arc::new(store);
        let of_hint = Arc::downgrade(&store);
        let leader = move || names.get(&of_hint.upgrade()?.leader()?).cloned();
        let options =
            LogServiceOptions { leader: Some(Arc::new(leader)), ..LogServiceOptions::default() };
        let served = Arc::clone(&store) as Arc<dyn LogStore>;
        let service = LogService::open(environment, served, &readers, options)?;
        Ok(LogMember { member, log, store, service })
    }
}

/// The database that the cluster has: all files of the cluster carry the same id.
pub(crate) fn database_of(layout: &Layout) -> DatabaseId {
    DatabaseId(layout.cluster.0.to_be_bytes())
}
