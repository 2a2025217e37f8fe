//! A random walk compared with a list of grants. A lock is granted at once exactly if no grant in
//! the list and no waiting request conflicts with it, and a waiting request is granted as soon as
//! that is so.

#![allow(clippy::disallowed_types, reason = "tests use the machine as it is")]

use std::collections::BTreeMap;

use firn_api::rows::Cancellation;
use firn_base::clock::SystemClock;
use proptest::prelude::*;

use super::super::mode::{conflicts, covers, is_obtrusive};
use super::super::*;

const LOCKS: [MetadataLock; 8] = [
    MetadataLock::Shared,
    MetadataLock::Read,
    MetadataLock::Write,
    MetadataLock::Upgradable,
    MetadataLock::ReadOnly,
    MetadataLock::NoWrite,
    MetadataLock::NoReadWrite,
    MetadataLock::Exclusive,
];

#[derive(Debug, Clone)]
enum Step {
    Acquire { context: usize, table: u64, lock: MetadataLock, explicit: bool },
    Release { context: usize },
    Unlock { context: usize },
    Downgrade { context: usize, table: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let lock = prop::sample::select(LOCKS.to_vec());
    prop_oneof![
        6 => (0..4_usize, 1..4_u64, lock, any::<bool>()).prop_map(|(context, table, lock, explicit)| {
            Step::Acquire { context, table, lock, explicit }
        }),
        2 => (0..4_usize).prop_map(|context| Step::Release { context }),
        1 => (0..4_usize).prop_map(|context| Step::Unlock { context }),
        1 => (0..4_usize, 1..4_u64).prop_map(|(context, table)| Step::Downgrade { context, table }),
    ]
}

/// Grants by context, table and duration.
type Held = BTreeMap<(usize, u64, bool), Vec<MetadataLock>>;

fn is_free(held: &Held, context: usize, table: u64, lock: MetadataLock) -> bool {
    held.iter().all(|((other, of, _), locks)| {
        *other == context || *of != table || locks.iter().all(|held| !conflicts(lock, *held))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    // No request stays waiting: one that is not granted at once is cancelled.
    #[test]
    fn a_request_is_granted_exactly_if_no_lock_is_against_it(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let locks = MetadataLockTable::new(std::sync::Arc::new(SystemClock), |_| Vec::new());
        let contexts: Vec<_> = (0..4).map(|_| locks.open_context()).collect();
        let called_off = Cancellation::default();
        called_off.cancel();
        let patience =
            LockPatience { cancelled: Some(&called_off), ..LockPatience::of(Duration::ZERO) };
        let mut held = Held::new();
        for step in steps {
            match step {
                Step::Acquire { context, table, lock, explicit } => {
                    let duration =
                        if explicit { LockDuration::Explicit } else { LockDuration::Transaction };
                    let expected = is_free(&held, context, table, lock);
                    let own = |held: &Held| {
                        held.iter().any(|((of, on, _), locks)| {
                            *of == context && *on == table && locks.iter().any(|own| covers(*own, lock))
                        })
                    };
                    let was_covered = own(&held);
                    let same = held.get(&(context, table, explicit));
                    let is_repeated =
                        same.is_some_and(|locks| locks.iter().any(|own| covers(*own, lock)));
                    let got = contexts[context].acquire(TableId(table), lock, duration, &patience);
                    prop_assert_eq!(got.is_ok(), expected || was_covered, "{:?} {:?}", got, held);
                    let is_slow = is_obtrusive(lock) || lock == MetadataLock::Shared || explicit;
                    let is_noted = match is_slow {
                        true => !is_repeated,
                        false => !was_covered,
                    };
                    if got.is_ok() && is_noted {
                        held.entry((context, table, explicit)).or_default().push(lock);
                    }
                    prop_assert!(got.is_err() || contexts[context].holds(TableId(table), lock));
                }
                Step::Release { context } => {
                    contexts[context].release_transaction();
                    held.retain(|(of, _, explicit), _| *of != context || *explicit);
                }
                Step::Unlock { context } => {
                    contexts[context].release_explicit(None);
                    held.retain(|(of, _, explicit), _| *of != context || !*explicit);
                }
                Step::Downgrade { context, table } => {
                    contexts[context].downgrade(TableId(table), MetadataLock::Upgradable);
                    for lock in held.get_mut(&(context, table, false)).into_iter().flatten() {
                        if is_obtrusive(*lock) && covers(*lock, MetadataLock::Upgradable) {
                            *lock = MetadataLock::Upgradable;
                        }
                    }
                }
            }
        }
        drop(contexts);
        prop_assert!(locks.requests.lock().is_idle());
        for table in 1..4 {
            prop_assert_eq!(locks.stripe(TableId(table)).load(Ordering::SeqCst), 0);
        }
    }
}

#[test]
fn the_tables_are_those_of_mysql() {
    use MetadataLock::{
        Exclusive, NoReadWrite, NoWrite, Read, ReadOnly, Shared, Upgradable, Write,
    };
    // Conflicts are symmetric.
    for one in LOCKS {
        for other in LOCKS {
            assert_eq!(conflicts(one, other), conflicts(other, one), "{one:?} {other:?}");
        }
    }
    assert!(covers(Exclusive, NoReadWrite) && !covers(NoReadWrite, Exclusive));
    assert!(covers(NoWrite, Upgradable) && covers(NoWrite, ReadOnly) && !covers(Upgradable, Write));
    assert!(covers(Read, Shared) && !covers(Shared, Read) && !conflicts(NoReadWrite, Shared));
    assert!(covers(ReadOnly, Read) && !covers(ReadOnly, Write));
}
