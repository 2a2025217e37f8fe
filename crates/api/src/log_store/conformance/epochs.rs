//! Writers after writers: epochs, fencing, and what a tail says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::task::sleep;
use firn_base::{Cts, Lsn, PageId, PageNo, SpaceId, TrxId};
use firn_format::redo::{Change, GroupBuilder};
use parking_lot::Mutex;

use super::appender::{group, read_all};
use super::{Appender, Lives};
use crate::log_store::{LogEpoch, LogError, WriterEpoch};

fn assert_fenced(error: &LogError, at_least: LogEpoch) {
    match error {
        LogError::Fenced { by } if *by >= at_least => {}
        other => panic!("{other:?} instead of: fenced by {at_least} or higher"),
    }
}

pub(super) fn older_writer_is_fenced(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let (store, other) = (node.store(), node.other_store());
        let old = Appender::open(&*store, WriterEpoch::Next).expect("a good store");
        let acknowledged = old.commit(&group(1, 500)).expect("nobody else writes");
        let new = Appender::open(&*other, WriterEpoch::Next).expect("a good store");
        assert!(new.tail.epoch > old.tail.epoch);
        assert!(new.tail.end >= acknowledged, "an acknowledged group is lost");
        let late = old.append(&group(2, 500));
        old.writer.submit(late);
        assert_fenced(&old.wait(late).expect_err("it is fenced"), new.tail.epoch);
        assert_fenced(&old.hear_end(), new.tail.epoch);
        assert_fenced(&old.writer.failure().expect("it has ended"), new.tail.epoch);
        assert_fenced(&old.writer.room().expect_err("it has ended"), new.tail.epoch);
        assert!(old.durable() <= new.tail.end);
        for refused in [old.tail.epoch, new.tail.epoch] {
            let refused = store.open(WriterEpoch::Exactly(refused)).expect_err("it is not newer");
            assert_fenced(&refused, new.tail.epoch);
        }
        new.commit(&group(3, 500)).expect("an open that was refused fences nobody");
        let kept = read_all(&*other);
        assert!(kept == [group(1, 500), group(3, 500)].concat(), "the late group is in the log");
    }));
}

pub(super) fn epochs_go_up(lives: &dyn Lives) {
    let last = Arc::new(Mutex::new(LogEpoch(0)));
    for life in 0..4 {
        let last = Arc::clone(&last);
        lives.live(Box::new(move |node| {
            let store = node.store();
            let before = *last.lock();
            if before > LogEpoch(0) {
                let refused = store.open(WriterEpoch::Exactly(before)).expect_err("it was used");
                assert_fenced(&refused, before);
            }
            let wanted = match life % 2 {
                0 => WriterEpoch::Next,
                _ => WriterEpoch::Exactly(LogEpoch(before.0 + 5)),
            };
            let log = Appender::open(&*store, wanted).expect("it is newer");
            match wanted {
                WriterEpoch::Next => assert!(log.tail.epoch > before),
                WriterEpoch::Exactly(epoch) => assert_eq!(log.tail.epoch, epoch),
            }
            *last.lock() = log.tail.epoch;
            if life > 1 {
                log.commit(&group(life, 100)).expect("nobody else writes");
            }
        }));
    }
}

pub(super) fn race(lives: &dyn Lives) {
    lives.live(Box::new(|node| {
        let (store, other) = (node.store(), node.other_store());
        let old = Appender::open(&*store, WriterEpoch::Next).expect("a good store");
        let old = Arc::new(old);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let committers = (0..3).map(|_| {
            let (old, acknowledged) = (Arc::clone(&old), Arc::clone(&acknowledged));
            let body = move || {
                loop {
                    match old.commit(&group(1, 200)) {
                        Ok(end) => acknowledged.fetch_max(end.0, Ordering::SeqCst),
                        Err(_) => return,
                    };
                }
            };
            node.environment().spawner.spawn("committer", Box::new(body))
        });
        let committers: Vec<_> = committers.collect();
        sleep(Duration::from_micros(node.environment().random.next_u64() % 20_000));
        let new = Appender::open(&*other, WriterEpoch::Next).expect("a good store");
        for number in 2..5 {
            new.commit(&group(number, 300)).expect("nobody fences the newer one");
        }
        assert!(committers.into_iter().all(|committer| committer.join()), "a committer failed");
        assert_fenced(&old.writer.failure().expect("it has ended"), new.tail.epoch);
        let acknowledged = Lsn(acknowledged.load(Ordering::SeqCst)).max(old.durable());
        let end = new.tail.end;
        assert!(
            acknowledged <= end,
            "{acknowledged} was acknowledged, the new log begins at {end}"
        );
        let of_old = group(1, 200).repeat(end.since(Lsn::FIRST) as usize / group(1, 200).len());
        let of_new = [group(2, 300), group(3, 300), group(4, 300)].concat();
        assert!(read_all(&*other) == [of_old, of_new].concat(), "not the log of the two");
    }));
}

pub(super) fn watermarks(lives: &dyn Lives) {
    let watermark = |trx: u64, cts: u64| {
        let mut builder = GroupBuilder::new();
        Change::Watermark { trx_id_limit: TrxId(trx), cts_limit: Cts(cts) }
            .encode(PageId::new(SpaceId(0), PageNo::NONE), &mut builder);
        builder.finish().to_vec()
    };
    lives.live(Box::new(move |node| {
        let log = Appender::open(&*node.store(), WriterEpoch::Next).expect("a good store");
        log.commit(&[watermark(70, 9), watermark(60, 90)].concat()).expect("nobody else writes");
        for number in 0..200 {
            log.commit(&group(number, 1_000)).expect("nobody else writes");
        }
        node.let_go(node.store().durable_lsn());
        sleep(Duration::from_millis(200));
    }));
    lives.live(Box::new(|node| {
        let tail = Appender::open(&*node.store(), WriterEpoch::Next).expect("a good store").tail;
        let found = (tail.watermarks.trx_id_limit, tail.watermarks.cts_limit);
        assert_eq!(found, (TrxId(70), Cts(90)));
    }));
}
