//! Real processes, killed with `kill -9` at random moments, again and again.
//!
//! The simulator's crashes are many and cheap, but they happen to tasks of the test. Here the
//! operating system kills the program that users run:
//!
//! ```text
//!   start ──► ready ──► driven by clients ──► kill -9 ──► verify ──► start ──► ...
//!                       └─ a random while ─┘
//! ```
//!
//! The verification gets all complete lines that the program printed before its death, so a program
//! that prints its acknowledgements needs no clients. The operating system survives, so this loop
//! cannot find lost syncs; the simulated disk does.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::ops::RangeInclusive;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::clock::{Clock, SystemClock};
use firn_base::event::Event;
use parking_lot::Mutex;

use crate::random::Random;

/// Bytes of the program's standard error that are kept, from its end.
const ERROR_TAIL_BYTES: usize = 16 * 1024;

/// A program to kill, and the check that it recovered.
pub trait Victim: Sync {
    /// The command that starts it. The loop replaces standard output and error.
    fn command(&mut self, round: u32) -> Command;

    /// Whether a line of its standard output reports that it is ready. By default the first one
    /// does.
    fn is_ready(&self, line: &str) -> bool {
        let _ = line;
        true
    }

    /// Works against the program, in a separate thread, from when it is ready until
    /// [`Life::is_over`]. Errors are expected at the end.
    fn drive(&self, life: &Life) {
        let _ = life;
    }

    /// Checks the state after a kill.
    ///
    /// # Errors
    /// The fault.
    fn verify(&mut self, death: &Death) -> Result<(), String>;
}

#[derive(Debug)]
pub struct Life {
    /// The round's number, beginning with zero.
    pub round: u32,
    /// The operating system's number of the process.
    pub process_id: u32,
    over: AtomicBool,
}

impl Life {
    /// True once the program is being killed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
pub struct Death {
    /// The round's number, beginning with zero.
    pub round: u32,
    /// How long it lived after it was ready.
    pub lived: Duration,
    /// The complete lines of its standard output.
    pub lines: Vec<String>,
}

/// Why a kill loop ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum KillLoopError {
    /// The program could not be started, or its end could not be observed.
    #[error("round {round}: {error}")]
    System { round: u32, error: std::io::Error },
    /// It was not ready in time, or ended by itself.
    #[error("round {round}: the program {what} ({status:?}); it last said:\n{stderr}")]
    Ended {
        round: u32,
        /// Why it ended before it was killed.
        what: &'static str,
        status: ExitStatus,
        /// The end of its standard error.
        stderr: String,
    },
    /// The verification found a fault.
    #[error("round {round}, seed {seed}: {complaint}")]
    Verification { round: u32, seed: u64, complaint: String },
}

/// The summary of a kill loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survived {
    /// How often the program was killed and verified.
    pub kills: u32,
    /// Its lives, added up.
    pub lived: Duration,
}

/// Starts, kills and verifies a program many times.
#[derive(Debug, Clone)]
pub struct KillLoop {
    seed: u64,
    rounds: u32,
    life: RangeInclusive<Duration>,
    ready_timeout: Duration,
}

impl KillLoop {
    /// A loop whose kill times depend on `seed`, as far as real time allows.
    #[must_use]
    pub fn new(seed: u64) -> KillLoop {
        let life = Duration::from_millis(1)..=Duration::from_millis(500);
        KillLoop { seed, rounds: 20, life, ready_timeout: Duration::from_secs(60) }
    }

    /// Sets how often the program is killed.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> KillLoop {
        self.rounds = rounds;
        self
    }

    /// Sets how long the program lives after it is ready.
    #[must_use]
    pub fn life(mut self, life: RangeInclusive<Duration>) -> KillLoop {
        self.life = life;
        self
    }

    /// Sets how long the program may take until it is ready, including recovery.
    #[must_use]
    pub fn ready_timeout(mut self, timeout: Duration) -> KillLoop {
        self.ready_timeout = timeout;
        self
    }

    /// Runs the loop. Blocks for all rounds.
    ///
    /// # Errors
    /// The first round that failed.
    pub fn run(&self, victim: &mut impl Victim) -> Result<Survived, KillLoopError> {
        let random = Random::new(self.seed);
        let mut survived = Survived { kills: 0, lived: Duration::ZERO };
        for round in 0..self.rounds {
            let [shortest, longest] = [self.life.start(), self.life.end()];
            let life_ns = random.between(shortest.as_nanos() as u64, longest.as_nanos() as u64);
            let death = self.live_and_die(round, Duration::from_nanos(life_ns), victim)?;
            let seed = self.seed;
            victim.verify(&death).map_err(|complaint| KillLoopError::Verification {
                round,
                seed,
                complaint,
            })?;
            survived.kills += 1;
            survived.lived += death.lived;
        }
        Ok(survived)
    }

    fn live_and_die(
        &self,
        round: u32,
        planned: Duration,
        victim: &mut impl Victim,
    ) -> Result<Death, KillLoopError> {
        let system = |error| KillLoopError::System { round, error };
        let mut command = victim.command(round);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = KilledOnDrop(command.spawn().map_err(system)?);
        let stdout = process.0.stdout.take().expect("it was just piped");
        let stderr = process.0.stderr.take().expect("it was just piped");
        let output = Output::default();
        let life = Life { round, process_id: process.0.id(), over: AtomicBool::new(false) };
        let victim = &*victim;
        let (ended, lived) = std::thread::scope(|scope| {
            scope.spawn(|| output.read_lines(stdout, |line| victim.is_ready(line)));
            scope.spawn(|| output.read_errors(stderr));
            let mut ended = None;
            if !output.wait_until_ready(self.ready_timeout) {
                ended = Some("was not ready in time");
            }
            let ready_at = SystemClock.monotonic();
            if ended.is_none() {
                scope.spawn(|| victim.drive(&life));
                let closed = || output.state.lock().is_closed;
                if output.changed.wait_until(Some(planned), closed) {
                    ended = Some("ended before it was killed");
                }
            }
            life.over.store(true, Ordering::SeqCst);
            let lived = SystemClock.monotonic() - ready_at;
            process.kill();
            (ended, lived)
        });
        let status = process.0.wait().map_err(system)?;
        let state = output.state.into_inner();
        match ended {
            Some(what) => {
                Err(KillLoopError::Ended { round, what, status, stderr: state.error_text() })
            }
            None => Ok(Death { round, lived, lines: state.lines }),
        }
    }
}

/// Kills the program when the test ends in any way.
struct KilledOnDrop(Child);

impl KilledOnDrop {
    /// Sends the signal. A process that is already dead is no error.
    fn kill(&mut self) {
        let _ = self.0.kill();
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

/// The program's output so far.
#[derive(Default)]
struct Output {
    state: Mutex<Said>,
    changed: Event,
}

#[derive(Default)]
struct Said {
    lines: Vec<String>,
    errors: VecDeque<u8>,
    is_ready: bool,
    is_closed: bool,
}

impl Said {
    fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.errors.iter().copied().collect::<Vec<u8>>()).into_owned()
    }
}

impl Output {
    fn read_lines(&self, stdout: impl Read, is_ready: impl Fn(&str) -> bool) {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok() && line.last() == Some(&b'\n') {
            let text = String::from_utf8_lossy(&line[..line.len() - 1]).into_owned();
            let ready = is_ready(&text);
            let mut state = self.state.lock();
            state.is_ready |= ready;
            state.lines.push(text);
            drop(state);
            line.clear();
            if ready {
                self.changed.notify_all();
            }
        }
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn read_errors(&self, mut stderr: impl Read) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut bytes) {
            let mut state = self.state.lock();
            state.errors.extend(&bytes[..count]);
            let excess = state.errors.len().saturating_sub(ERROR_TAIL_BYTES);
            state.errors.drain(..excess);
        }
    }

    /// False if the program closed its output before, or the time ran out.
    fn wait_until_ready(&self, timeout: Duration) -> bool {
        self.changed.wait_until(Some(timeout), || {
            let state = self.state.lock();
            state.is_ready || state.is_closed
        });
        self.state.lock().is_ready
    }
}

#[cfg(test)]
mod tests;
