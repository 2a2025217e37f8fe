//! A process's member of the cluster's log group, while it is open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_api::{LogStore, Watermarks};
use firn_base::network::{ClusterId, NodeId};
use firn_base::{Environment, Lsn};
use firn_consensus::{Base, MemberId, Options, Term};
use firn_link::Caller;
use firn_log_service::{LogService, LogServiceOptions};
use firn_storage::group::{GroupLog, GroupOptions, GroupStore, MemberLog, Peers};
use firn_storage::local::{DatabaseId, LocalDirectory, LogOptions, OpenError};

use crate::group_peers::{Door, LinkPeers};
use crate::layout::catalog::LOG_GROUP;
use crate::layout::{Layout, NodeEntry, Origin};
use crate::record::MemberPlace;
use crate::view::View;

/// The log of a founder is in this directory below the process's own. That of a member that joined
/// later has its number behind.
pub(crate) const DIRECTORY: &str = "log-member";
/// Who reads the log, and comes back after a restart, is in this one.
const READERS_DIRECTORY: &str = "log-readers";

/// The member: its log on this process's disk, and the store that the group is for this process.
pub(crate) struct LogMember {
    pub(crate) member: MemberId,
    pub(crate) is_founder: bool,
    pub(crate) log: Arc<GroupLog>,
    pub(crate) store: Arc<GroupStore>,
    /// Serves the log to readers elsewhere.
    pub(crate) service: Arc<LogService>,
    peers: Arc<LinkPeers>,
}

/// The log of a member, before the member takes part in anything.
pub(crate) struct MemberFiles {
    place: MemberPlace,
    log: Arc<GroupLog>,
    readers: PathBuf,
}

impl MemberPlace {
    /// The directories of the member below the process's own: its log, and its readers.
    pub(crate) fn directories(self, below: &Path) -> [PathBuf; 2] {
        [DIRECTORY, READERS_DIRECTORY].map(|name| match self.is_founder {
            true => below.join(name),
            false => below.join(format!("{name}-{}", self.member)),
        })
    }
}

impl MemberFiles {
    /// Opens the member's log. Makes it if that has never been done: the one of a founder begins
    /// where `origin` says. Blocks for I/O.
    ///
    /// # Errors
    /// If the log cannot be opened, or is not there any more.
    pub(crate) fn open(
        environment: &Environment,
        below: &Path,
        (layout, place): (&Layout, MemberPlace),
        origin: Option<&Origin>,
        options: LogOptions,
    ) -> Result<MemberFiles, OpenError> {
        let [path, readers] = place.directories(below);
        let directory = LocalDirectory::open_for(environment, &path, database_of(layout.cluster))?;
        let log = match (place.is_made, place.is_founder) {
            (true, _) => GroupLog::open_again(&directory, options)?,
            (false, true) => {
                let (begins, watermarks) = origin.map_or_else(
                    || (Lsn::FIRST, Watermarks::default()),
                    |origin| (origin.position, origin.watermarks),
                );
                let base = Base::founding(Term(1), begins, layout.members());
                GroupLog::open_behind(&directory, options, base, watermarks)?
            }
            (false, false) => GroupLog::open(&directory, options, Base::joining())?,
        };
        Ok(MemberFiles { place, log: Arc::new(log), readers })
    }
}

impl LogMember {
    /// The member takes part from now on. It reaches nobody before [`LogMember::reach`]. Blocks for
    /// I/O.
    pub(crate) fn start(
        environment: &Environment,
        MemberFiles { place, log, readers }: MemberFiles,
        view: &Arc<View>,
        door: &Arc<Door>,
    ) -> Result<LogMember, OpenError> {
        let seed = environment.random.next_u64();
        let options = GroupOptions::new(Options::new(place.member, seed));
        let peers = Arc::new(LinkPeers::new(environment, LOG_GROUP.0, Arc::clone(door)));
        let (disk, network) = (Arc::clone(&log), Arc::clone(&peers));
        let (disk, network) = (disk as Arc<dyn MemberLog>, network as Arc<dyn Peers>);
        let store = Arc::new(GroupStore::start(environment, options, disk, network)?);
        let (of_hint, view) = (Arc::downgrade(&store), Arc::clone(view));
        let leader = move || view.layout().log_member_names().remove(&of_hint.upgrade()?.leader()?);
        let options =
            LogServiceOptions { leader: Some(Arc::new(leader)), ..LogServiceOptions::default() };
        let served = Arc::clone(&store) as Arc<dyn LogStore>;
        let service = LogService::open(environment, served, &readers, options)?;
        let MemberPlace { member, is_founder, .. } = place;
        Ok(LogMember { member, is_founder, log, store, service, peers })
    }

    /// The other members run on these nodes from now on. Does not block.
    pub(crate) fn reach(
        &self,
        layout: &Layout,
        members: &BTreeMap<MemberId, NodeId>,
        link: &dyn Fn(&NodeEntry) -> Caller,
    ) {
        let others = members.iter().filter(|(member, _)| **member != self.member);
        let nodes: BTreeMap<MemberId, &NodeEntry> =
            others.filter_map(|(member, node)| Some((*member, layout.node(*node)?))).collect();
        let addresses =
            nodes.iter().map(|(member, node)| (*member, node.address.clone())).collect();
        self.peers.set_members(&addresses, |member| nodes.get(&member).map(|node| link(node)));
        self.store.set_names(layout.log_member_names());
    }

    /// Blocks until the member's tasks have ended.
    pub(crate) fn close(&self) {
        self.service.close();
        self.store.close();
    }
}

/// The database that the cluster has: all files of the cluster carry the same id.
pub(crate) fn database_of(cluster: ClusterId) -> DatabaseId {
    DatabaseId(cluster.0.to_be_bytes())
}
