//! The redo log's calls to its store and its listeners, over a store that the test controls.

use std::sync::mpsc;

use firn_api::{LogEpoch, Tail, Watermarks};
use firn_base::{PageId, PageNo, SpaceId};
use firn_format::redo::GroupBuilder;
use parking_lot::Mutex;

use super::*;

/// The answers of the store, and the calls that it got.
struct Script {
    room: Mutex<Result<Room, LogError>>,
    submitted: AtomicU64,
    source: Mutex<Option<Arc<dyn LogSource>>>,
}

struct Played(Arc<Script>);

impl LogWriter for Played {
    fn submit(&self, lsn: Lsn) {
        self.0.submitted.fetch_max(lsn.0, Ordering::SeqCst);
    }

    fn wait_durable(&self, _lsn: Lsn) -> Result<(), LogError> {
        self.failure().map_or(Ok(()), Err)
    }

    fn room(&self) -> Result<Room, LogError> {
        self.0.room.lock().clone()
    }

    fn failure(&self) -> Option<LogError> {
        self.0.room.lock().clone().err().filter(LogError::ends_writer)
    }

    fn close(&self) {}
}

fn start() -> (Arc<RedoLog>, Arc<Script>) {
    let script = Arc::new(Script {
        room: Mutex::new(Ok(Room::Plenty)),
        submitted: AtomicU64::new(0),
        source: Mutex::new(None),
    });
    let own = Arc::clone(&script);
    let tail = Tail { epoch: LogEpoch(7), end: Lsn::FIRST, watermarks: Watermarks::default() };
    let opened = OpenedLog::new(tail, move |source| {
        *own.source.lock() = Some(source);
        Box::new(Played(own))
    });
    (RedoLog::start(opened, RedoLogOptions::default(), Box::new(|_| {})), script)
}

fn append(log: &RedoLog) -> Lsn {
    let mut builder = GroupBuilder::new();
    builder.push(1, PageId::new(SpaceId(1), PageNo(1)), |body| body.extend([7; 20]));
    log.append(log.admit(64, Purpose::Completion).unwrap(), builder.finish()).end
}

impl Script {
    /// Makes everything that is appended durable, as one round.
    fn end_round(&self) -> Lsn {
        let source = self.source.lock().clone().unwrap();
        let mut groups = Vec::new();
        let end = source.take(&mut groups, usize::MAX).advance(groups.len() as u64);
        source.advance(end);
        end
    }

    fn tell(&self, outcome: Result<Lsn, &LogError>) {
        self.source.lock().clone().unwrap().tell(outcome);
    }
}

#[test]
fn what_is_left_of_the_room_is_kept_for_those_who_need_it() {
    let (log, script) = start();
    let unavailable = LogError::Unavailable { reason: "one of 3 copies answers".to_owned() };
    let fenced = LogError::Fenced { by: LogEpoch(8) };
    let cases = [
        (Ok(Room::Plenty), [true, true, true]),
        (Ok(Room::Low), [false, true, true]),
        (Ok(Room::Scarce), [false, false, true]),
        (Err(unavailable), [false, false, true]),
        (Err(fenced), [false, false, false]),
    ];
    for (room, expected) in cases {
        *script.room.lock() = room;
        let purposes = [Purpose::Forward, Purpose::Freeing, Purpose::Completion];
        let admitted = purposes.map(|purpose| log.admit(64, purpose).is_ok());
        assert_eq!(admitted, expected, "{:?}", *script.room.lock());
    }
}

#[test]
fn a_commit_that_is_handed_over_is_submitted_and_told_when_it_is_durable() {
    let (log, script) = start();
    let (sender, told) = mpsc::channel();
    let hand_over = |lsn, token| {
        let sender = sender.clone();
        let listener = move |token, outcome: Result<(), LogError>| {
            sender.send((token, outcome.is_ok())).unwrap();
        };
        log.when_durable(lsn, Completion::new(Arc::new(listener), token));
    };
    let first = append(&log);
    hand_over(first, 1);
    assert_eq!(script.submitted.load(Ordering::SeqCst), first.0);
    assert_eq!(script.end_round(), first);
    assert_eq!((log.durable_lsn(), log.round_count()), (first, 1));
    assert!(told.try_recv().is_err(), "whoever ends a round is not held up by listeners");
    script.tell(Ok(first));
    assert_eq!(told.try_recv(), Ok((1, true)));
    hand_over(first, 2);
    assert_eq!(told.try_recv(), Ok((2, true)), "it was durable before");
    let second = append(&log);
    hand_over(second, 3);
    let fenced = LogError::Fenced { by: LogEpoch(8) };
    *script.room.lock() = Err(fenced.clone());
    script.tell(Err(&fenced));
    assert_eq!(told.try_recv(), Ok((3, false)));
    hand_over(second, 4);
    assert_eq!(told.try_recv(), Ok((4, false)), "nothing will tell it later");
    log.wait_durable(first).expect("it was durable before");
    assert!(log.wait_durable(second).is_err());
}
