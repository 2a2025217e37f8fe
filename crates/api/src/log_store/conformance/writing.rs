//! Making log durable, and reading it.

use std::sync::Arc;
use std::time::Duration;

use firn_base::Lsn;
use firn_base::task::{TaskHandle, sleep};
use parking_lot::Mutex;

use super::appender::{group, read_all};
use super::{Appender, Lives, Node};
use crate::log_store::{LogError, LogStore, WriterEpoch};

/// What all lives appended, and how much of it was reported as durable.
#[derive(Default)]
pub(super) struct Model {
    bytes: Vec<u8>,
    durable: Lsn,
    groups: u32,
}

impl Model {
    pub(super) fn end(&self) -> Lsn {
        Lsn::FIRST.advance(self.bytes.len() as u64)
    }

    /// Starts a life: nothing that was reported as durable may be missing, and everything that is
    /// there was appended in this order. All of it is durable from now on.
    pub(super) fn settle(&mut self, log: &Appender, store: &dyn LogStore) {
        let end = log.tail.end;
        assert!(end >= self.durable, "the log ends at {end}; {} was durable", self.durable);
        assert!(end <= self.end(), "the log ends at {end}, but {} was appended", self.end());
        self.bytes.truncate(end.since(Lsn::FIRST) as usize);
        self.durable = end;
        assert_eq!(store.durable_lsn(), end, "an opened log is durable");
        assert!(read_all(store) == self.bytes, "the log is not what was appended");
    }

    /// Appends a group to the log and to the model, so both have the same order.
    pub(super) fn append(&mut self, log: &Appender, length: usize) -> Lsn {
        self.groups += 1;
        let group = group(self.groups, length);
        self.bytes.extend_from_slice(&group);
        let end = log.append(&group);
        assert_eq!(end, self.end(), "the tail's end is where the first group goes");
        end
    }

    pub(super) fn is_durable(&mut self, lsn: Lsn) {
        self.durable = self.durable.max(lsn);
    }
}

fn committer(log: &Appender, model: &Mutex<Model>, random: impl Fn() -> u64) {
    for _ in 0..10 {
        let end = model.lock().append(log, (random() % 3_000) as usize);
        match random() % 6 {
            0 => log.writer.submit(end),
            4 | 5 => {
                log.leave(end).expect("nothing ends this writer");
                if random().is_multiple_of(2) {
                    log.answer(end).expect("nothing ends this writer");
                    assert!(log.durable() >= end, "{end} was answered before it was durable");
                    model.lock().is_durable(end);
                }
            }
            1 => sleep(Duration::from_micros(random() % 500)),
            _ => {
                log.wait(end).expect("nothing ends this writer");
                model.lock().is_durable(end);
            }
        }
    }
}

fn start_committer(
    node: &dyn Node,
    log: &Arc<Appender>,
    model: &Arc<Mutex<Model>>,
) -> Box<dyn TaskHandle> {
    let (log, model) = (Arc::clone(log), Arc::clone(model));
    let source = Arc::clone(&node.environment().random);
    let body = move || committer(&log, &model, || source.next_u64());
    node.environment().spawner.spawn("committer", Box::new(body))
}

pub(super) fn durable_survives(lives: &dyn Lives) {
    let model = Arc::new(Mutex::new(Model::default()));
    for _ in 0..4 {
        let model = Arc::clone(&model);
        lives.live(Box::new(move |node| {
            let store = node.store();
            let log = Appender::open(&*store, WriterEpoch::Next).expect("a good store");
            let log = Arc::new(log);
            model.lock().settle(&log, &*store);
            let committers: Vec<_> = (0..3).map(|_| start_committer(node, &log, &model)).collect();
            assert!(committers.into_iter().all(|committer| committer.join()), "a committer failed");
            // And some that no thread waits for: only what the store reports about them counts.
            for _ in 0..5 {
                let end = model.lock().append(&log, 700);
                log.writer.submit(end);
                sleep(Duration::from_micros(node.environment().random.next_u64() % 300));
                model.lock().is_durable(log.durable().max(store.durable_lsn()));
            }
        }));
    }
}

pub(super) fn submitted_is_told(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let log = Appender::open(&*node.store(), WriterEpoch::Next).expect("a good store");
        for number in 0..20 {
            let end = log.append(&group(number, 300));
            log.writer.submit(end);
            if number % 3 == 0 {
                log.hear(end).expect("nothing ends this writer");
                assert!(log.durable() >= end && node.store().durable_lsn() >= end);
            }
        }
        // A committer may make submitted log durable; the store reports it all the same.
        let submitted = log.append(&group(20, 300));
        log.writer.submit(submitted);
        log.commit(&group(21, 300)).expect("nothing ends this writer");
        log.hear(submitted).expect("nothing ends this writer");
    }));
}

pub(super) fn left_is_answered(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let log =
            Arc::new(Appender::open(&*node.store(), WriterEpoch::Next).expect("a good store"));
        let leave_one_by_one = |first: u32| {
            let log = Arc::clone(&log);
            let body = move || {
                for number in first..first + 10 {
                    let end = log.append(&group(number, 300));
                    log.leave(end).expect("nothing ends this writer");
                    log.answer(end).expect("nothing ends this writer");
                    assert!(log.durable() >= end, "{end} was answered before it was durable");
                }
            };
            node.environment().spawner.spawn("committer", Box::new(body))
        };
        let committers: Vec<_> = (0..4).map(|number| leave_one_by_one(number * 10)).collect();
        assert!(committers.into_iter().all(|committer| committer.join()), "a committer failed");
        // Nobody waits, and a group before it is not complete yet.
        log.open_hole();
        let end = log.append(&group(50, 300));
        let leaving = Arc::clone(&log);
        let body = move || leaving.leave(end).expect("nothing ends this writer");
        let leaver = node.environment().spawner.spawn("committer", Box::new(body));
        sleep(Duration::from_millis(2));
        log.close_hole();
        assert!(leaver.join());
        log.answer(end).expect("nothing ends this writer");
        // All that have left are answered before a writer that is closed has ended.
        let last: Vec<_> = (51..55).map(|number| log.append(&group(number, 300))).collect();
        last.iter().for_each(|end| log.leave(*end).expect("nothing ends this writer"));
        log.writer.close();
        last.iter().for_each(|end| log.answer(*end).expect("it was closed in order"));
    }));
}

pub(super) fn holes_hold_back(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let log = Appender::open(&*node.store(), WriterEpoch::Next).expect("a good store");
        let before = log.append(&group(1, 100));
        log.open_hole();
        let end = log.append(&[group(2, 100), group(3, 100)].concat());
        log.writer.submit(end);
        log.wait(before).expect("nothing ends this writer");
        sleep(Duration::from_millis(5));
        assert_eq!((log.durable(), node.store().durable_lsn()), (before, before));
        log.close_hole();
        log.wait(end).expect("nothing ends this writer");
    }));
}

pub(super) fn closed_is_durable(lives: &dyn Lives) {
    let written = Arc::new(Mutex::new(Vec::new()));
    let model = Arc::clone(&written);
    lives.live(Box::new(move |node| {
        let store = node.store();
        let log = Appender::open(&*store, WriterEpoch::Next).expect("a good store");
        for number in 0..10 {
            let group = group(number, 900);
            log.writer.submit(log.append(&group));
            model.lock().extend_from_slice(&group);
        }
        let end = log.append(&[]);
        log.writer.close();
        log.writer.close();
        assert_eq!((log.durable(), store.durable_lsn()), (end, end));
        assert!(log.hear_end().ends_writer());
        assert!(log.writer.failure().is_some() && log.writer.room().is_err());
        assert!(log.commit(&group(10, 10)).is_err());
        // Another writer in the same process continues.
        let next = Appender::open(&*store, WriterEpoch::Next).expect("the stream is still good");
        assert_eq!(next.tail.end, end);
        let group = group(11, 10);
        model.lock().extend_from_slice(&group);
        next.commit(&group).expect("nothing ends this writer");
    }));
    lives.live(Box::new(move |node| {
        let log = Appender::open(&*node.store(), WriterEpoch::Next).expect("a good store");
        assert_eq!(log.tail.end, Lsn::FIRST.advance(written.lock().len() as u64));
        assert!(read_all(&*node.store()) == *written.lock());
    }));
}

pub(super) fn reads(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let store = node.store();
        let log = Appender::open(&*store, WriterEpoch::Next).expect("a good store");
        let groups = [group(1, 100), group(2, 9_000), group(3, 100)];
        let ends: Vec<Lsn> =
            groups.iter().map(|group| log.commit(group).expect("a good store")).collect();
        let mut position = Lsn::FIRST;
        for ((group, end), limit) in groups.iter().zip(&ends).zip([200, 0, 1 << 30]) {
            let mut bytes = b"kept".to_vec();
            assert_eq!(store.read(position, limit, &mut bytes).expect("kept log"), *end);
            assert_eq!(bytes, [b"kept", group.as_slice()].concat());
            position = *end;
        }
        let mut nothing = Vec::new();
        assert_eq!(store.read(position, 1, &mut nothing).expect("the end can be read"), position);
        assert!(nothing.is_empty());
        for outside in [Lsn(0), position.advance(8)] {
            let refused = store.read(outside, 1, &mut nothing).expect_err("it is not there");
            assert!(matches!(refused, LogError::OutOfRange { .. }), "{refused}");
        }
    }));
}
