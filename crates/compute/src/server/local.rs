//! The server state for compute nodes that run in one process, or for a single one.
//!
//! Locks: `members` and `variables` are held only for a look or a change, never while a member is
//! called (S5). A list of members that was copied before a call may name one that has ended
//! meanwhile; the call then has no effect.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use firn_api::server::{
    ConnectionIds, Incarnation, KillScope, LockAnswer, Membership, Patience, Process, ServerMember,
    ServerState, ServerStateError, SharedVariable,
};
use firn_base::event::Event;
use firn_base::{Cts, TableId};
use parking_lot::Mutex;

use super::user_locks::UserLocks;
use super::wait;

/// How many compute nodes divide the connection ids among them, if there may be several.
const MOST_MEMBERS: u16 = 2048;

#[derive(Clone)]
struct Member {
    incarnation: Incarnation,
    membership: Membership,
    called: Option<Weak<dyn ServerMember>>,
}

#[derive(Default)]
struct Members {
    list: Vec<Member>,
    /// The connections that hold the global read lock.
    readers: Vec<u64>,
    /// The member that is changing accounts.
    changes_accounts: Option<Incarnation>,
    /// A snapshot that sees all changes of accounts.
    accounts_since: Cts,
}

/// Variables that were set, by name.
#[derive(Default)]
struct Variables {
    version: u64,
    by_name: BTreeMap<String, SharedVariable>,
}

pub struct LocalServerState {
    most_members: u16,
    members: Mutex<Members>,
    variables: Mutex<Variables>,
    user_locks: UserLocks,
    /// Notified when writers or a member have ended.
    writers_ended: Event,
    /// Notified when a member has ended its change of accounts.
    accounts_free: Event,
}

impl std::fmt::Debug for LocalServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let members = self.members.lock().list.len();
        f.debug_struct("LocalServerState").field("members", &members).finish_non_exhaustive()
    }
}

impl LocalServerState {
    /// The state of a server with one compute node, which has all connection ids to itself.
    #[must_use]
    pub fn of_one_node() -> LocalServerState {
        LocalServerState::with_room(1)
    }

    /// The state of a server that may have several compute nodes.
    #[must_use]
    pub fn of_nodes() -> LocalServerState {
        LocalServerState::with_room(MOST_MEMBERS)
    }

    fn with_room(most_members: u16) -> LocalServerState {
        LocalServerState {
            most_members,
            members: Mutex::default(),
            variables: Mutex::default(),
            user_locks: UserLocks::default(),
            writers_ended: Event::new(),
            accounts_free: Event::new(),
        }
    }

    /// A member's share of the connection ids.
    fn connection_ids(&self, number: u16) -> ConnectionIds {
        if self.most_members == 1 {
            return ConnectionIds { first: 1, last: u32::MAX };
        }
        let room = u32::MAX / u32::from(self.most_members);
        let first = u32::from(number) * room + 1;
        ConnectionIds { first, last: first + (room - 1) }
    }

    /// The members that get calls, except one.
    fn others(&self, but: Incarnation) -> Vec<Arc<dyn ServerMember>> {
        let members = self.members.lock();
        let others = members.list.iter().filter(|member| member.incarnation != but);
        others.filter_map(|member| member.called.as_ref()?.upgrade()).collect()
    }

    /// All members that get calls.
    fn all(&self) -> Vec<Arc<dyn ServerMember>> {
        called(&self.members.lock())
    }

    /// The member that a connection belongs to.
    fn of_connection(&self, connection: u64) -> Option<Arc<dyn ServerMember>> {
        let members = self.members.lock();
        let mut list = members.list.iter();
        let member = list.find(|one| one.membership.connection_ids.contains(connection))?;
        member.called.as_ref()?.upgrade()
    }
}

fn called(members: &Members) -> Vec<Arc<dyn ServerMember>> {
    members.list.iter().filter_map(|member| member.called.as_ref()?.upgrade()).collect()
}

impl ServerState for LocalServerState {
    fn join(&self, node: Incarnation) -> Result<Membership, ServerStateError> {
        let mut members = self.members.lock();
        let is_free =
            |number: &u16| members.list.iter().all(|member| member.membership.number != *number);
        let number = (0..self.most_members).find(is_free);
        let number = number.ok_or(ServerStateError::Full(usize::from(self.most_members)))?;
        let membership = Membership { number, connection_ids: self.connection_ids(number) };
        members.list.push(Member { incarnation: node, membership, called: None });
        Ok(membership)
    }

    fn attach(
        &self,
        node: Incarnation,
        called: Weak<dyn ServerMember>,
    ) -> Result<(), ServerStateError> {
        let mut members = self.members.lock();
        let closes = members.readers.len();
        let member = members.list.iter_mut().find(|member| member.incarnation == node);
        member.ok_or(ServerStateError::NotAMember(node))?.called = Some(Weak::clone(&called));
        drop(members);
        if let Some(member) = called.upgrade() {
            (0..closes).for_each(|_| member.close_gate());
        }
        Ok(())
    }

    fn leave(&self, node: Incarnation) {
        let (ids, opens, others) = {
            let mut members = self.members.lock();
            let Some(at) = members.list.iter().position(|member| member.incarnation == node) else {
                return;
            };
            let ids = members.list.remove(at).membership.connection_ids;
            let before = members.readers.len();
            members.readers.retain(|connection| !ids.contains(*connection));
            members.changes_accounts.take_if(|changing| *changing == node);
            (ids, before - members.readers.len(), called(&members))
        };
        self.user_locks.release_all(ids);
        for _ in 0..opens {
            others.iter().for_each(|member| member.open_gate());
        }
        self.writers_ended.notify_all();
        self.accounts_free.notify_all();
        if let Some(member) = others.first() {
            member.clean_up_after(node);
        }
    }

    /// The directory of an embedded node belongs to one process: a node that is not a member here
    /// runs nowhere.
    fn has_ended(&self, node: Incarnation) -> bool {
        self.members.lock().list.iter().all(|member| member.incarnation != node)
    }

    fn begin_account_change(&self, node: Incarnation) -> Result<(), ServerStateError> {
        let is_member = || self.members.lock().list.iter().any(|one| one.incarnation == node);
        let take = || {
            let mut members = self.members.lock();
            members.changes_accounts.get_or_insert(node) == &node
        };
        self.accounts_free.wait_until(None, || !is_member() || take());
        if is_member() { Ok(()) } else { Err(ServerStateError::NotAMember(node)) }
    }

    fn end_account_change(&self, node: Incarnation, since: Option<Cts>) {
        if let Some(since) = since {
            let mut members = self.members.lock();
            members.accounts_since = members.accounts_since.max(since);
            drop(members);
            self.others(node).iter().for_each(|member| member.accounts_changed(since));
        }
        self.members.lock().changes_accounts.take_if(|changing| *changing == node);
        self.accounts_free.notify_all();
    }

    fn accounts_since(&self) -> Cts {
        self.members.lock().accounts_since
    }

    fn statistics_gathered(&self, node: Incarnation, table: TableId) {
        self.others(node).iter().for_each(|member| member.statistics_changed(table));
    }

    fn set_variable(&self, name: &str, value: &[u8]) -> Result<(), ServerStateError> {
        let variable = {
            let mut variables = self.variables.lock();
            variables.version += 1;
            let version = variables.version;
            let variable = SharedVariable { name: name.to_owned(), value: value.to_vec(), version };
            variables.by_name.insert(name.to_owned(), variable.clone());
            variable
        };
        self.all().iter().for_each(|member| member.variable_set(&variable));
        Ok(())
    }

    fn variables(&self) -> Result<Vec<SharedVariable>, ServerStateError> {
        Ok(self.variables.lock().by_name.values().cloned().collect())
    }

    fn take_user_lock(&self, connection: u64, name: &str, patience: &Patience<'_>) -> LockAnswer {
        self.user_locks.take(connection, name, patience)
    }

    fn release_user_lock(&self, connection: u64, name: &str) -> Option<bool> {
        self.user_locks.release(connection, name)
    }

    fn release_user_locks(&self, connection: u64) -> u64 {
        let Ok(only) = u32::try_from(connection) else { return 0 };
        self.user_locks.release_all(ConnectionIds { first: only, last: only })
    }

    fn user_locks_of(&self, connection: u64) -> Vec<(String, u64)> {
        self.user_locks.of(connection)
    }

    fn user_lock_owner(&self, name: &str) -> Option<u64> {
        self.user_locks.owner(name)
    }

    fn take_read_lock(
        &self,
        connection: u64,
        patience: &Patience<'_>,
    ) -> Result<(), ServerStateError> {
        let closed = {
            let mut members = self.members.lock();
            if members.readers.contains(&connection) {
                return Ok(());
            }
            members.readers.push(connection);
            called(&members)
        };
        closed.iter().for_each(|member| member.close_gate());
        drop(closed);
        let have_ended = || self.all().iter().all(|member| member.have_writers_ended());
        let waited = wait(&self.writers_ended, patience, &have_ended);
        if waited.is_err() {
            self.release_read_lock(connection);
        }
        waited
    }

    fn release_read_lock(&self, connection: u64) {
        let opened = {
            let mut members = self.members.lock();
            let Some(at) = members.readers.iter().position(|one| *one == connection) else {
                return;
            };
            members.readers.swap_remove(at);
            called(&members)
        };
        opened.iter().for_each(|member| member.open_gate());
    }

    fn holds_read_lock(&self, connection: u64) -> bool {
        self.members.lock().readers.contains(&connection)
    }

    fn writers_ended(&self) {
        self.writers_ended.notify_all();
    }

    fn processes(&self) -> Vec<Process> {
        let mut processes: Vec<Process> =
            self.all().iter().flat_map(|member| member.processes()).collect();
        processes.sort_unstable_by_key(|process| process.id);
        processes
    }

    fn process(&self, connection: u64) -> Option<Process> {
        self.of_connection(connection)?.process(connection)
    }

    fn kill(&self, connection: u64, scope: KillScope) -> bool {
        self.of_connection(connection).is_some_and(|member| member.kill(connection, scope))
    }
}
