//! The readers that hold log at a member.
//!
//! A lease is a follower of the store that reads nothing. It cannot release what it has not read,
//! so a reader that moves on gets a new lease before the old one is returned: at no moment is its
//! log free.
//!
//! Latch rule: the mutex is a leaf. Leases are taken and returned without it.

use std::collections::BTreeMap;
use std::time::Duration;

use firn_api::{FollowOptions, LogError, LogFollower, LogStore, PageFilter};
use firn_base::Lsn;
use parking_lot::Mutex;

use crate::message::HeldReader;

/// How often the start of the log may move away from a lease that is being taken.
const ATTEMPTS: usize = 16;

pub(super) struct Readers {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Readers that end with their clients, by client.
    clients: BTreeMap<u64, Client>,
    /// Readers that stay, by name.
    staying: BTreeMap<String, Lease>,
}

struct Client {
    renewed_at: Duration,
    readers: Vec<Lease>,
}

struct Lease {
    /// As the client named it. A client that comes back takes its position from here, so it is
    /// never one that the client has not let go up to.
    reader: HeldReader,
    /// Where the log begins that is kept.
    kept_from: Lsn,
    /// Keeps the log from the reader's position on.
    _follower: Box<dyn LogFollower>,
}

impl State {
    /// How many readers there are besides those that a client is about to replace.
    fn count_others(&self, client: u64, readers: &[HeldReader]) -> usize {
        let others = self.clients.iter().filter(|(other, _)| **other != client);
        let ending: usize = others.map(|(_, client)| client.readers.len()).sum();
        let is_renewed = |name: &String| readers.iter().any(|reader| reader.name == *name);
        ending + self.staying.keys().filter(|name| !is_renewed(name)).count()
    }
}

impl Readers {
    pub(super) fn new(most: usize) -> Readers {
        Readers { most, state: Mutex::default() }
    }

    /// Keeps log for readers that stayed, after a restart.
    ///
    /// # Errors
    /// The store's.
    pub(super) fn restore(
        &self,
        store: &dyn LogStore,
        readers: Vec<HeldReader>,
    ) -> Result<(), LogError> {
        for reader in readers {
            let lease = Lease::take(store, reader)?;
            let old = self.state.lock().staying.insert(lease.reader.name.clone(), lease);
            drop(old);
        }
        Ok(())
    }

    /// Keeps log for the readers of a client.
    ///
    /// # Errors
    /// [`LogError::Unavailable`] if there are too many readers, or the store's.
    pub(super) fn hold(
        &self,
        store: &dyn LogStore,
        client: u64,
        readers: Vec<HeldReader>,
        now: Duration,
    ) -> Result<Vec<Lsn>, LogError> {
        if self.state.lock().count_others(client, &readers) + readers.len() > self.most {
            let reason = format!("the node keeps log for {} readers already", self.most);
            return Err(LogError::Unavailable { reason });
        }
        let mut kept_from = Vec::with_capacity(readers.len());
        let (mut ending, mut staying) = (Vec::new(), Vec::new());
        for reader in readers {
            let lease = Lease::take(store, reader)?;
            kept_from.push(lease.kept_from);
            if lease.reader.stays { staying.push(lease) } else { ending.push(lease) }
        }
        let old = self.put(client, ending, staying, now);
        drop(old);
        Ok(kept_from)
    }

    /// Returns the leases that were replaced.
    fn put(
        &self,
        client: u64,
        ending: Vec<Lease>,
        staying: Vec<Lease>,
        now: Duration,
    ) -> Vec<Lease> {
        let mut state = self.state.lock();
        let mut old = Vec::new();
        for lease in staying {
            old.extend(state.staying.insert(lease.reader.name.clone(), lease));
        }
        let before = if ending.is_empty() {
            state.clients.remove(&client)
        } else {
            state.clients.insert(client, Client { renewed_at: now, readers: ending })
        };
        old.extend(before.into_iter().flat_map(|client| client.readers));
        old
    }

    /// Ends the registration of a reader that stays.
    pub(super) fn forget(&self, name: &str) {
        let lease = self.state.lock().staying.remove(name);
        drop(lease);
    }

    /// Lets go of what clients hold that have not renewed it since `lease` ago.
    pub(super) fn expire(&self, now: Duration, lease: Duration) {
        let mut gone = Vec::new();
        {
            let mut state = self.state.lock();
            let has_expired =
                |_: &u64, client: &mut Client| now.saturating_sub(client.renewed_at) > lease;
            gone.extend(state.clients.extract_if(.., has_expired));
        }
        for (client, readers) in gone {
            let names: Vec<_> = readers.readers.iter().map(|lease| &lease.reader.name).collect();
            tracing::info!(
                client,
                ?names,
                "readers of the log have not been heard of; their log may go"
            );
        }
    }

    /// Takes readers that stay from the list whose log is gone: they held back too much.
    pub(super) fn drop_lost(&self, store: &dyn LogStore) {
        let staying: Vec<_> = {
            let state = self.state.lock();
            let leases = state.staying.values();
            leases.map(|lease| (lease.reader.clone(), lease.kept_from)).collect()
        };
        for (reader, kept_from) in staying {
            let probe = HeldReader { held: kept_from, ..reader.clone() };
            let is_lost = Lease::take(store, probe).is_ok_and(|probe| probe.kept_from > kept_from);
            if is_lost && self.remove_same(&reader, kept_from) {
                let name = &reader.name;
                tracing::warn!(name, %kept_from, "a reader of the log held back too much and is no longer registered");
            }
        }
    }

    /// Takes a reader that stays from the list, unless it has been renewed.
    fn remove_same(&self, reader: &HeldReader, kept_from: Lsn) -> bool {
        let lost = {
            let mut state = self.state.lock();
            let current = state.staying.get(&reader.name);
            let is_same = current
                .is_some_and(|lease| lease.reader == *reader && lease.kept_from == kept_from);
            if is_same { state.staying.remove(&reader.name) } else { None }
        };
        lost.is_some()
    }

    /// The readers that stay, by name.
    pub(super) fn staying(&self) -> Vec<HeldReader> {
        self.state.lock().staying.values().map(|lease| lease.reader.clone()).collect()
    }

    /// The readers, by name within their kinds.
    pub(super) fn list(&self) -> Vec<HeldReader> {
        let state = self.state.lock();
        let ending = state.clients.values().flat_map(|client| &client.readers);
        state.staying.values().chain(ending).map(|lease| lease.reader.clone()).collect()
    }

    /// Lets go of everything.
    pub(super) fn clear(&self) {
        let state = std::mem::take(&mut *self.state.lock());
        drop(state);
    }
}

impl Lease {
    /// A lease on the log from the reader's position on, or from where the log here begins if that
    /// is later. A member that does not have the position yet keeps all that comes.
    fn take(store: &dyn LogStore, reader: HeldReader) -> Result<Lease, LogError> {
        let mut floor = Lsn(0);
        for _ in 0..ATTEMPTS {
            let from = reader.held.max(floor).min(store.durable_lsn());
            let options = FollowOptions {
                name: reader.name.clone(),
                from,
                until: None,
                pages: PageFilter::All,
                hold_limit_bytes: reader.limit_bytes,
            };
            match store.follow(options) {
                Ok(follower) => {
                    // A member that was founded again may have a lease to give, and not the log.
                    let kept_from = from.max(store.truncated_lsn());
                    return Ok(Lease { reader, kept_from, _follower: follower });
                }
                Err(LogError::OutOfRange { from: begin, .. }) if begin > from => floor = begin,
                Err(error) => return Err(error),
            }
        }
        let reason = "the start of the log moves faster than a reader can hold it".to_owned();
        Err(LogError::Unavailable { reason })
    }
}
