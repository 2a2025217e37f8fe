//! The leases of clients. A client says again and again what it holds (P5); leases of a client that
//! is silent for its time-out end.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{PageLease, PageStoreError};
use firn_base::Lsn;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::HoldResult;
use crate::message::{HoldRequest, LeaseAnswer, LeaseRequest};

#[derive(Default)]
pub(super) struct Leases {
    holders: Mutex<FxHashMap<u64, Holder>>,
}

/// A client.
#[derive(Default)]
struct Holder {
    /// Of the newest list.
    round: u64,
    /// When the leases end without another list.
    ends: Duration,
    leases: FxHashMap<u64, Arc<dyn PageLease>>,
}

impl Leases {
    /// Makes a client's leases those of its list; they last until `ends`. `take` takes a lease of
    /// the store.
    ///
    /// # Errors
    /// An error of `take` other than [`PageStoreError::NotKept`].
    pub(super) fn renew(
        &self,
        request: &HoldRequest,
        ends: Duration,
        take: &dyn Fn(&str, Lsn) -> HoldResult,
    ) -> Result<Vec<LeaseAnswer>, PageStoreError> {
        let missing = self.note_list(request, ends);
        let mut refused = FxHashMap::default();
        for lease in missing {
            match take(&lease.reader, lease.position) {
                Ok(taken) => self.add(request.holder, lease.number, taken),
                Err(PageStoreError::NotKept { kept_from, .. }) => {
                    refused.insert(lease.number, kept_from);
                }
                Err(error) => return Err(error),
            }
        }
        let answer = |lease: &LeaseRequest| {
            let refused = refused.get(&lease.number).copied();
            LeaseAnswer { number: lease.number, refused }
        };
        Ok(request.leases.iter().map(answer).collect())
    }

    /// Ends leases that are not in the list, moves those that are, and returns those that the node
    /// does not have.
    fn note_list<'a>(&self, request: &'a HoldRequest, ends: Duration) -> Vec<&'a LeaseRequest> {
        let mut ended = Vec::new();
        let mut holders = self.holders.lock();
        let holder = holders.entry(request.holder).or_default();
        holder.ends = holder.ends.max(ends);
        if request.round > holder.round {
            holder.round = request.round;
            let is_listed = |number| request.leases.iter().any(|lease| lease.number == number);
            let gone = holder.leases.extract_if(|number, _| !is_listed(*number));
            ended.extend(gone.map(|(_, lease)| lease));
        }
        let mut missing = Vec::new();
        let mut known = Vec::new();
        for wanted in &request.leases {
            match holder.leases.get(&wanted.number) {
                Some(lease) => known.push((Arc::clone(lease), wanted.position)),
                None => missing.push(wanted),
            }
        }
        if holder.leases.is_empty() && missing.is_empty() {
            holders.remove(&request.holder);
        }
        drop(holders);
        // Latch rule 1: the store is called without the mutex.
        drop(ended);
        known.iter().for_each(|(lease, position)| lease.advance(*position));
        missing
    }

    /// Adds a lease, unless the client's leases have ended meanwhile.
    fn add(&self, holder: u64, number: u64, lease: Arc<dyn PageLease>) {
        let replaced = match self.holders.lock().get_mut(&holder) {
            Some(holder) => holder.leases.insert(number, lease),
            None => Some(lease),
        };
        drop(replaced);
    }

    /// Whether a client holds versions at `position`.
    pub(super) fn holds(&self, holder: u64, position: Lsn) -> bool {
        let holders = self.holders.lock();
        let holder = holders.get(&holder);
        holder
            .is_some_and(|holder| holder.leases.values().any(|lease| lease.position() <= position))
    }

    /// Ends the leases of silent clients; returns when the next ones end.
    pub(super) fn end_overdue(&self, now: Duration) -> Option<Duration> {
        let mut holders = self.holders.lock();
        let overdue: Vec<Holder> =
            holders.extract_if(|_, holder| holder.ends <= now).map(|(_, holder)| holder).collect();
        let next = holders.values().map(|holder| holder.ends).min();
        drop(holders);
        // A client whose leases were all refused has ended nothing by its silence.
        for holder in overdue.iter().filter(|holder| !holder.leases.is_empty()) {
            tracing::warn!(
                leases = holder.leases.len(),
                "leases on pages ended: their holder is silent"
            );
        }
        next
    }

    pub(super) fn end_all(&self) {
        let all = std::mem::take(&mut *self.holders.lock());
        drop(all);
    }

    /// How many clients hold leases, and how many leases there are.
    pub(super) fn count(&self) -> (usize, usize) {
        let holders = self.holders.lock();
        (holders.len(), holders.values().map(|holder| holder.leases.len()).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::LeaseRequest;

    const SECOND: Duration = Duration::from_secs(1);

    /// A lease that knows its position.
    struct Kept(Mutex<Lsn>);

    impl PageLease for Kept {
        fn position(&self) -> Lsn {
            *self.0.lock()
        }

        fn advance(&self, to: Lsn) {
            let mut position = self.0.lock();
            *position = to.max(*position);
        }
    }

    /// Says a list; positions before 100 cannot be held. Returns the numbers that were refused.
    fn say(leases: &Leases, round: u64, list: &[(u64, u64)], ends: Duration) -> Vec<u64> {
        let lease = |(number, position): &(u64, u64)| LeaseRequest {
            number: *number,
            position: Lsn(*position),
            reader: "reader".to_owned(),
        };
        let list = list.iter().map(lease).collect();
        let request = HoldRequest { holder: 7, round, timeout: SECOND, leases: list };
        let take = |_: &str, position: Lsn| -> HoldResult {
            match position < Lsn(100) {
                true => Err(PageStoreError::NotKept { position, kept_from: Lsn(100) }),
                false => Ok(Arc::new(Kept(Mutex::new(position)))),
            }
        };
        let answers = leases.renew(&request, ends, &take).unwrap();
        assert!(answers.iter().all(|answer| answer.refused.is_none_or(|from| from == Lsn(100))));
        let refused = answers.iter().filter(|answer| answer.refused.is_some());
        refused.map(|answer| answer.number).collect()
    }

    #[test]
    fn a_list_says_all_leases_of_a_client() {
        let leases = Leases::default();
        assert_eq!(say(&leases, 1, &[(1, 104), (2, 96), (3, 200)], SECOND), [2]);
        assert_eq!(leases.count(), (1, 2));
        assert!(
            leases.holds(7, Lsn(104)) && !leases.holds(7, Lsn(96)) && !leases.holds(8, Lsn(104))
        );
        assert!(say(&leases, 3, &[(1, 112), (4, 160)], SECOND).is_empty());
        assert!(!leases.holds(7, Lsn(104)), "it was moved");
        // A list that is late ends nothing, and what it brings back ends with the next one.
        assert!(say(&leases, 2, &[(3, 200)], SECOND).is_empty());
        assert_eq!(leases.count(), (1, 3));
        assert!(say(&leases, 4, &[(4, 160)], SECOND).is_empty());
        assert_eq!(leases.count(), (1, 1));
        assert!(say(&leases, 5, &[], SECOND).is_empty());
        assert_eq!(leases.count(), (0, 0));
    }

    #[test]
    fn leases_of_a_silent_client_end() {
        let leases = Leases::default();
        say(&leases, 1, &[(1, 104)], SECOND * 3);
        say(&leases, 2, &[(1, 104)], SECOND * 5);
        assert_eq!(leases.end_overdue(SECOND * 4), Some(SECOND * 5));
        assert_eq!(leases.count(), (1, 1));
        assert_eq!(leases.end_overdue(SECOND * 5), None);
        assert_eq!(leases.count(), (0, 0));
    }
}
