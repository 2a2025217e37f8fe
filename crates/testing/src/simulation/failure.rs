//! The report of a failed run: the seed first, then the cause, then what each task was doing.

use std::fmt;
use std::time::Duration;

/// Why a run failed, with details for the investigation.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The seed that replays the run.
    pub seed: u64,
    pub cause: Cause,
    /// The simulated time of the failure.
    pub at: Duration,
    /// The tasks that had not ended.
    pub tasks: Vec<TaskReport>,
    /// The last turns before the failure, oldest first.
    pub turns: Vec<Turn>,
}

/// The reason of a failed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    Panic {
        task: String,
        /// Message and place of the panic.
        message: String,
    },
    /// No task was ready, and no timer was running.
    Deadlock,
    /// The run took more steps or simulated time than allowed.
    Endless {
        /// The number of steps taken.
        steps: u64,
    },
    /// The task with the turn did not reach its next switch point.
    Stall {
        task: String,
        /// True if it sleeps in the operating system, most likely on a mutex whose holder gave up
        /// the turn; false if it computes.
        asleep: bool,
    },
}

/// One task of a failed run.
#[derive(Debug, Clone)]
pub struct TaskReport {
    /// The names of its process and of the task.
    pub name: String,
    /// The functions that it was in.
    pub doing: String,
    /// The functions it was in, innermost first; only after a deadlock.
    pub stack: Vec<String>,
}

/// A turn: the chosen task and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub at: Duration,
    /// The task that got the turn.
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
