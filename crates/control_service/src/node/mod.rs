//! A control node: a member of the control group, with the controller that it may lead.
//!
//! Latch rules, cited by number:
//!
//! 1. `Shared::core` is the node's one latch, but for leaves. It protects the member, the
//!    controller, and what waits for them. No disk call, no wait, no send and no answer happens
//!    under it.
//! 2. Under it, messages to other members are put into their lanes, whose latches are leaves, so
//!    that they are queued in the order in which the member made them.
//! 3. Commands of the member are carried out before those of the controller. So a controller whose
//!    member leads no more has forgotten its commands before anybody sees them.
//! 4. Whatever relies on the lease has counted the ticks that have passed (`Shared::event` does).
//!
//! Tasks: `control-disk` writes and syncs, `control-clock` ticks, `control-reply` answers, and one
//! `control-send` for each other member sends.
//!
//! Who the members are is the group's own affair ([`firn_consensus::Members`]). Where they are is
//! told from outside ([`ControlNode::reach`]): the group does not know addresses.

mod applying;
mod core;
mod disk;
mod founding;
mod lanes;
mod requests;
mod shared;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_base::Environment;
use firn_base::task::TaskHandle;
use firn_consensus::{
    Member, MemberId, Members, MembersError, Options, OptionsError, Refusal as ConsensusRefusal,
    RestartAt, Role, SavedError, Term,
};
use firn_control::{Catalog, EncodingError, Refusal};
use firn_link::{LocalNode, Service, ServiceId};
use parking_lot::Mutex;

use self::core::Core;
use self::lanes::Lanes;
use self::requests::{GroupService, NodeService};
use self::shared::Shared;
use crate::file::{FileError, MemberFile, Whole};
use crate::message::StatusReply;
use crate::options::{Beginning, ControlMembers, ControlOptions};

/// The service of control nodes for all nodes, [`crate::message`] has its messages.
pub const CONTROL: ServiceId = ServiceId(32);
/// The service of control nodes for each other: casts of consensus messages.
pub const CONTROL_GROUP: ServiceId = ServiceId(33);

/// Why a control node does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the members of the control group are not possible: {0}")]
    Members(#[from] MembersError),
    #[error("this control node is not one of the members; add its own address to them")]
    NotAMember,
    #[error("the settings of the cluster are not possible: {0}")]
    Settings(#[from] Refusal),
    #[error("the settings of the control node are not possible: {0}")]
    Options(#[from] OptionsError),
    #[error(transparent)]
    Saved(#[from] SavedError),
    #[error(transparent)]
    Catalog(#[from] EncodingError),
    /// What the process notes of its member.
    #[error("{0}")]
    Record(String),
    #[error(
        "the directory has a control node of cluster {theirs}, and this is cluster {ours}; check the directory"
    )]
    OtherCluster { theirs: firn_control::ClusterId, ours: firn_control::ClusterId },
}

/// A control node that runs. Dropping it stops it without waiting.
pub struct ControlNode {
    environment: Environment,
    shared: Arc<Shared>,
    tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
}

impl ControlNode {
    /// Starts the control node of a directory, which has no other use; an empty one becomes what
    /// the options say. `members` are those that are known, with their addresses. It takes part
    /// once [`ControlNode::services`] are served at its address. Blocks for I/O.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(
        environment: &Environment,
        local: &Arc<LocalNode>,
        directory: &Path,
        members: ControlMembers,
        options: ControlOptions,
    ) -> Result<ControlNode, OpenError> {
        let beginning = beginning(&members, &options)?;
        let (file, whole) = MemberFile::open(&environment.disk, directory, beginning)?;
        let catalog = Catalog::restore(&whole.catalog)?;
        if catalog.cluster() != options.cluster {
            let (theirs, ours) = (catalog.cluster(), options.cluster);
            return Err(OpenError::OtherCluster { theirs, ours });
        }
        let member = start_member(environment, &options, &whole)?;
        let core = Core::new(member, catalog, whole);
        let lanes = Lanes::new(environment, local, options.tick);
        let shared = Arc::new(Shared::new(environment, options, members.clone(), core, lanes));
        shared.begin();
        let tasks = Mutex::new(start_tasks(environment, &shared, file));
        let node = ControlNode { environment: environment.clone(), shared, tasks };
        node.reach(members);
        Ok(node)
    }

    /// The members are at these addresses from now on. Those that are in force and have none are
    /// not reached. Does not block.
    pub fn reach(&self, members: ControlMembers) {
        let mut others = members.clone();
        others.remove(&self.shared.options.id);
        *self.shared.addresses.write() = members;
        for lane in self.shared.lanes.lead_to(&others) {
            let sending = Arc::clone(&self.shared);
            let body = move || sending.run_lane(&lane);
            let task = self.environment.spawner.spawn("control-send", Box::new(body));
            self.tasks.lock().push(task);
        }
    }

    /// Which member of the group the node is.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.shared.options.id
    }

    /// The members that are in force, as far as this one knows.
    #[must_use]
    pub fn members(&self) -> Members {
        self.shared.core.lock().member.members().clone()
    }

    /// Looks at the catalog as this node has it. `look` is short: the node waits for it.
    pub fn with_catalog<T>(&self, look: impl FnOnce(&Catalog) -> T) -> T {
        look(self.shared.core.lock().controller.catalog())
    }

    /// Whether the leader has said that this member had confirmed entries which it does not have.
    #[must_use]
    pub fn has_lost_entries(&self) -> bool {
        self.shared.has_lost_entries.load(Ordering::SeqCst)
    }

    /// Makes the members these, if this one leads in `term`. True if they are; otherwise it may be
    /// under way. Does not block.
    ///
    /// # Errors
    /// Why they cannot be changed now.
    pub fn set_members(&self, term: Term, wanted: &Members) -> Result<bool, ConsensusRefusal> {
        self.shared.event(|core| {
            let changes = core.member.members().changes_to(wanted);
            match core.member.change_members(term, &changes) {
                Err(ConsensusRefusal::Members(MembersError::Nothing)) => Ok(true),
                changed => changed.map(|_| false),
            }
        })
    }

    /// Lets another member lead, if this one leads in `term`. Does not block.
    ///
    /// # Errors
    /// Why it does not.
    pub fn hand_over(&self, term: Term, to: MemberId) -> Result<(), ConsensusRefusal> {
        self.shared.event(|core| core.member.hand_over(term, to))
    }

    /// What the node's link server has to serve: [`CONTROL`], and [`CONTROL_GROUP`] in the order in
    /// which messages come.
    #[must_use]
    pub fn services(&self) -> [Arc<dyn Service>; 2] {
        let requests = Arc::new(NodeService(Arc::clone(&self.shared)));
        [requests, Arc::new(GroupService(Arc::clone(&self.shared)))]
    }

    #[must_use]
    pub fn status(&self) -> StatusReply {
        self.shared.event(|core| self.shared.status(core))
    }

    /// The catalog as this node has it: durable, but not the newest if the node is behind.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        self.with_catalog(Catalog::clone)
    }

    /// Why the node takes no part any more.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.get().cloned()
    }

    /// Stops the node and waits for its tasks. Callers that wait for an answer get one.
    pub fn close(&self) {
        self.shared.stop();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.join();
        }
        self.shared.lanes.close();
    }
}

impl Drop for ControlNode {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// What the node begins with if its directory is empty.
fn beginning(
    members: &ControlMembers,
    options: &ControlOptions,
) -> Result<Option<Whole>, OpenError> {
    let catalog = || Catalog::new(options.cluster, options.settings.clone());
    Ok(match options.beginning {
        Beginning::Founds if !members.contains_key(&options.id) => {
            return Err(OpenError::NotAMember);
        }
        Beginning::Founds => {
            let members = Members::new(members.keys().map(|id| (*id, Role::Voter)))?;
            Some(Whole::founding(members, &catalog()?))
        }
        Beginning::Joins => Some(Whole::joining(&catalog()?)),
        Beginning::Exists => None,
    })
}

fn start_member(
    environment: &Environment,
    options: &ControlOptions,
    whole: &Whole,
) -> Result<Member, OpenError> {
    let mut member = Options::new(options.id, environment.random.next_u64());
    // A proposal is small; what is not durable yet waits in memory.
    member.undurable_bytes = 4 << 20;
    // With the catalog that all entries up to there have led to.
    member.restart_at = RestartAt::NewestEntry;
    member.check()?;
    let saved = whole.saved();
    if let Some(observer) = &options.observer {
        observer.opened(options.id, &saved);
    }
    Ok(Member::start(member, saved)?)
}

fn start_tasks(
    environment: &Environment,
    shared: &Arc<Shared>,
    file: MemberFile,
) -> Vec<Box<dyn TaskHandle>> {
    let spawner = &environment.spawner;
    let (writing, ticking, answering) =
        (Arc::clone(shared), Arc::clone(shared), Arc::clone(shared));
    vec![
        spawner.spawn("control-disk", Box::new(move || writing.run_disk(file))),
        spawner.spawn("control-clock", Box::new(move || ticking.run_clock())),
        spawner.spawn("control-reply", Box::new(move || answering.run_replies())),
    ]
}

impl Shared {
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.wake_all();
    }
}
