//! Deterministic simulation: a cluster, its disks, its network and its faults in one process,
//! replayed from a seed.
//!
//! ```text
//!   Simulation::new(seed).run(|world| {
//!       let disk = world.new_disk();                     // outlives every process
//!       let node = world.start("node", &disk);
//!       let writer = node.spawn("writer", |environment| write_until_killed(environment));
//!       world.sleep(Duration::from_millis(5));
//!       node.crash();                                    // power loss
//!       let node = world.start("node", &disk);           // what survived
//!       node.run(|environment| verify(environment)).unwrap();
//!   });
//! ```
//!
//! Rules for code that runs inside:
//!
//! 1. All interaction with the outside world goes through the process's [`firn_base::Environment`].
//! 2. A task waits on a [`firn_base::event::Event`], by [`firn_base::task::sleep`] or for a task's
//!    end, and in no other way. No mutex is held across any of these or across a disk call;
//!    otherwise the run fails as a stall.
//! 3. The state of a process lives in its tasks, so that it dies with them. An engine that is
//!    opened in the test's own task would outlive the crash of its process.
//! 4. Threads that are not tasks of the run must not touch anything that its tasks wait for.

#![allow(clippy::disallowed_methods, reason = "tests look at the machine from outside")]

mod clock;
mod disk;
mod failure;
mod network;
mod panics;
mod process;
mod scheduler;
mod state;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_base::clock::{Clock, SystemClock};
use parking_lot::Mutex;

pub use disk::{Counters, Faults, FileFilter, Mount, SimulatedDisk};
pub use failure::{Cause, Failure, TaskReport, Turn};
pub use network::{LinkFaults, NetworkCounters, SimulatedNetwork};
pub use process::{Killed, Process, Task};

use crate::random::Random;
use process::SimulatedClock;
use scheduler::Core;
use state::{Limits, ProcessId};

/// Set to a number, it makes [`for_each_seed`] replay that seed alone.
pub const SEED_VARIABLE: &str = "FIRN_SEED";
/// Set to `FROM..TO`, it makes [`for_each_seed`] run these seeds instead of the test's own.
pub const SEEDS_VARIABLE: &str = "FIRN_SEEDS";
/// Multiplies the number of seeds of [`for_each_seed`].
pub const EFFORT_VARIABLE: &str = "FIRN_EFFORT";

/// The process that the test's own tasks belong to.
const TEST_PROCESS: ProcessId = 0;
/// How often the watchdog checks, in real time.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Checks in a row that must find the thread with the turn asleep.
const ASLEEP_LOOKS: u32 = 20;

/// One run, not yet started.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    seed: u64,
    limits: Limits,
    stall_timeout: Duration,
}

/// A run that succeeded.
#[derive(Debug)]
pub struct Completed<T> {
    /// The body's result.
    pub value: T,
    /// The number of switch points passed.
    pub steps: u64,
    /// The simulated time that passed.
    pub elapsed: Duration,
    /// A hash over all turns: the chosen tasks and their times. Equal for equal runs.
    pub trace_hash: u64,
}

impl Simulation {
    /// A run in which `seed` determines every decision.
    #[must_use]
    pub fn new(seed: u64) -> Simulation {
        let limits = Limits { steps: 50_000_000, time: Duration::from_secs(30 * 24 * 3600) };
        Simulation { seed, limits, stall_timeout: Duration::from_secs(60) }
    }

    /// Sets the number of switch points after which the run fails.
    #[must_use]
    pub fn step_limit(mut self, steps: u64) -> Simulation {
        self.limits.steps = steps;
        self
    }

    /// Sets the simulated time after which the run fails.
    #[must_use]
    pub fn time_limit(mut self, time: Duration) -> Simulation {
        self.limits.time = time;
        self
    }

    /// Fails the run if a task computes for this long, in real time, without a switch point. A task
    /// that sleeps in the operating system is found within seconds in any case.
    #[must_use]
    pub fn stall_timeout(mut self, timeout: Duration) -> Simulation {
        self.stall_timeout = timeout;
        self
    }

    /// Runs `body` as the first task. When it returns, all other tasks are stopped.
    ///
    /// # Panics
    /// With the seed and a report, if the run fails.
    pub fn run<T: Send + 'static>(self, body: impl FnOnce(&World) -> T + Send + 'static) -> T {
        match self.try_run(body) {
            Ok(completed) => completed.value,
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Like [`Simulation::run`], for tests that expect a failure or compare runs.
    ///
    /// # Errors
    /// If the run fails.
    pub fn try_run<T: Send + 'static>(
        self,
        body: impl FnOnce(&World) -> T + Send + 'static,
    ) -> Result<Completed<T>, Box<Failure>> {
        let core = Core::new(self.seed, self.limits);
        let network = SimulatedNetwork::new(&core);
        let world = World { core: Arc::clone(&core), seed: self.seed, network };
        let value = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&value);
        assert_eq!(core.new_process(), TEST_PROCESS);
        let first = move || {
            *slot.lock() = Some(body(&world));
            world.core.finish();
        };
        core.spawn(TEST_PROCESS, "test", Box::new(first));
        core.begin();
        let ended = self.watch(&core);
        let (failure, threads) = core.take_result();
        if ended {
            // A thread whose task has ended waits for nothing any more.
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
        if let Some(failure) = failure {
            return Err(Box::new(failure));
        }
        let value = value.lock().take().expect("a run that did not fail has a value");
        let summary = core.summary();
        let (steps, elapsed) = (summary.steps, summary.now);
        Ok(Completed { value, steps, elapsed, trace_hash: summary.trace_hash })
    }

    /// Waits for the run's end; false if it stalled, in which case its threads are abandoned.
    fn watch(self, core: &Core) -> bool {
        let mut seen = core.progress();
        let mut seen_at = SystemClock.monotonic();
        let mut asleep_looks = 0;
        while !core.wait_for_end(LOOK_INTERVAL) {
            let progress = core.progress();
            if progress != seen {
                (seen, seen_at, asleep_looks) = (progress, SystemClock.monotonic(), 0);
                continue;
            }
            let asleep = progress.1.is_some_and(sleeps);
            asleep_looks = if asleep { asleep_looks + 1 } else { 0 };
            let timed_out = SystemClock.monotonic() - seen_at > self.stall_timeout;
            if asleep_looks >= ASLEEP_LOOKS || timed_out {
                core.stall(asleep);
                return false;
            }
        }
        true
    }
}

/// Whether the operating system has put the thread to sleep; false if that cannot be determined.
fn sleeps(thread: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // "id (name) state ...", where the name may contain any characters.
    let state = status.ok().and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    state == Some('S')
}

/// The handle of the test's own tasks: it starts disks, processes and tasks.
#[derive(Clone)]
pub struct World {
    core: Arc<Core>,
    seed: u64,
    network: SimulatedNetwork,
}

impl World {
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A source of choices for the test itself.
    #[must_use]
    pub fn random(&self) -> Random {
        self.core.fork_random()
    }

    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SimulatedClock { core: Arc::clone(&self.core), process: TEST_PROCESS })
    }

    /// An empty disk without faults.
    #[must_use]
    pub fn new_disk(&self) -> SimulatedDisk {
        SimulatedDisk::new(self.core.fork_random())
    }

    /// The network between the processes.
    #[must_use]
    pub fn network(&self) -> SimulatedNetwork {
        self.network.clone()
    }

    /// Starts a process over `disk`, on the host with its name.
    #[must_use]
    pub fn start(&self, name: &str, disk: &SimulatedDisk) -> Process {
        Process::start(&self.core, name, disk, &self.network)
    }

    /// Starts a task of the test, which no crash of a process stops.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Task<T> {
        Task::start(&self.core, TEST_PROCESS, name, body)
    }

    /// Blocks the calling task for a simulated time.
    pub fn sleep(&self, duration: Duration) {
        firn_base::task::sleep(duration);
    }
}

/// Runs `body` once for each seed. The environment variables [`SEED_VARIABLE`], [`SEEDS_VARIABLE`]
/// and [`EFFORT_VARIABLE`] replay one seed, choose other seeds, or run more.
///
/// # Panics
/// With the seed and a report, at the first run that fails.
pub fn for_each_seed(seeds: Range<u64>, body: impl Fn(&World) + Send + Sync + 'static) {
    let body = Arc::new(body);
    for seed in chosen_seeds(seeds) {
        let body = Arc::clone(&body);
        Simulation::new(seed).run(move |world| body(world));
    }
}

/// The first failure among `seeds`: for a test that the suite finds a deliberate fault.
pub fn first_failure(
    seeds: Range<u64>,
    body: impl Fn(&World) + Send + Sync + 'static,
) -> Option<Box<Failure>> {
    let body = Arc::new(body);
    seeds.into_iter().find_map(|seed| {
        let body = Arc::clone(&body);
        Simulation::new(seed).try_run(move |world| body(world)).err()
    })
}

/// Runs `body` for each seed with a crash point of 0, 1, 2, … until it returns false. So it crashes
/// a process at every switch point, and thus between any two disk calls.
///
/// ```text
///   for_each_crash_point(0..3, |world, point| {
///       let node = world.start("node", &disk);
///       let work = node.spawn("work", work);
///       let reached = node.wait_for_switches(point);
///       node.crash();
///       // start again and verify
///       reached
///   });
/// ```
///
/// # Panics
/// With the seed, the point and a report, at the first run that fails.
pub fn for_each_crash_point(
    seeds: Range<u64>,
    body: impl Fn(&World, u64) -> bool + Send + Sync + 'static,
) {
    let body = Arc::new(body);
    for seed in chosen_seeds(seeds) {
        for point in 0.. {
            let body = Arc::clone(&body);
            match Simulation::new(seed).try_run(move |world| body(world, point)) {
                Ok(completed) if completed.value => {}
                Ok(_) => break,
                Err(failure) => panic!("at crash point {point}: {failure}"),
            }
        }
    }
}

/// Runs `body` twice for every seed and compares the turns. It finds everything that differs
/// between runs with the same seed: a hash map with random keys, an order of addresses, real time.
///
/// # Panics
/// At the first seed that does not replay, or at the first run that fails.
pub fn assert_replays(seeds: Range<u64>, body: impl Fn(&World) + Send + Sync + 'static) {
    let body = Arc::new(body);
    for seed in chosen_seeds(seeds) {
        let run = || {
            let body = Arc::clone(&body);
            match Simulation::new(seed).try_run(move |world| body(world)) {
                Ok(completed) => (completed.steps, completed.elapsed, completed.trace_hash),
                Err(failure) => panic!("{failure}"),
            }
        };
        assert_eq!(run(), run(), "two runs with seed {seed} differ in steps, time or turns");
    }
}

fn chosen_seeds(seeds: Range<u64>) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    if let Some(seed) = number(SEED_VARIABLE) {
        return seed..seed + 1;
    }
    if let Some(range) = std::env::var(SEEDS_VARIABLE).ok().as_deref().and_then(parse_range) {
        return range;
    }
    let effort = number(EFFORT_VARIABLE).unwrap_or(1);
    seeds.start..seeds.start + (seeds.end - seeds.start) * effort
}

fn parse_range(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once("..")?;
    Some(from.parse().ok()?..to.parse().ok()?)
}

#[cfg(test)]
mod tests;
