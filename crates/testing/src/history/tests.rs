use firn_base::Cts;

use super::{History, Isolation, Recorder, Recording, TimestampViolation};
use Isolation::{
    ReadCommitted, Serializable, SessionSnapshotIsolation, SnapshotIsolation, StrictSerializable,
    StrongReadCommitted, StrongSnapshotIsolation,
};

const X: u32 = 100;
const Y: u32 = 101;
const ALL: [Isolation; 8] = [
    ReadCommitted,
    StrongReadCommitted,
    SnapshotIsolation,
    SessionSnapshotIsolation,
    StrongSnapshotIsolation,
    Serializable,
    Isolation::SessionSerializable,
    StrictSerializable,
];

/// `N` transactions of as many sessions, all of which begin before one ends.
fn concurrent<const N: usize>() -> (Recorder, [Recording; N]) {
    let recorder = Recorder::new();
    let recordings = std::array::from_fn(|session| recorder.begin(session as u32));
    (recorder, recordings)
}

fn commit_all<const N: usize>(recordings: [Recording; N]) {
    recordings.into_iter().for_each(|recording| recording.committed(None));
}

/// A transaction of a new session that reads all these lists.
fn reads(recorder: &Recorder, lists: &[(u32, &[u32])]) {
    let mut reader = recorder.begin(99);
    lists.iter().for_each(|(key, list)| reader.read(*key, list));
    reader.committed(None);
}

#[track_caller]
fn holds(history: &History, claimed: &[Isolation]) {
    for isolation in claimed {
        if let Err(rejected) = history.check(*isolation) {
            panic!("{isolation:?}: {rejected}");
        }
    }
}

#[track_caller]
fn violates(history: &History, claimed: &[Isolation], kind: &str) {
    for isolation in claimed {
        let rejected = history.check(*isolation).expect_err("the anomaly is found");
        assert!(matches!(rejected, super::Rejected::Violated(_)), "{isolation:?}: {rejected}");
        assert!(rejected.kinds().contains(&kind), "{isolation:?}: {rejected}");
    }
}

#[test]
fn a_history_of_one_after_the_other_is_clean() {
    let recorder = Recorder::new();
    for element in 1..=20 {
        let mut transaction = recorder.begin(element % 3);
        let before: Vec<u32> = (1..element).collect();
        transaction.read(X, &before);
        transaction.append(X, element);
        transaction.read(X, &[&before[..], &[element]].concat());
        transaction.committed(None);
    }
    holds(&recorder.history(), &ALL);
}

#[test]
fn dirty_write_g0() {
    let (recorder, [mut a, mut b]) = concurrent();
    a.append(X, 1);
    b.append(X, 2);
    b.append(Y, 2);
    a.append(Y, 1);
    commit_all([a, b]);
    reads(&recorder, &[(X, &[1, 2]), (Y, &[2, 1])]);
    violates(&recorder.history(), &[ReadCommitted, SnapshotIsolation, Serializable], "G0");
}

#[test]
fn aborted_read_g1a() {
    let (recorder, [mut a, mut b]) = concurrent();
    a.append(X, 1);
    b.read(X, &[1]);
    b.append(Y, 2);
    a.aborted();
    b.committed(None);
    reads(&recorder, &[(Y, &[2])]);
    violates(&recorder.history(), &[ReadCommitted, SnapshotIsolation, Serializable], "G1a");
}

#[test]
fn intermediate_read_g1b() {
    let (recorder, [mut a, mut b]) = concurrent();
    a.append(X, 1);
    b.read(X, &[1]);
    a.append(X, 2);
    commit_all([a, b]);
    reads(&recorder, &[(X, &[1, 2])]);
    violates(&recorder.history(), &[ReadCommitted, SnapshotIsolation, Serializable], "G1b");
}

#[test]
fn circular_information_flow_g1c() {
    let (recorder, [mut a, mut b]) = concurrent();
    a.append(X, 1);
    b.append(Y, 2);
    a.read(Y, &[2]);
    b.read(X, &[1]);
    commit_all([a, b]);
    violates(&recorder.history(), &[ReadCommitted, SnapshotIsolation, Serializable], "G1c");
}

#[test]
fn read_skew_g_single() {
    let (recorder, [mut a, mut b]) = concurrent();
    a.read(X, &[]);
    b.append(X, 1);
    b.append(Y, 1);
    b.committed(None);
    a.read(Y, &[1]);
    a.committed(None);
    holds(&recorder.history(), &[ReadCommitted, StrongReadCommitted]);
    violates(&recorder.history(), &[SnapshotIsolation, Serializable], "G-single-item");
}

#[test]
fn lost_update() {
    let (recorder, [mut a, mut b]) = concurrent();
    a.read(X, &[]);
    b.read(X, &[]);
    a.append(X, 1);
    b.append(X, 2);
    commit_all([a, b]);
    reads(&recorder, &[(X, &[1, 2])]);
    holds(&recorder.history(), &[ReadCommitted]);
    violates(&recorder.history(), &[SnapshotIsolation, Serializable], "lost-update");
}

#[test]
fn write_skew_g2_item() {
    let (recorder, [mut a, mut b]) = concurrent();
    for transaction in [&mut a, &mut b] {
        transaction.read(X, &[]);
        transaction.read(Y, &[]);
    }
    a.append(X, 1);
    b.append(Y, 2);
    commit_all([a, b]);
    reads(&recorder, &[(X, &[1]), (Y, &[2])]);
    holds(&recorder.history(), &[ReadCommitted, SnapshotIsolation, StrongSnapshotIsolation]);
    violates(&recorder.history(), &[Serializable, StrictSerializable], "G2-item");
}

#[test]
fn long_fork() {
    let (recorder, [mut a, mut b, mut c, mut d]) = concurrent();
    a.append(X, 1);
    b.append(Y, 2);
    c.read(X, &[1]);
    c.read(Y, &[]);
    d.read(X, &[]);
    d.read(Y, &[2]);
    commit_all([a, b, c, d]);
    holds(&recorder.history(), &[ReadCommitted]);
    violates(&recorder.history(), &[SnapshotIsolation, Serializable], "G-nonadjacent-item");
}

#[test]
fn phantom_of_a_range_read() {
    // Both count the keys in a range and insert one that the other did not find.
    let (recorder, [mut a, mut b]) = concurrent();
    a.read_range(100..=110, &[(105, vec![])]);
    b.read_range(100..=110, &[]);
    a.append(102, 1);
    b.append(108, 2);
    commit_all([a, b]);
    reads(&recorder, &[(102, &[1]), (108, &[2])]);
    holds(&recorder.history(), &[SnapshotIsolation]);
    violates(&recorder.history(), &[Serializable], "G2-item");

    // A range read finds one row of a commit and misses another one.
    let (recorder, [mut a, mut b]) = concurrent();
    a.append(102, 1);
    a.append(108, 1);
    b.read_range(100..=110, &[(102, vec![1])]);
    commit_all([a, b]);
    violates(&recorder.history(), &[SnapshotIsolation, Serializable], "G-single-item");
}

#[test]
fn a_snapshot_that_changes_within_a_transaction() {
    let (recorder, [mut a, mut b]) = concurrent();
    a.read(X, &[]);
    b.append(X, 1);
    b.committed(None);
    a.read(X, &[1]);
    a.committed(None);
    holds(&recorder.history(), &[ReadCommitted]);
    violates(&recorder.history(), &[SnapshotIsolation, Serializable], "internal");
}

#[test]
fn a_stale_read_violates_the_strong_levels_only() {
    let recorder = Recorder::new();
    let mut writer = recorder.begin(1);
    writer.append(X, 1);
    writer.committed(None);
    reads(&recorder, &[(X, &[])]);
    let history = recorder.history();
    holds(&history, &[SnapshotIsolation, SessionSnapshotIsolation, Serializable]);
    let strong = [StrongSnapshotIsolation, StrictSerializable];
    violates(&history, &strong, "G-single-item-realtime");
}

#[test]
fn a_session_that_misses_its_own_past() {
    let recorder = Recorder::new();
    for (append, list) in [(true, vec![]), (false, vec![])] {
        let mut transaction = recorder.begin(1);
        if append {
            transaction.append(X, 1);
        }
        transaction.read(Y, &list);
        if !append {
            transaction.read(X, &[]);
        }
        transaction.committed(None);
    }
    let history = recorder.history();
    holds(&history, &[SnapshotIsolation, Serializable]);
    violates(&history, &[SessionSnapshotIsolation], "G-single-item-process");
}

#[test]
fn an_acknowledged_append_that_is_gone() {
    let recorder = Recorder::new();
    for element in [1, 2, 3] {
        let mut writer = recorder.begin(1);
        writer.append(X, element);
        writer.committed(None);
    }
    reads(&recorder, &[(X, &[1, 3])]);
    violates(&recorder.history(), &[StrongReadCommitted], "G0-realtime");
    violates(&recorder.history(), &[StrongSnapshotIsolation], "G0-realtime");
}

#[test]
fn an_append_of_unknown_outcome_may_be_seen_or_not() {
    for list in [&[1, 2][..], &[2]] {
        let recorder = Recorder::new();
        let mut lost = recorder.begin(1);
        lost.append(X, 1);
        lost.read(X, &[77, 1]);
        drop(lost);
        let mut writer = recorder.begin(1);
        writer.append(X, 2);
        writer.read(X, list);
        writer.committed(None);
        reads(&recorder, &[(X, list)]);
        let mut history = recorder.history();
        let rejected = history.check(ReadCommitted).unwrap_err();
        assert_eq!(rejected.kinds(), ["unwritten-read"]);
        history.transactions[0].operations.pop();
        holds(&history, &ALL);
    }
}

#[test]
fn an_element_that_nobody_appended() {
    let recorder = Recorder::new();
    reads(&recorder, &[(X, &[1])]);
    violates(&recorder.history(), &ALL, "unwritten-read");
}

#[test]
fn a_history_without_dependencies_proves_nothing() {
    let recorder = Recorder::new();
    reads(&recorder, &[(X, &[])]);
    let rejected = recorder.history().check(Serializable).unwrap_err();
    assert!(matches!(rejected, super::Rejected::Undecided(_)), "{rejected}");
}

#[test]
#[should_panic(expected = "session 1 has one open")]
fn a_session_runs_one_transaction_at_a_time() {
    let recorder = Recorder::new();
    let _first = recorder.begin(1);
    let _second = recorder.begin(1);
}

/// A transaction that appends `element` to `key` after it has read `list` there.
fn timed(recorder: &Recorder, (snapshot, cts): (u64, u64), key: u32, list: &[u32], element: u32) {
    let mut transaction = recorder.begin(element);
    transaction.reads_at(Cts(snapshot));
    transaction.read(key, list);
    transaction.append(key, element);
    transaction.read(key, &[list, &[element]].concat());
    transaction.committed(Some(Cts(cts)));
}

#[test]
fn timestamps_that_tell_the_truth_are_accepted() {
    let recorder = Recorder::new();
    timed(&recorder, (2, 5), X, &[], 1);
    let mut open = recorder.begin(50);
    open.reads_at(Cts(5));
    timed(&recorder, (5, 6), Y, &[], 2);
    timed(&recorder, (7, 9), X, &[1], 3);
    open.read(X, &[1]);
    open.read(Y, &[]);
    open.committed(None);
    assert_eq!(recorder.history().check_timestamps(), Ok(()));
}

#[test]
fn each_lie_about_timestamps_is_found() {
    let first = |timestamps: [(u64, u64); 2], lists: [&[u32]; 2]| {
        let recorder = Recorder::new();
        timed(&recorder, timestamps[0], X, lists[0], 1);
        timed(&recorder, timestamps[1], X, lists[1], 2);
        recorder.history().check_timestamps().expect_err("a lie")
    };
    use TimestampViolation::{
        CommitBeforeSnapshot, ConcurrentWrites, SharedTimestamp, StaleSnapshot, WrongRead,
    };
    let found = first([(1, 3), (4, 5)], [&[], &[]]);
    let (expected, read) = (vec![1], vec![]);
    assert_eq!(found, WrongRead { key: X, snapshot: Cts(4), expected, found: read });
    let found = first([(1, 3), (2, 5)], [&[], &[]]);
    assert_eq!(found, ConcurrentWrites { key: X, first: Cts(3), second: Cts(5) });
    assert_eq!(first([(1, 3), (2, 3)], [&[], &[]]), SharedTimestamp(Cts(3)));
    let found = first([(1, 3), (5, 5)], [&[], &[1]]);
    assert_eq!(found, CommitBeforeSnapshot { snapshot: Cts(5), committed_at: Cts(5) });
    let recorder = Recorder::new();
    timed(&recorder, (1, 3), X, &[], 1);
    timed(&recorder, (2, 5), Y, &[], 2);
    let found = recorder.history().check_timestamps();
    assert_eq!(found, Err(StaleSnapshot { snapshot: Cts(2), acknowledged: Cts(3) }));
}

#[test]
fn an_append_of_unknown_outcome_has_no_timestamp_and_is_ignored() {
    let recorder = Recorder::new();
    let mut lost = recorder.begin(7);
    lost.append(X, 7);
    lost.unknown();
    timed(&recorder, (1, 3), X, &[], 1);
    timed(&recorder, (3, 5), X, &[1, 7], 2);
    assert_eq!(recorder.history().check_timestamps(), Ok(()));
}
