//! What readers hold, at every member, and what becomes of it when they are gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::{FollowOptions, Followed, LogError, LogFollower, LogStore, OpenedLog, WriterEpoch};
use firn_base::{Lsn, task};
use firn_link::Caller;
use firn_log_service::{RemoteLog, RemoteLogOptions};
use firn_testing::simulation::for_each_seed;

use crate::following::write;
use crate::support::{Group, MS, SECOND, client_options, follow_options, next_piece};

fn staying() -> RemoteLogOptions {
    RemoteLogOptions { stays: vec!["pages".to_owned()], ..client_options() }
}

/// Reads up to `to` at least.
fn read_up_to(follower: &mut dyn LogFollower, to: Lsn) {
    while follower.position() < to {
        assert!(next_piece(follower, 1_000).is_some(), "the stream goes on");
    }
}

#[test]
fn a_reader_holds_the_log_at_every_member_until_it_lets_go() {
    for_each_seed(0..8, |world| {
        let group = Group::of_three(world);
        let (reader, log) = group.reader("reader");
        let mut follower = log.follow(follow_options("reader", Lsn::FIRST)).unwrap();
        let end = write(&group, 100, |_| {});
        group.let_go_of_all();
        assert_eq!(group.truncated(), [Lsn::FIRST; 3], "the reader holds everything");
        read_up_to(&mut *follower, Lsn(20_000));
        let released = follower.position();
        follower.release(released);
        group.let_go_of_all();
        for truncated in group.truncated() {
            assert!(truncated > Lsn::FIRST, "nothing was truncated");
            assert!(truncated <= released, "{truncated} is held");
        }
        // A member that was away did not hear of the reader's hold, but never let go of the log.
        let away = 1 + world.random().below(3);
        group.crash(away);
        group.start(away);
        task::sleep(SECOND);
        group.let_go_of_all();
        assert!(group.truncated().iter().all(|truncated| *truncated <= released));
        read_up_to(&mut *follower, end);
        drop(follower);
        group.let_go_of_all();
        assert!(group.truncated().iter().all(|truncated| *truncated > released));
        drop((log, reader));
    });
}

#[test]
fn readers_of_a_client_that_died_let_go_after_their_time() {
    for_each_seed(0..8, |world| {
        let group = Group::of_three(world);
        let (reader, log) = group.reader("reader");
        let follower = log.follow(follow_options("reader", Lsn::FIRST)).unwrap();
        write(&group, 50, |_| {});
        reader.crash();
        task::sleep(SECOND);
        group.let_go_of_all();
        assert_eq!(group.truncated(), [Lsn::FIRST; 3], "the lease is not over");
        task::sleep(2 * SECOND);
        group.let_go_of_all();
        assert!(group.truncated().iter().all(|truncated| *truncated > Lsn::FIRST));
        drop((follower, log));
    });
}

#[test]
fn a_reader_that_stays_finds_its_log_after_all_processes_have_died() {
    for_each_seed(0..20, |world| {
        let group = Group::of_three(world);
        let random = world.random();
        let first = write(&group, 60, |_| {});
        let (reader, log) = group.reader_with("pages", staying());
        // One member may not be there when the reader registers.
        let away = random.chance(0.5).then(|| 1 + random.below(3));
        away.into_iter().for_each(|id| group.crash(id));
        let mut follower = log.follow(follow_options("pages", Lsn::FIRST)).unwrap();
        read_up_to(&mut *follower, Lsn(10_000));
        let released = follower.position();
        follower.release(released);
        task::sleep(random.below(100) as u32 * MS);
        if random.chance(0.5) {
            reader.crash();
            drop((follower, log));
        } else {
            drop(follower);
            log.close();
        }
        task::sleep(random.below(5) as u32 * SECOND);
        group.crash_all();
        group.start_all();
        let end = write(&group, 20, |_| {});
        group.let_go_of_all();
        assert!(end > first);

        let (_reader, log) = group.reader_with("pages", staying());
        let begin = log.kept_for("pages");
        assert!(begin <= released, "log from {released} on was held, and it is at {begin}");
        let mut follower = log.follow(follow_options("pages", begin)).unwrap();
        read_up_to(&mut *follower, end);
        follower.release(end);
        group.let_go_of_all();
        drop(follower);
        log.forget("pages").unwrap();
        group.let_go_of_all();
        let kept: Vec<_> = (1..=3).flat_map(|id| group.readers(id)).collect();
        assert!(kept.is_empty(), "{kept:?}");
        assert!(group.truncated().iter().all(|truncated| *truncated > released));
    });
}

#[test]
fn a_reader_that_stays_away_too_long_is_dropped_for_good() {
    for_each_seed(0..8, |world| {
        let group = Group::of_three(world);
        let (reader, log) = group.reader_with("pages", staying());
        let limited =
            FollowOptions { hold_limit_bytes: 5_000, ..follow_options("pages", Lsn::FIRST) };
        let follower = log.follow(limited.clone()).unwrap();
        reader.crash();
        drop((follower, log));
        let end = write(&group, 100, |_| {});
        assert_eq!(group.truncated(), [Lsn::FIRST; 3]);
        group.let_go_of_all();
        assert!(group.truncated().iter().all(|truncated| *truncated > Lsn::FIRST));
        task::sleep(SECOND);
        if world.random().chance(0.5) {
            group.crash_all();
            group.start_all();
            task::sleep(SECOND);
        }
        for id in 1..=3 {
            assert!(group.readers(id).is_empty(), "it is still registered at {id}");
        }
        let (_reader, log) = group.reader_with("pages", staying());
        let gone = log.follow(limited).err().unwrap();
        let LogError::OutOfRange { from, .. } = gone else { panic!("{gone}") };
        let mut follower = log.follow(follow_options("pages", from)).unwrap();
        read_up_to(&mut *follower, end);
    });
}

#[test]
fn a_reader_that_holds_back_too_much_is_told() {
    for_each_seed(0..8, |world| {
        let group = Group::of_three(world);
        let (_reader, log) = group.reader("reader");
        let limited =
            FollowOptions { hold_limit_bytes: 5_000, ..follow_options("slow", Lsn::FIRST) };
        let mut slow = log.follow(limited).unwrap();
        assert!(matches!(slow.next(1, 100 * MS), Ok(Followed::Nothing)));
        // A member that is away drops nobody, and does not keep the reader.
        group.crash(1 + world.random().below(3));
        write(&group, 100, |_| {});
        group.let_go_of_all();
        let error = loop {
            match slow.next(1_000, 100 * MS) {
                Ok(Followed::Piece(_) | Followed::Nothing) => {}
                Ok(Followed::End) => panic!("it has no end"),
                Err(error) => break error,
            }
        };
        let LogError::ReaderDropped { name, held, limit_bytes } = error else { panic!("{error}") };
        assert_eq!((name.as_str(), held, limit_bytes), ("slow", Lsn::FIRST, 5_000));
    });
}

/// A store that returns more log than it says is durable.
struct Hasty {
    inner: Arc<dyn LogStore>,
    durable: Arc<AtomicU64>,
}

impl LogStore for Hasty {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        self.inner.open(epoch)
    }

    fn durable_lsn(&self) -> Lsn {
        self.inner.durable_lsn().min(Lsn(self.durable.load(Ordering::SeqCst)))
    }

    fn truncated_lsn(&self) -> Lsn {
        self.inner.truncated_lsn()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.inner.read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        self.inner.follow(options)
    }
}

#[test]
fn log_that_is_not_durable_does_not_go_out() {
    for_each_seed(0..3, |world| {
        let durable = Arc::new(AtomicU64::new(u64::MAX));
        let of_stores = Arc::clone(&durable);
        let group = Group::of_three_with(world, move |inner| {
            Arc::new(Hasty { inner, durable: Arc::clone(&of_stores) })
        });
        let said = write(&group, 10, |_| {});
        durable.store(said.0, Ordering::SeqCst);
        write(&group, 10, |_| {});
        let hurried = RemoteLogOptions { patience: 500 * MS, ..client_options() };
        let (reader, log) = group.reader_with("reader", hurried);
        let task = reader.spawn("read", move |_| {
            let mut follower = log.follow(follow_options("reader", Lsn::FIRST)).unwrap();
            for _ in 0..4 {
                let _ = follower.next(1 << 20, 20 * MS);
                assert!(follower.position() <= said, "log after {said} went out");
                let mut bytes = Vec::new();
                if let Ok(end) = log.read(Lsn::FIRST, 1 << 20, &mut bytes) {
                    assert!(end <= said, "log after {said} went out");
                }
                assert!(log.durable_lsn() <= said);
                task::sleep(MS);
            }
        });
        task.join().unwrap();
    });
}

#[test]
fn what_a_reader_holds_is_held_by_those_that_replace_the_members() {
    for_each_seed(0..8, |world| {
        let group = Group::of_three(world);
        let process = world.start("reader", &world.new_disk());
        let environment = process.environment();
        let mut callers: BTreeMap<u64, Arc<Caller>> =
            (1..=3).map(|id| (id, group.caller(&environment, id))).collect();
        let members = callers.values().cloned().collect();
        let log =
            process.run(move |environment| RemoteLog::open(environment, members, client_options()));
        let log = log.expect("nobody kills it").expect("a majority answers");
        let mut follower = log.follow(follow_options("reader", Lsn::FIRST)).unwrap();
        for old in 1..=3 {
            let end = write(&group, 30, |_| {});
            let new = old + 3;
            group.join(new);
            read_up_to(&mut *follower, end);
            follower.release(follower.position());
            callers.remove(&old);
            callers.insert(new, group.caller(&environment, new));
            let members: Vec<_> = callers.values().cloned().collect();
            let own = Arc::clone(&log);
            process.run(move |_| own.set_members(&members)).expect("nobody kills it");
            group.replace(old, new);
        }
        let held = follower.position();
        let end = write(&group, 60, |_| {});
        task::sleep(SECOND);
        group.let_go_of_all();
        for truncated in group.truncated() {
            assert!(truncated <= held, "{truncated} is let go, and {held} is held");
        }
        read_up_to(&mut *follower, end);
        drop((follower, log));
    });
}
