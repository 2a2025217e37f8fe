//! Members of a replicated log that come and go while it is written: all of them are replaced one
//! after the other, or at random, while others die, are cut off, or lose power together. What was
//! acknowledged is there. Each story runs under several seeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::log_store::conformance::Appender;
use firn_api::{LogStore, Watermarks, WriterEpoch};
use firn_base::{Cts, Lsn, PageId, PageNo, SpaceId, TrxId, task};
use firn_consensus::{MemberChange, MemberId, Role, Saved};
use firn_format::redo::{Change, GroupBuilder};
use firn_storage::group::GroupStore;
use firn_testing::group_log::{GroupCluster, GroupSettings};
use firn_testing::random::Random;
use firn_testing::simulation::{World, first_failure, for_each_seed};

/// A newcomer has caught up when it lacks no more log than this, in bytes.
const NEAR_BYTES: u64 = 3_000;

/// A group of one record.
fn group(number: u64, length: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let pattern = number.to_le_bytes();
    let page = PageId::new(SpaceId(1), PageNo(number as u32 % 50));
    builder.push(1, page, |body| body.extend(pattern.iter().cycle().take(length)));
    builder.finish().to_vec()
}

/// A group with a watermark.
fn watermark(limits: Watermarks) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let Watermarks { trx_id_limit, cts_limit } = limits;
    let change = Change::Watermark { trx_id_limit, cts_limit };
    change.encode(PageId::new(SpaceId(0), PageNo::NONE), &mut builder);
    builder.finish().to_vec()
}

/// A group that is written, and what was appended and is durable.
struct Story {
    cluster: GroupCluster,
    random: Random,
    acknowledged: Vec<u8>,
    /// The acknowledged log before it may be gone.
    let_go: Lsn,
    number: u64,
    limits: Watermarks,
    next_member: u64,
    /// What was done to the members.
    changes: u64,
}

impl Story {
    fn new(world: &World) -> Story {
        let random = world.random();
        let settings = GroupSettings {
            max_sync: Duration::from_micros(*random.pick(&[50, 500, 3_000])),
            recent_bytes: *random.pick(&[0, 1 << 20]),
            priority_step: 0,
            ..GroupSettings::new(3)
        };
        let cluster = GroupCluster::new(world, settings);
        cluster.start_all();
        Story {
            cluster,
            random,
            acknowledged: Vec::new(),
            let_go: Lsn::FIRST,
            number: 0,
            limits: Watermarks::default(),
            next_member: 4,
            changes: 0,
        }
    }

    fn end(&self) -> Lsn {
        Lsn::FIRST.advance(self.acknowledged.len() as u64)
    }

    /// Opens the log at the member that leads, if a majority answers. Everything that was
    /// acknowledged is there, and so are the watermarks of all of it.
    fn open(&mut self) -> Option<Appender> {
        let store = self.cluster.leader().and_then(|id| self.cluster.store(id))?;
        let log = Appender::open(&*store, WriterEpoch::Next).ok()?;
        self.compare(&store);
        let from = store.truncated_lsn();
        let kept = read_all(&*store);
        // What was never acknowledged may be there all the same, and is durable from now on.
        self.acknowledged.truncate(from.since(Lsn::FIRST) as usize);
        self.acknowledged.extend(kept);
        assert_eq!(log.tail.end, self.end());
        let limits = log.tail.watermarks;
        assert!(
            limits.trx_id_limit >= self.limits.trx_id_limit
                && limits.cts_limit >= self.limits.cts_limit,
            "ids of before are handed out again: {limits:?} after {:?}",
            self.limits
        );
        Some(log)
    }

    /// Compares what a member has with what was acknowledged.
    fn compare(&self, store: &GroupStore) {
        let from = store.truncated_lsn();
        assert!(from <= self.end(), "a member's log begins behind what was acknowledged");
        let kept = read_all(store);
        let expected = &self.acknowledged[from.since(Lsn::FIRST) as usize..];
        assert!(kept.starts_with(expected), "acknowledged log is lost");
    }

    /// Opens the log where it can be opened.
    fn wait_for_writer(&mut self) -> Appender {
        for _ in 0..2_000 {
            if let Some(log) = self.open() {
                return log;
            }
            task::sleep(Duration::from_millis(2));
        }
        panic!("nobody leads");
    }

    /// Commits groups, now and then with a watermark. Returns whether the writer goes on.
    fn commit(&mut self, log: &Appender, count: u64) -> bool {
        for _ in 0..count {
            self.number += 1;
            let mut limits = self.limits;
            let bytes = if self.random.below(12) == 0 {
                limits.raise(Watermarks {
                    trx_id_limit: TrxId(self.number * 1_000),
                    cts_limit: Cts(self.number * 700),
                });
                watermark(limits)
            } else {
                group(self.number, 700)
            };
            let end = log.append(&bytes);
            if log.writer.wait_durable(end).is_err() {
                return false;
            }
            self.acknowledged.extend_from_slice(&bytes);
            self.limits = limits;
        }
        true
    }

    /// A process with an empty log becomes a learner, and gets the log. Commits go on.
    fn learn(&mut self, log: &Appender) -> u64 {
        let new = self.next_member;
        self.next_member += 1;
        self.cluster.add(new);
        let learner = MemberChange::Set(MemberId(new), Role::Learner);
        assert!(self.cluster.change_members(&[learner]), "the newcomer is not taken");
        for _ in 0..2_000 {
            assert!(self.commit(log, 1), "a newcomer ends the writer");
            let store = self.cluster.store(new).expect("it runs");
            if store.durable_lsn().0 + NEAR_BYTES >= self.end().0 {
                return new;
            }
        }
        panic!("the newcomer does not catch up");
    }

    /// Waits until all members have the same durable log, and compares their disks.
    fn agree(&self) {
        let stores = || self.cluster.ids().filter_map(|id| self.cluster.store(id));
        let has_all = || stores().all(|store| store.durable_lsn() >= self.end());
        for _ in 0..5_000 {
            if has_all() {
                break;
            }
            task::sleep(Duration::from_millis(2));
        }
        let each: Vec<Lsn> = stores().map(|store| store.durable_lsn()).collect();
        assert!(has_all(), "a member stays behind {}: {each:?}", self.end());
        stores().for_each(|store| self.compare(&store));
        let disks: Vec<Saved> =
            self.cluster.ids().map(|id| self.cluster.disk(id).synced()).collect();
        for pair in disks.windows(2) {
            let after = pair[0].base.index.max(pair[1].base.index);
            let until = pair[0].durable.min(pair[1].durable);
            let of = |saved: &Saved| {
                let kept = saved.entries.iter();
                let kept = kept.filter(|entry| entry.index > after && entry.index <= until);
                kept.cloned().collect::<Vec<_>>()
            };
            assert_eq!(of(&pair[0]), of(&pair[1]), "two members have different durable entries");
        }
    }
}

fn read_all(store: &dyn LogStore) -> Vec<u8> {
    let (mut bytes, mut position) = (Vec::new(), store.truncated_lsn());
    while position < store.durable_lsn() {
        position = store.read(position, 5_000, &mut bytes).expect("kept log can be read");
    }
    bytes
}

fn swap(new: u64, old: u64) -> [MemberChange; 2] {
    [MemberChange::Set(MemberId(new), Role::Voter), MemberChange::Remove(MemberId(old))]
}

#[test]
fn all_members_are_replaced_one_after_the_other() {
    for_each_seed(0..10, |world| {
        let mut story = Story::new(world);
        let mut log = story.wait_for_writer();
        for old in 1..=3 {
            assert!(story.commit(&log, 20));
            let new = story.learn(&log);
            if story.cluster.leader() == Some(old) {
                // The engine of the new leader is another one.
                let to = story.cluster.ids().find(|id| *id != old && *id != new).expect("three");
                drop(log);
                story.cluster.lead_at(to);
                log = story.wait_for_writer();
            }
            assert!(story.cluster.change_members(&swap(new, old)), "the members are not changed");
            story.cluster.remove(old);
            assert!(story.commit(&log, 5), "whoever leaves ends the writer");
        }
        assert!(story.cluster.ids().eq(4..=6));
        story.agree();
        drop(log);
        // The power fails. None of those that come back was there when the log began.
        story.cluster.crash_all();
        story.cluster.start_all();
        let log = story.wait_for_writer();
        assert!(story.commit(&log, 5));
        story.agree();
    });
}

#[test]
fn a_newcomer_takes_the_place_of_a_dead_member() {
    for_each_seed(0..6, |world| {
        let mut story = Story::new(world);
        drop(story.wait_for_writer());
        story.cluster.crash(3);
        let mut log = story.wait_for_writer();
        let new = story.learn(&log);
        assert!(story.cluster.change_members(&swap(new, 3)));
        assert!(story.commit(&log, 5));
        // With the dead one, two of four would be no majority.
        let gone = [1, 2].into_iter().find(|id| story.cluster.leader() != Some(*id));
        story.cluster.crash(gone.expect("one of two"));
        assert!(story.commit(&log, 5), "the newcomer does not vote");
        // The dead one comes back, and disturbs nobody.
        story.cluster.start(3);
        task::sleep(Duration::from_millis(500));
        assert!(story.commit(&log, 5), "a member that was removed ends the writer");
        story.cluster.remove(3);
        story.cluster.start_all();
        drop(log);
        log = story.wait_for_writer();
        assert!(story.commit(&log, 1));
        story.agree();
    });
}

/// At random, members are added, removed, given other roles, killed and cut off. The member that
/// opens the log has all that was acknowledged. Returns how many changes of members came into
/// force.
fn members_come_and_go(world: &World, forgets: bool) -> u64 {
    let mut story = Story::new(world);
    for _ in 0..24 {
        do_something(&mut story, forgets);
        task::sleep(Duration::from_micros(story.random.below(100_000)));
        if let Some(log) = story.open() {
            let count = 1 + story.random.below(6);
            story.commit(&log, count);
        }
    }
    story.cluster.heal();
    story.cluster.start_all();
    let log = story.wait_for_writer();
    assert!(story.commit(&log, 3), "nothing ends this writer");
    let leader = story.cluster.leader().expect("it writes");
    let members = story.cluster.store(leader).expect("it runs").members();
    let strangers: Vec<u64> =
        story.cluster.ids().filter(|id| members.role(MemberId(*id)).is_none()).collect();
    strangers.into_iter().for_each(|id| story.cluster.remove(id));
    story.agree();
    story.changes
}

fn do_something(story: &mut Story, forgets: bool) {
    let cluster = story.cluster.clone();
    let ids: Vec<u64> = cluster.ids().collect();
    let any = *story.random.pick(&ids);
    match story.random.below(12) {
        0 => cluster.cut([any]),
        1 => {
            cluster.crash(any);
            if forgets {
                cluster.forget_log(any);
            }
        }
        2 => cluster.disk(any).set_stalled(true),
        3 => cluster.crash_all(),
        4 | 5 => {
            cluster.heal();
            cluster.start_all();
        }
        6 => {
            // What is read by nobody may go, so that newcomers begin at later bases.
            story.let_go = Lsn(story.end().0.saturating_sub(5_000)).max(story.let_go);
            for store in ids.iter().filter_map(|id| cluster.store(*id)) {
                store.let_go(story.let_go);
            }
        }
        _ => change_something(story, any),
    }
}

fn change_something(story: &mut Story, any: u64) {
    let cluster = story.cluster.clone();
    let Some(store) = cluster.leader().and_then(|id| cluster.store(id)) else { return };
    let Some(term) = store.leads() else { return };
    let members = store.members();
    let learner = members.iter().find(|(_, role)| *role == Role::Learner).map(|(id, _)| id.0);
    let voters = members.iter().filter(|(_, role)| role.votes()).count();
    let changes = match (story.random.below(4), learner) {
        (0, Some(new)) => vec![MemberChange::Set(MemberId(new), Role::Voter)],
        (1, Some(new)) if new != any => swap(new, any).to_vec(),
        (2, _) if voters > 3 => vec![MemberChange::Remove(MemberId(any))],
        (3, _) if voters > 2 => vec![MemberChange::Set(MemberId(any), Role::Logger)],
        _ if cluster.ids().count() < 7 => {
            let new = story.next_member;
            story.next_member += 1;
            cluster.add(new);
            vec![MemberChange::Set(MemberId(new), Role::Learner)]
        }
        _ => return,
    };
    let Ok(()) = store.change_members(term, &changes) else { return };
    story.changes += 1;
    // A process that is told to end while its removal is not durable votes on: it is not ended.
}

#[test]
fn members_that_come_and_go_lose_nothing() {
    let total = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&total);
    for_each_seed(0..40, move |world| {
        sum.fetch_add(members_come_and_go(world, false), Ordering::SeqCst);
    });
    assert!(total.load(Ordering::SeqCst) > 40, "hardly any member comes or goes");
}

#[test]
fn a_member_that_comes_back_without_its_log_is_found() {
    let failure = first_failure(0..100, |world| {
        members_come_and_go(world, true);
    });
    let failure = failure.expect("log that was acknowledged is there, though members forgot it");
    let text = failure.to_string();
    assert!(text.contains("acknowledged") || text.contains("lost data"), "{text}");
}
