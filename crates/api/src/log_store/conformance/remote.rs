//! Logs whose copies are on other nodes: copies that do not answer, writers that are cut off,
//! another leader, and log that the copies do not take.

use std::sync::Arc;
use std::time::Duration;

use firn_base::Lsn;
use firn_base::task::sleep;
use parking_lot::Mutex;

use super::appender::{LONG, group, read_all};
use super::writing::Model;
use super::{Appender, Copies, Lives, Node};
use crate::log_store::{LogError, LogStore, WriterEpoch};

/// Longer than a store keeps a round in flight whose copies answer.
const SOON: Duration = Duration::from_millis(200);

fn copies(node: &dyn Node) -> &dyn Copies {
    node.copies().expect("the store keeps its log in copies elsewhere")
}

fn opened(store: &dyn LogStore) -> Appender {
    Appender::open(store, WriterEpoch::Next).expect("a good store")
}

fn assert_unavailable(error: &LogError) {
    assert!(matches!(error, LogError::Unavailable { .. }), "{error:?} instead of: unavailable");
}

fn assert_not_leader(error: &LogError, leader: &str) {
    match error {
        LogError::NotLeader { hint: Some(hint) } if hint == leader => {}
        other => panic!("{other:?} instead of: not the leader, that is {leader}"),
    }
}

pub(super) fn minority(lives: &dyn Lives) {
    let model = Arc::new(Mutex::new(Model::default()));
    // Each life may lose another minority, so that a majority must have each group.
    for _ in 0..6 {
        let model = Arc::clone(&model);
        lives.live(Box::new(move |node| {
            copies(node).lose_minority();
            let store = node.store();
            let log = opened(&*store);
            let mut model = model.lock();
            model.settle(&log, &*store);
            for length in [200, 900, 50] {
                let end = model.append(&log, length);
                log.wait(end).expect("nothing ends this writer");
                model.is_durable(end);
            }
            // Not waited for: it may be in the log of the next life.
            let end = model.append(&log, 300);
            log.writer.submit(end);
        }));
    }
}

pub(super) fn coming_and_going(lives: &dyn Lives) {
    let model = Arc::new(Mutex::new(Model::default()));
    for _ in 0..5 {
        let model = Arc::clone(&model);
        lives.live(Box::new(move |node| {
            let store = node.store();
            let log = opened(&*store);
            let random = &node.environment().random;
            // Only this task uses it, and not while it waits.
            let mut own = std::mem::take(&mut *model.lock());
            own.settle(&log, &*store);
            for _ in 0..30 {
                match random.next_u64() % 12 {
                    0 => copies(node).lose_minority(),
                    1 => copies(node).lose_majority(),
                    2..5 => copies(node).heal(),
                    _ => {}
                }
                let end = own.append(&log, (random.next_u64() % 1_500) as usize);
                log.writer.submit(end);
                sleep(Duration::from_micros(random.next_u64() % 3_000));
                own.is_durable(log.durable().max(store.durable_lsn()));
            }
            *model.lock() = own;
        }));
    }
}

pub(super) fn majority(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let (store, other) = (node.store(), node.other_store());
        let log = opened(&*store);
        let before = log.commit(&group(1, 500)).expect("nobody else writes");
        copies(node).lose_majority();
        let end = log.append(&group(2, 500));
        log.writer.submit(end);
        for _ in 0..2 {
            assert_unavailable(&log.writer.wait_durable(end).expect_err("no majority has it"));
            assert_eq!((log.durable(), store.durable_lsn()), (before, before));
        }
        assert_unavailable(&log.writer.room().expect_err("no majority takes it"));
        assert!(log.writer.failure().is_none(), "it has not ended");
        let refused = other.open(WriterEpoch::Next).expect_err("no majority agrees");
        assert_unavailable(&refused);
        copies(node).heal();
        log.wait(end).expect("an open that was refused ends no writer");
        log.hear(end).expect("nothing has ended it");
        log.writer.room().expect("the copies answer");
        assert_eq!((log.durable(), store.durable_lsn()), (end, end));
        assert!(read_all(&*store) == [group(1, 500), group(2, 500)].concat());
    }));
}

pub(super) fn left_without_majority(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let store = node.store();
        let log = opened(&*store);
        let before = log.commit(&group(1, 500)).expect("nobody else writes");
        copies(node).lose_majority();
        let ends: Vec<_> = (2..5).map(|number| log.append(&group(number, 200))).collect();
        for end in &ends {
            // A store that lets nobody leave says so here.
            let left = log.leave(*end);
            assert_unavailable(&left.and_then(|()| log.answer(*end)).expect_err("no majority"));
        }
        assert_eq!((log.durable(), store.durable_lsn()), (before, before));
        assert!(log.writer.failure().is_none(), "it has not ended");
        copies(node).heal();
        log.wait(ends[2]).expect("it has not ended");
        // It lets commits be left again.
        let end = log.append(&group(5, 200));
        log.leave(end).expect("a majority answers");
        log.answer(end).expect("a majority answers");
        copies(node).lead_at("10.1.2.3:4407");
        let end = log.append(&group(6, 200));
        let left = log.leave(end).and_then(|()| log.answer(end));
        match left.expect_err("another node leads") {
            LogError::Unavailable { .. } => {}
            error => assert_not_leader(&error, "10.1.2.3:4407"),
        }
    }));
}

pub(super) fn waited(lives: &dyn Lives) {
    let model = Arc::new(Mutex::new(Model::default()));
    for life in 0..10 {
        let model = Arc::clone(&model);
        lives.live(Box::new(move |node| {
            let store = node.store();
            let log = opened(&*store);
            let mut model = model.lock();
            model.settle(&log, &*store);
            if life % 2 == 1 {
                // What it has found is durable, although nothing is appended to it.
                return;
            }
            let end = model.append(&log, 400);
            log.wait(end).expect("nothing ends this writer");
            model.is_durable(end);
            for number in 0..4 {
                if number == life / 2 {
                    copies(node).lose_majority();
                }
                let end = model.append(&log, 700);
                log.writer.submit(end);
            }
        }));
    }
}

pub(super) fn cut_off(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let (store, other) = (node.store(), node.other_store());
        let old = opened(&*store);
        let acknowledged = old.commit(&group(1, 500)).expect("nobody else writes");
        copies(node).isolate();
        let late = old.append(&group(2, 700));
        old.writer.submit(late);
        let new = opened(&*other);
        assert!(new.tail.epoch > old.tail.epoch && new.tail.end >= acknowledged);
        let after = new.commit(&group(3, 300)).expect("an older writer fences nobody");
        assert_unavailable(&old.writer.wait_durable(late).expect_err("it is cut off"));
        assert!(old.durable() <= new.tail.end, "the older writer goes on");
        copies(node).heal();
        match old.wait(late).expect_err("it is fenced") {
            LogError::Fenced { by } => assert!(by >= new.tail.epoch),
            error => panic!("{error:?} instead of: fenced"),
        }
        assert!(matches!(old.hear_end(), LogError::Fenced { .. }));
        assert!(old.durable() <= new.tail.end, "the older writer goes on");
        let kept = read_all(&*other);
        // The late group was sent before the newer writer opened, so it may be in the log.
        let is_there = new.tail.end > acknowledged;
        let between = if is_there { group(2, 700) } else { Vec::new() };
        assert!(kept == [group(1, 500), between, group(3, 300)].concat(), "not the log of the two");
        assert_eq!(after, Lsn::FIRST.advance(kept.len() as u64));
    }));
}

pub(super) fn another_leader(lives: &dyn Lives) {
    let acknowledged = Arc::new(Mutex::new(Lsn::FIRST));
    let own = Arc::clone(&acknowledged);
    lives.live(Box::new(move |node| {
        let store = node.store();
        let log = opened(&*store);
        *own.lock() = log.commit(&group(1, 500)).expect("nobody else writes");
        copies(node).lead_at("10.1.2.3:4407");
        let late = log.append(&group(2, 500));
        log.writer.submit(late);
        assert_not_leader(&log.wait(late).expect_err("it may not write"), "10.1.2.3:4407");
        assert_not_leader(&log.hear_end(), "10.1.2.3:4407");
        assert_not_leader(&log.writer.failure().expect("it has ended"), "10.1.2.3:4407");
        assert_not_leader(&log.writer.room().expect_err("it has ended"), "10.1.2.3:4407");
        let refused = store.open(WriterEpoch::Next).expect_err("it may not write");
        assert_not_leader(&refused, "10.1.2.3:4407");
        copies(node).heal();
        let again = opened(&*store);
        assert!(again.tail.epoch > log.tail.epoch, "an epoch was handed out twice");
        again.commit(&group(3, 500)).expect("nobody else writes");
    }));
    lives.live(Box::new(move |node| {
        let log = opened(&*node.store());
        assert!(log.tail.end > *acknowledged.lock());
        // The late group was refused while another node led, and may have arrived after that.
        let kept = read_all(&*node.store());
        let without = [group(1, 500), group(3, 500)].concat();
        let with = [group(1, 500), group(2, 500), group(3, 500)].concat();
        assert!(kept == without || kept == with, "not the log of the two");
    }));
}

pub(super) fn back_pressure(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let store = node.store();
        let log = opened(&*store);
        let before = log.commit(&group(0, 500)).expect("nobody else writes");
        copies(node).hold_back();
        let groups: Vec<Vec<u8>> = (1..600).map(|number| group(number, 1_000)).collect();
        for group in &groups {
            let end = log.append(group);
            log.writer.submit(end);
        }
        let end = log.append(&[]);
        sleep(SOON);
        let appended: usize = groups.iter().map(Vec::len).sum();
        assert!(log.waiting_bytes() > appended / 2, "the store takes more than its copies do");
        assert!(log.durable() < end && store.durable_lsn() < end);
        assert!(log.durable() >= before && log.writer.failure().is_none());
        copies(node).heal();
        log.wait(end).expect("nothing ends this writer");
        assert_eq!(log.waiting_bytes(), 0);
        let expected = [group(0, 500), groups.concat()].concat();
        assert!(read_all(&*store) == expected, "not what was appended");
        let mut reader = store
            .follow(super::following::options("late", Lsn::FIRST))
            .expect("nothing was truncated");
        assert!(reader.next(1_000, LONG).is_ok());
    }));
}
