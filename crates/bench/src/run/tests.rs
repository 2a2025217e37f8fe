use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::*;
use crate::workload::Next;

/// Transactions that sleep. Every third attempt meets a conflict, and attempt `fails_at` fails.
struct Sleepy {
    attempts: Arc<AtomicU64>,
    fails_at: u64,
    limit: Option<u64>,
}

struct SleepyWorker {
    attempts: Arc<AtomicU64>,
    fails_at: u64,
}

fn refused(code: u16) -> BenchError {
    let error = mysql::MySqlError { state: "HY000".into(), message: "no".into(), code };
    let error = Box::new(mysql::Error::MySqlError(error));
    BenchError::Server { statement: "SELECT".into(), error }
}

impl Case for Sleepy {
    fn label(&self) -> String {
        "sleepy".into()
    }

    fn kinds(&self) -> Vec<String> {
        vec!["nap".into()]
    }

    fn worker(&self, _: &Target, _: usize, _: u64) -> Result<Box<dyn Worker>, BenchError> {
        let (attempts, fails_at) = (Arc::clone(&self.attempts), self.fails_at);
        Ok(Box::new(SleepyWorker { attempts, fails_at }))
    }

    fn operations(&self) -> Option<u64> {
        self.limit
    }
}

impl Worker for SleepyWorker {
    fn next(&mut self) -> Next {
        Next { kind: 0, pause: Duration::ZERO }
    }

    fn attempt(&mut self) -> Result<Outcome, BenchError> {
        firn_base::task::sleep(Duration::from_millis(1));
        match self.attempts.fetch_add(1, Ordering::Relaxed) {
            number if number == self.fails_at => Err(refused(1146)),
            number if number % 3 == 0 => Err(refused(1213)),
            _ => Ok(Outcome::Done),
        }
    }

    fn take_back(&mut self) -> Result<(), BenchError> {
        Ok(())
    }
}

fn drive(limit: Option<u64>, fails_at: u64, options: RunOptions) -> Result<Measured, BenchError> {
    let target = Target::parse("mysql://root@127.0.0.1:1", "x").unwrap();
    let case = Sleepy { attempts: Arc::default(), fails_at, limit };
    run(&case, &target, &options, &mut ())
}

fn options(duration_ms: u64, warm_up_ms: u64) -> RunOptions {
    RunOptions {
        connections: 2,
        duration: Duration::from_millis(duration_ms),
        warm_up: Duration::from_millis(warm_up_ms),
        seed: 1,
    }
}

#[test]
fn conflicts_are_tried_again_and_counted() {
    let measured = drive(None, u64::MAX, options(1200, 0)).unwrap();
    let total = measured.total();
    assert!(measured.elapsed >= Duration::from_millis(1200));
    let lengths: Vec<Duration> = measured.windows.iter().map(|window| window.length).collect();
    assert_eq!(lengths.iter().sum::<Duration>(), measured.elapsed);
    // A second and the rest, unless the machine was so busy that nobody looked meanwhile.
    assert!(lengths.len() == 2 || lengths[0] >= Duration::from_millis(1200), "{lengths:?}");
    assert!(total.transactions() > 10);
    assert!(total.conflicts[0] > 5 && total.conflicts[1..] == [0, 0], "{:?}", total.conflicts);
}

#[test]
fn a_fixed_number_of_transactions_is_done_however_long_it_takes() {
    let measured = drive(Some(30), u64::MAX, options(1, 0)).unwrap();
    assert_eq!(measured.total().transactions(), 60);
}

#[test]
fn what_was_done_while_warming_up_is_left_out() {
    // Each transaction takes a millisecond or more.
    let measured = drive(Some(1000), u64::MAX, options(1, 500)).unwrap();
    let counted = measured.total().transactions();
    assert!(counted > 0 && counted < 2000, "{counted}");
}

#[test]
fn other_errors_end_the_run() {
    let error = drive(None, 20, options(60_000, 0)).unwrap_err();
    assert_eq!(error.code(), Some(1146));
}
