//! A log store over a replicated group: the driver of one member.
//!
//! ```text
//!   committer            driver                                   other members
//!   wait_durable ──────► take · propose ──── messages ──────────► receive
//!                        write · sync                             write · sync
//!                        synced ◄─────────── confirmations ────── synced
//!   ◄─────────────────── durable ──────────────────────────────►  (with the next message)
//! ```
//!
//! [`GroupStore`] owns a `firn_consensus::Member` and does what it commands: it writes to the
//! member's disk ([`MemberLog`], which [`GroupLog`] is in a local directory), sends to the other
//! members ([`Peers`]), and tells writers, readers and pages what is durable. The member that leads
//! is the one whose process may write: opening the stream waits until this member leads, and the
//! term is the writer's epoch.
//!
//! A group of one member needs no network, and a lone committer does a whole round itself.
//!
//! Latch rules, cited by number:
//!
//! 1. `Shared::core` is the driver's only latch. It protects the member, its queue of writes and
//!    the current writer. No disk call, no wait and no call of [`LogSource::take`], `tell`,
//!    `answer` or `refuse` happens under it.
//! 2. Under it the driver calls only what does not block: the member, [`Peers::send`],
//!    [`MemberLog::set_durable`], and [`LogSource::advance`]. Their own latches come after it.
//! 3. The *turn* ([`turn`]) is no latch. Its holder alone takes log from the source and calls
//!    [`MemberLog::write`], `sync` and `release`. It is held across I/O. Nobody waits for it: a
//!    committer that finds it taken waits for its log to be durable, and a holder that returns it
//!    wakes the task `group-log` if there is work left.
//! 4. Commands are carried out under the latch, in their order, by the thread whose event led to
//!    them. So messages are queued in order, and a writer has ended before log of another leader
//!    moves the durable position.
//! 5. A writer proposes in the term in which its member leads now. It is ended, under the latch,
//!    when another member leads, when log of another leader arrives, or when another writer opens.
//!    So whatever it proposes follows what it proposed before.
//! 6. While a call of `open` is under way nothing is proposed. The end of the log stands still
//!    until all of it is durable, and becomes the tail's.
//!
//! What is never durable is thrown away by the member: it truncates its log when another leader's
//! entries take that place. Readers get durable log alone, at any member.
//!
//! Members come and go while the group runs ([`GroupStore::change_members`]). A newcomer begins
//! with an empty log, gets a base where its membership begins, and the log from there on. The
//! watermarks of the log before the base come with it: without them an engine that is opened over
//! the newcomer would hand out transaction ids and timestamps a second time.
//!
//! [`LogSource::take`]: firn_api::LogSource::take
//! [`LogSource::advance`]: firn_api::LogSource::advance

mod answering;
mod driver;
pub mod lanes;
mod local;
pub mod member_log;
mod network_peers;
mod opening;
mod options;
mod peers;
mod reading;
mod recent;
mod rounds;
mod turn;
mod writer;
mod writing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::{
    FollowOptions, LogError, LogFollower, LogStore, OpenedLog, Watermarks, WriterEpoch,
};
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn};
use firn_consensus::{Entry, Member, MemberChange, MemberId, Members, Refusal, Role, Term};
use parking_lot::Mutex;

use crate::follower::Follower;
use driver::{PublishedLease, Shared};
use reading::Reading;

pub use local::GroupLog;
pub use member_log::MemberLog;
pub use network_peers::NetworkPeers;
pub use options::GroupOptions;
pub use peers::{EntryBytes, EntryLog, Inbox, NoPeers, Outgoing, Peers};

/// A member of a group, as the log store of its process.
pub struct GroupStore {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
}

impl GroupStore {
    /// Starts the member from what is on its disk, and connects it with the others.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if the saved log is not one of a group.
    pub fn start(
        environment: &Environment,
        options: GroupOptions,
        log: Arc<dyn MemberLog>,
        peers: Arc<dyn Peers>,
    ) -> Result<GroupStore, LogError> {
        let saved = log.saved();
        let begin = saved.base.lsn;
        let stored = saved.entries.last().map_or(begin, Entry::end);
        let member = Member::start(options.member.clone(), saved).map_err(|error| {
            LogError::Damaged { at: "the log of the group".to_owned(), what: error.to_string() }
        })?;
        let parts = (options, log, Arc::clone(&peers));
        let shared = Arc::new(Shared::new(environment, parts, member, (begin, stored)));
        shared.event(|core| elect_lone_voter(&mut core.member, &shared.options));
        peers.start(Arc::clone(&shared) as Arc<dyn Inbox>);
        let (own, ticking) = (Arc::clone(&shared), Arc::clone(&shared));
        let spawner = &environment.spawner;
        let tasks = vec![
            spawner.spawn("group-log", Box::new(move || own.run())),
            spawner.spawn("group-clock", Box::new(move || ticking.run_clock())),
        ];
        Ok(GroupStore { shared, tasks: Mutex::new(tasks) })
    }

    /// The term in which this member leads.
    #[must_use]
    pub fn leads(&self) -> Option<Term> {
        self.shared.core.lock().member.leads()
    }

    /// Whether this member leads in `term`, and no other one can have been elected up to now:
    /// nobody but the writer of this process can have acknowledged anything. Does not block.
    #[must_use]
    pub fn surely_leads(&self, term: Term) -> bool {
        self.shared.event(|core| {
            self.shared.catch_up(core);
            core.member.leads() == Some(term) && core.member.has_lease()
        })
    }

    /// The end of the durable log, if everything that any writer has acknowledged up to now is
    /// before it: a writer of this process has begun in the member's term, and no other member can
    /// have been elected up to now. Does not block.
    #[must_use]
    pub fn surely_durable(&self) -> Option<Lsn> {
        self.shared.event(|core| {
            self.shared.catch_up(core);
            let term = core.member.leads()?;
            let is_sure = core.opened_in == term && core.member.has_lease();
            is_sure.then(|| self.shared.durable())
        })
    }

    /// The highest watermarks in this member's log, released log included. May block for I/O.
    ///
    /// # Errors
    /// [`LogError::Damaged`], [`LogError::Unreadable`] or [`LogError::Failed`].
    pub fn watermarks(&self) -> Result<Watermarks, LogError> {
        self.shared.log.watermarks()
    }

    /// From now on, tells until when (on the monotonic clock) this member surely leads in `term`,
    /// as [`GroupStore::surely_leads`] says it. `tell` is called at least once in a tick while the
    /// lease lasts, and with zero before this member lets another one lead; it must not block.
    pub fn publish_lease(&self, term: Term, tell: Box<dyn Fn(Duration) + Send>) {
        self.shared.event(|core| {
            self.shared.catch_up(core);
            core.published_lease = Some(PublishedLease { term, tell, told: None });
        });
    }

    /// Ends what [`GroupStore::publish_lease`] began.
    pub fn withdraw_lease(&self) {
        let published = self.shared.core.lock().published_lease.take();
        if let Some(published) = published {
            (published.tell)(Duration::ZERO);
        }
    }

    /// The leader, as far as this member knows.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        self.shared.core.lock().member.leader()
    }

    /// The end of all log that this member has, durable or not.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.shared.core.lock().member.end()
    }

    /// Sets [`firn_consensus::Options::priority`], from now on.
    pub fn set_priority(&self, priority: u8) {
        self.shared.event(|core| core.member.set_priority(priority));
    }

    /// The member that should lead next: another voter that this leader has heard of lately, one
    /// that is preferred if there is one.
    #[must_use]
    pub fn successor(&self, is_preferred: impl Fn(MemberId) -> bool) -> Option<MemberId> {
        self.shared.core.lock().member.successor(is_preferred)
    }

    /// Lets another voter lead. The writer of this process ends with [`LogError::NotLeader`] once
    /// that one does; if it does not within an election's time, the writer goes on. Does not block.
    ///
    /// # Errors
    /// If this member does not lead, or `to` may not.
    pub fn hand_over(&self, to: MemberId) -> Result<(), Refusal> {
        self.shared.event(|core| {
            let term = core.member.leads().unwrap_or_else(|| core.member.term());
            core.member.hand_over(term, to)?;
            core.is_handing_over = true;
            Ok(())
        })
    }

    /// The members in force, as far as this member knows.
    #[must_use]
    pub fn members(&self) -> Members {
        self.shared.core.lock().member.members().clone()
    }

    /// Changes the members; several changes are one step. They are in force later, which
    /// [`GroupStore::members`] shows. The caller sees to it that messages reach newcomers. Does not
    /// block.
    ///
    /// # Errors
    /// If this member does not lead in `term`, another change is under way, or the changes do not
    /// fit the members. [`firn_consensus::MembersError::Nothing`]: the members are those, in force
    /// and durable in the group.
    pub fn change_members(&self, term: Term, changes: &[MemberChange]) -> Result<(), Refusal> {
        self.shared.event(|core| core.member.change_members(term, changes).map(drop))
    }

    /// Clients find the members there from now on, for [`firn_api::LogError::NotLeader`].
    pub fn set_names(&self, names: BTreeMap<MemberId, String>) {
        *self.shared.names.lock() = names;
    }

    /// Only readers, and members that are behind, still need log before `lsn`. The log is truncated
    /// later, and only in part. Does not block.
    pub fn let_go(&self, lsn: Lsn) {
        self.shared.let_go.fetch_max(lsn.0, Ordering::SeqCst);
        self.shared.work.notify_all();
    }

    /// Why this member takes no part any more, if its disk has failed.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        self.shared.failure.get().cloned()
    }

    /// Ends the writer, leaves the group to the other members, and waits for the tasks.
    pub fn close(&self) {
        self.stop();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.join();
        }
        self.shared.log.close();
    }

    fn stop(&self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        self.shared.peers.close();
        self.shared.stopped.notify_all();
        self.shared.work.notify_all();
        self.shared.advanced.notify_all();
    }
}

impl Drop for GroupStore {
    /// Does not wait for the tasks.
    fn drop(&mut self) {
        self.stop();
    }
}

impl LogStore for GroupStore {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        self.shared.open(epoch)
    }

    fn durable_lsn(&self) -> Lsn {
        self.shared.durable()
    }

    fn truncated_lsn(&self) -> Lsn {
        Lsn(self.shared.truncated.load(Ordering::SeqCst))
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.shared.read_groups(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        let reading = Arc::new(Reading(Arc::clone(&self.shared)));
        Ok(Box::new(Follower::new(reading, options)?))
    }
}

/// A lone voter has nobody to wait for: it leads at once.
fn elect_lone_voter(member: &mut Member, options: &GroupOptions) {
    let voters = member.members().iter().filter(|(_, role)| role.votes());
    let is_lone = voters.map(|(id, _)| id).eq([options.member.id]);
    if !is_lone || member.members().role(options.member.id) != Some(Role::Voter) {
        return;
    }
    let (before, steps) = (member.term(), 3 + u32::from(options.member.priority));
    for _ in 0..steps * options.member.election_ticks {
        if member.term() == before {
            member.tick();
        }
    }
}

#[cfg(test)]
mod tests;
