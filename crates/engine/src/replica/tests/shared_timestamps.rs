//! Replicas of a writer whose commits a shared source numbers, with gaps, and where coordinators
//! decide some commits.

use std::sync::atomic::{AtomicBool, Ordering};

use firn_base::task::StopAtEnd;

use super::*;
use crate::test_support::{HybridClock, Oracle};
use crate::transaction::Prepared;
use crate::transaction::remote::RemoteTransactions;

/// Sources with gaps: an oracle, and a hybrid logical clock.
pub(super) fn sources() -> [Timestamps; 2] {
    let oracle = Timestamps::Shared(Arc::new(Oracle::new(100)));
    [oracle, Timestamps::Shared(Arc::new(HybridClock::default()))]
}

/// Background tasks of the writer and the replica run every 10 ms.
const A_FEW_ROUNDS: Duration = Duration::from_millis(150);

fn prepare(writer: &Writer, table: &Table, id: i64) -> Prepared {
    let mut trx = writer.begin();
    insert(table, &mut trx, id, 1, b"").unwrap();
    trx.prepare(b"xid", None).unwrap()
}

#[test]
fn no_snapshot_is_above_a_commit_that_is_being_decided() {
    for (source, is_elsewhere) in sources().into_iter().zip([false, true]) {
        let writer = Writer::numbered_by(source);
        let table = writer.create("t");
        writer.insert(&table, 0..10, 1);
        let replica = writer.replica();
        let prepared = prepare(&writer, &table, 100);
        let coordinator = RemoteTransactions::connect(Arc::clone(&writer.peer)).unwrap();
        let at = match is_elsewhere {
            true => coordinator.set_committing(prepared.trx).unwrap().unwrap(),
            false => writer.engine.system().set_committing(b"xid").unwrap(),
        };
        (10..20).for_each(|id| writer.insert(&table, id..id + 1, 1));
        firn_base::task::sleep(A_FEW_ROUNDS);
        let mut old =
            ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
        old.open_snapshot();
        assert!(old.snapshot().unwrap() < at, "{at} may still come");
        writer.engine.system().commit_prepared(b"xid", Some(at)).unwrap();
        writer.wait_for(&replica);
        assert_eq!(ids(&replica, table.id()).len(), 21);
        let there = replica.dictionary().table_for_read(&mut old, table.id()).unwrap();
        assert_eq!(contents(&there, &mut old).unwrap()[0].len(), 10);
        drop(old);
        replica.close();
        writer.close();
    }
}

#[test]
fn a_commit_in_doubt_since_the_writer_started_is_waited_for() {
    for source in sources() {
        let writer = Writer::numbered_by(source);
        let table = writer.create("t");
        writer.insert(&table, 0..10, 1);
        prepare(&writer, &table, 100);
        let at = writer.engine.system().set_committing(b"xid").unwrap();
        writer.insert(&table, 10..11, 1);
        let id = table.id();
        drop(table);
        let writer = writer.restart();
        let replica = writer.replica();
        assert!(replica.visible() > at);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| ids(&replica, id));
            firn_base::task::sleep(Duration::from_millis(50));
            assert!(!reader.is_finished(), "it depends on the coordinator");
            writer.engine.system().commit_prepared(b"xid", Some(at)).unwrap();
            assert_eq!(reader.join().unwrap().len(), 12);
        });
        replica.close();
        writer.close();
    }
}

#[test]
fn definitions_that_change_while_a_replica_starts_are_followed() {
    for source in sources() {
        let writer = Writer::numbered_by(source);
        writer.create("kept");
        for _ in 0..10 {
            let is_over = AtomicBool::new(false);
            let replica = std::thread::scope(|scope| {
                scope.spawn(|| {
                    for number in 0_u64.. {
                        let table = writer.create(&format!("t{number}"));
                        let mut ddl = writer.dictionary.ddl().unwrap();
                        ddl.drop_table(table.id()).unwrap();
                        ddl.commit().unwrap();
                        if is_over.load(Ordering::SeqCst) {
                            return;
                        }
                    }
                });
                let _stop = StopAtEnd(&is_over);
                writer.replica()
            });
            writer.wait_for(&replica);
            let tables = replica.dictionary().tables();
            let names: Vec<_> = tables.iter().map(|table| &*table.definition().name).collect();
            assert_eq!(names, ["kept"]);
            replica.close();
        }
        writer.close();
    }
}
