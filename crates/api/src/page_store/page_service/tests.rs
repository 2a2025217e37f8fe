//! The simulated store passes the suite, and the suite notices each broken promise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::super::conformance::{Subject, check};
use super::*;

/// A log in memory and the store that follows it.
struct Simulated {
    log: Arc<Mutex<Log>>,
    pages: Arc<SimulatedPages>,
}

struct Log {
    start: Lsn,
    bytes: Vec<u8>,
}

impl Simulated {
    fn new(options: SimulatedOptions) -> Simulated {
        let log = Arc::new(Mutex::new(Log { start: Lsn::FIRST, bytes: Vec::new() }));
        let read = Arc::clone(&log);
        let pages = SimulatedPages::new(
            options,
            Box::new(move |from| {
                let log = read.lock();
                (from >= log.start).then(|| log.bytes[from.since(log.start) as usize..].to_vec())
            }),
        );
        Simulated { log, pages }
    }
}

impl Subject for Simulated {
    fn store(&self) -> Arc<dyn PageStore> {
        Arc::clone(&self.pages) as _
    }

    fn append(&mut self, group: &[u8]) -> Lsn {
        let mut log = self.log.lock();
        log.bytes.extend_from_slice(group);
        log.start.advance(log.bytes.len() as u64)
    }

    fn work(&mut self) {
        self.pages.work();
    }

    fn truncate_log(&mut self, position: Lsn) {
        let mut log = self.log.lock();
        if position > log.start {
            let gone = position.since(log.start) as usize;
            log.bytes.drain(..gone);
            log.start = position;
        }
    }

    fn restart(&mut self) {
        self.pages.restart();
    }
}

#[test]
fn a_store_that_keeps_its_promises_passes() {
    for seed in 0..12 {
        let options = SimulatedOptions {
            chunk_pages: [1, 4, 64][seed as usize % 3],
            max_delay: Duration::from_micros(if seed == 0 { 50 } else { 0 }),
            unavailable_percent: [0, 30][seed as usize % 2],
            history_bytes: [0, 5000][seed as usize / 2 % 2],
            ..SimulatedOptions::new(seed)
        };
        check(&mut Simulated::new(options), seed, 800);
    }
}

/// How many of 8 seeds reveal the broken promise.
fn noticed(fault: Fault) -> usize {
    let shows = |seed: &u64| {
        let options = SimulatedOptions { fault: Some(fault), ..SimulatedOptions::new(*seed) };
        let run = || check(&mut Simulated::new(options), *seed, 800);
        catch_unwind(AssertUnwindSafe(run)).is_err()
    };
    (0..8).filter(shows).count()
}

#[test]
fn broken_promises_are_noticed() {
    let faults = [
        Fault::ReadBelowAtLeast,
        Fault::ReplyTooNew,
        Fault::LeaseIgnored,
        Fault::CoveredTooEarly,
        Fault::RequestForgotten,
        Fault::AsOfNewest,
    ];
    for fault in faults {
        assert_eq!(noticed(fault), 8, "{fault:?}");
    }
}
