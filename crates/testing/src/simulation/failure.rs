//! What a failed run tells: the seed first, then what happened, then what every task was doing.

use std::fmt;
use std::time::Duration;

/// Why a run failed, with what is needed to find out more.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The seed that replays the run.
    pub seed: u64,
    /// What went wrong.
    pub cause: Cause,
    /// The simulated time at which it went wrong.
    pub at: Duration,
    /// The tasks that had not ended.
    pub tasks: Vec<TaskReport>,
    /// The last turns before the failure, oldest first.
    pub turns: Vec<Turn>,
}

/// What went wrong in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A task panicked.
    Panic {
        /// The task's name.
        task: String,
        /// What it said, and where.
        message: String,
    },
    /// Nobody was ready and no timer was running.
    Deadlock,
    /// The run took more steps, or more simulated time, than it may.
    Endless {
        /// The number of steps taken.
        steps: u64,
    },
    /// The task that had the turn did not come to its next switch point.
    Stall {
        /// The task's name.
        task: String,
        /// True if it sleeps in the operating system, most likely on a mutex whose holder gave up the
        /// turn; false if it computes.
        asleep: bool,
    },
}

/// One task of a failed run.
#[derive(Debug, Clone)]
pub struct TaskReport {
    /// The name of its process and its own.
    pub name: String,
    /// What it was doing.
    pub doing: String,
    /// The functions it was in, innermost first; only after a deadlock.
    pub stack: Vec<String>,
}

/// A turn: who was chosen when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The simulated time.
    pub at: Duration,
    /// The task that was given the turn.
    pub task: String,
}

impl Cause {
    /// True if the run failed because a task panicked with a message that contains `text`.
    #[must_use]
    pub fn is_panic_with(&self, text: &str) -> bool {
        matches!(self, Cause::Panic { message, .. } if message.contains(text))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Panic { task, message } => write!(f, "task {task} panicked: {message}"),
            Cause::Deadlock => write!(f, "deadlock: nobody is ready and no timer is running"),
            Cause::Endless { steps } => write!(f, "no end after {steps} steps"),
            Cause::Stall { task, asleep: true } => write!(
                f,
                "task {task} sleeps in the operating system instead of giving up its turn: \
                 is a mutex or latch held across a switch point?"
            ),
            Cause::Stall { task, asleep: false } => {
                write!(f, "task {task} computes without coming to a switch point")
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "the simulation with seed {} failed at {:?}: {}",
            self.seed, self.at, self.cause
        )?;
        for task in &self.tasks {
            writeln!(f, "  {}: {}", task.name, task.doing)?;
            for function in &task.stack {
                writeln!(f, "      in {function}")?;
            }
        }
        if !self.turns.is_empty() {
            write!(f, "  last turns:")?;
            for turn in &self.turns {
                write!(f, " {}", turn.task)?;
            }
            writeln!(f)?;
        }
        write!(f, "replay with {}={}", super::SEED_VARIABLE, self.seed)
    }
}

impl std::error::Error for Failure {}
