//! The state of the scheduler and its decisions: which task has the turn, which tasks are ready,
//! and what the others wait for.
//!
//! Invariants:
//!
//! * at most one task has the turn; a task that neither has the turn nor is ready nor waits has
//!   ended;
//! * a ready task is in `ready` exactly once, or among its process's `paused` tasks; a waiting task
//!   is in `waiting` exactly once, and in `timers` exactly once if its wait has a timeout;
//! * no decision depends on an address, on real time or on the choice of threads by the operating
//!   system: the same seed gives the same turns. Events are identified by address, but addresses
//!   are only looked up, never ordered or iterated over.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Condvar;

use super::clock::ProcessClock;
use super::failure::{Cause, Failure, TaskReport, Turn};
use crate::random::Random;

pub(super) type TaskId = usize;
pub(super) type ProcessId = usize;

/// Simulated time of each switch point, so that a task that polls reaches its deadline.
const STEP: Duration = Duration::from_micros(1);
/// Turns that a failure's report shows.
const REPORTED_TURNS: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) steps: u64,
    pub(super) time: Duration,
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WaitKey {
    /// The event at this address.
    Event(usize),
    /// The end of a task.
    Task(TaskId),
    /// The end of all tasks of a process.
    Process(ProcessId),
    /// A switch point of a process, by its number.
    SwitchPoint(ProcessId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has the turn or is in `ready`.
    Ready,
    Waiting {
        key: WaitKey,
        until: Option<Duration>,
    },
    Ended,
}

/// How the next task is chosen. Some bugs need a switch at every point, some a long undisturbed run
/// of one task, some a task that is not chosen for long although it is ready. Each seed uses one
/// policy.
#[derive(Debug, Clone, Copy)]
enum Policy {
    /// At a point where a task could continue, another one gets the turn with this probability,
    /// each with the same probability.
    Even { switch_probability: f64 },
    /// Runs the ready task with the highest priority. A running task draws a new priority with this
    /// probability, so that no task waits forever for one that polls.
    Priorities { redraw_probability: f64 },
}

impl Policy {
    fn draw(random: &Random) -> Policy {
        if random.chance(0.3) {
            return Policy::Priorities { redraw_probability: *random.pick(&[0.05, 0.001]) };
        }
        Policy::Even { switch_probability: *random.pick(&[0.05, 0.3, 0.7, 1.0]) }
    }
}

/// A task of the run, ended or not.
pub(super) struct TaskState {
    /// The name, unique among the tasks.
    pub(super) name: Arc<str>,
    pub(super) process: ProcessId,
    pub(super) phase: Phase,
    priority: u64,
    /// Its thread waits on this until it has the turn.
    pub(super) turn: Arc<Condvar>,
    /// Whether it must stop at its next switch point.
    pub(super) doomed: bool,
    /// Whether its last wait was ended by its timer.
    pub(super) timed_out: bool,
    pub(super) switches_while_unwinding: u32,
    pub(super) thread: Option<JoinHandle<()>>,
    pub(super) thread_id: Option<i32>,
    pub(super) stack: Vec<String>,
}

/// A group of tasks that dies as one.
#[derive(Default)]
pub(super) struct ProcessState {
    /// The number of its tasks that have not ended.
    pub(super) living: usize,
    pub(super) is_killed: bool,
    /// Switch points that its tasks have reached.
    pub(super) switches: u64,
    /// The switch point that a task waits for, and that task.
    pub(super) awaited: Option<(u64, TaskId)>,
    /// Its tasks that are ready, while it is paused.
    paused: Option<Vec<TaskId>>,
    pub(super) clock: ProcessClock,
}

/// The complete state of one run.
pub(super) struct State {
    seed: u64,
    pub(super) tasks: Vec<TaskState>,
    pub(super) processes: Vec<ProcessState>,
    /// The task that runs next, overriding the policy.
    next: Option<TaskId>,
    pub(super) turn: Option<TaskId>,
    pub(super) ready: Vec<TaskId>,
    waiting: HashMap<WaitKey, Vec<TaskId>>,
    timers: BTreeSet<(Duration, TaskId)>,
    pub(super) now: Duration,
    pub(super) steps: u64,
    pub(super) random: Random,
    policy: Policy,
    limits: Limits,
    turns: VecDeque<(Duration, TaskId)>,
    pub(super) trace_hash: u64,
    pub(super) failure: Option<Failure>,
    pub(super) capture_stacks: bool,
    pub(super) over: bool,
}

impl State {
    pub(super) fn new(seed: u64, limits: Limits) -> State {
        let random = Random::new(seed);
        let policy = Policy::draw(&random);
        State {
            seed,
            tasks: Vec::new(),
            processes: Vec::new(),
            next: None,
            turn: None,
            ready: Vec::new(),
            waiting: HashMap::new(),
            timers: BTreeSet::new(),
            now: Duration::ZERO,
            steps: 0,
            random,
            policy,
            limits,
            turns: VecDeque::new(),
            trace_hash: 0,
            failure: None,
            capture_stacks: false,
            over: false,
        }
    }

    pub(super) fn all_ended(&self) -> bool {
        self.processes.iter().all(|process| process.living == 0)
    }

    pub(super) fn add_task(&mut self, process: ProcessId, name: &str) -> TaskId {
        let id = self.tasks.len();
        self.tasks.push(TaskState {
            name: format!("{name}#{id}").into(),
            process,
            phase: Phase::Ready,
            priority: self.random.word(),
            turn: Arc::new(Condvar::new()),
            doomed: self.over || self.processes[process].is_killed,
            timed_out: false,
            switches_while_unwinding: 0,
            thread: None,
            thread_id: None,
            stack: Vec::new(),
        });
        self.processes[process].living += 1;
        self.make_ready(id);
        id
    }

    /// Makes a task ready, or ready after the pause if its process is paused.
    pub(super) fn make_ready(&mut self, task: TaskId) {
        match &mut self.processes[self.tasks[task].process].paused {
            Some(held) => held.push(task),
            None => self.ready.push(task),
        }
    }

    pub(super) fn pause(&mut self, process: ProcessId) {
        let tasks = &self.tasks;
        let is_own = |task: &TaskId| tasks[*task].process == process;
        let own: Vec<TaskId> = self.ready.iter().copied().filter(is_own).collect();
        self.ready.retain(|task| !is_own(task));
        self.processes[process].paused.get_or_insert_default().extend(own);
    }

    pub(super) fn resume(&mut self, process: ProcessId) {
        self.ready.extend(self.processes[process].paused.take().unwrap_or_default());
    }

    /// Counts a switch point of the task's process. True if a task waited for it; that task runs
    /// next.
    pub(super) fn count_switch(&mut self, me: TaskId) -> bool {
        let id = self.tasks[me].process;
        let process = &mut self.processes[id];
        process.switches += 1;
        match process.awaited {
            Some((switches, waiter)) if switches == process.switches => {
                self.next = Some(waiter);
                self.wake(WaitKey::SwitchPoint(id));
                true
            }
            _ => false,
        }
    }

    pub(super) fn wants_to_switch(&mut self, me: TaskId) -> bool {
        if self.ready.is_empty() {
            return false;
        }
        match self.policy {
            Policy::Even { switch_probability } => self.random.chance(switch_probability),
            Policy::Priorities { redraw_probability } => {
                if self.random.chance(redraw_probability) {
                    self.tasks[me].priority = self.random.word();
                }
                let own = self.tasks[me].priority;
                self.ready.iter().any(|task| self.tasks[*task].priority > own)
            }
        }
    }

    /// Removes the task that runs next from `ready`, which must not be empty.
    fn choose(&mut self) -> TaskId {
        let next = self.next.take().and_then(|next| self.ready.iter().position(|id| *id == next));
        if let Some(index) = next {
            return self.ready.swap_remove(index);
        }
        let index = match self.policy {
            Policy::Even { .. } => self.random.index(self.ready.len()),
            Policy::Priorities { .. } => {
                let priority = |index: &usize| self.tasks[self.ready[*index]].priority;
                (0..self.ready.len()).max_by_key(priority).expect("somebody is ready")
            }
        };
        self.ready.swap_remove(index)
    }

    /// Takes one step: time passes, and due timers make their tasks ready.
    pub(super) fn advance(&mut self) {
        self.steps += 1;
        self.now += STEP;
        self.fire_timers();
        if self.steps > self.limits.steps || self.now > self.limits.time {
            self.fail(Cause::Endless { steps: self.steps });
        }
    }

    fn fire_timers(&mut self) {
        while let Some(&(at, task)) = self.timers.first() {
            if at > self.now {
                return;
            }
            self.stop_waiting(task);
            self.tasks[task].timed_out = true;
        }
    }

    pub(super) fn enqueue(&mut self, me: TaskId, key: WaitKey, timeout: Option<Duration>) {
        let clock = self.processes[self.tasks[me].process].clock;
        // A timeout beyond the range of durations counts as none.
        let until = timeout.and_then(|timeout| self.now.checked_add(clock.true_wait(timeout)));
        if let Some(until) = until {
            self.timers.insert((until, me));
        }
        self.waiting.entry(key).or_default().push(me);
        self.tasks[me].phase = Phase::Waiting { key, until };
        self.tasks[me].timed_out = false;
    }

    /// Makes a waiting task ready and forgets its wait.
    fn stop_waiting(&mut self, task: TaskId) {
        let Phase::Waiting { key, until } = self.tasks[task].phase else { return };
        if let Some(until) = until {
            self.timers.remove(&(until, task));
        }
        if let Some(waiters) = self.waiting.get_mut(&key) {
            waiters.retain(|waiter| *waiter != task);
            if waiters.is_empty() {
                self.waiting.remove(&key);
            }
        }
        self.tasks[task].phase = Phase::Ready;
        self.make_ready(task);
    }

    pub(super) fn wake(&mut self, key: WaitKey) {
        for task in self.waiting.get(&key).cloned().unwrap_or_default() {
            self.stop_waiting(task);
        }
    }

    /// Makes one of the tasks that wait for `key` ready, chosen by the seed.
    pub(super) fn wake_one(&mut self, key: WaitKey) {
        let count = self.waiting.get(&key).map_or(0, Vec::len);
        if count > 0 {
            let chosen = self.random.index(count);
            self.stop_waiting(self.waiting[&key][chosen]);
        }
    }

    /// Passes the turn to a ready task. If there is none, time jumps to the next timer.
    pub(super) fn pass_turn(&mut self) {
        self.turn = None;
        while self.ready.is_empty() {
            if let Some(&(at, _)) = self.timers.first() {
                self.now = self.now.max(at);
                self.fire_timers();
            } else if let Some(key) = self.awaited_switch_point() {
                self.wake(key);
            } else if !self.over && self.tasks.iter().any(|task| task.phase != Phase::Ended) {
                self.capture_stacks = true;
                self.fail(Cause::Deadlock);
            } else {
                return;
            }
        }
        let chosen = self.choose();
        self.turn = Some(chosen);
        self.record(chosen);
        self.tasks[chosen].turn.notify_one();
    }

    /// A switch point that a task waits for and that cannot be reached, because no task runs any
    /// more.
    fn awaited_switch_point(&self) -> Option<WaitKey> {
        let mut processes = 0..self.processes.len();
        let key = processes.find(|id| self.waiting.contains_key(&WaitKey::SwitchPoint(*id)));
        key.map(WaitKey::SwitchPoint)
    }

    fn record(&mut self, task: TaskId) {
        for word in [task as u64, self.now.as_nanos() as u64, self.steps] {
            // FNV's multiplication over words: both order and value change the hash.
            self.trace_hash = (self.trace_hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            self.trace_hash ^= self.trace_hash >> 29;
        }
        if self.turns.len() == REPORTED_TURNS {
            self.turns.pop_front();
        }
        self.turns.push_back((self.now, task));
    }

    /// Makes tasks end at their next switch point, including tasks of paused processes.
    pub(super) fn doom(&mut self, who: impl Fn(&TaskState) -> bool) {
        for id in 0..self.tasks.len() {
            if who(&self.tasks[id]) {
                self.resume(self.tasks[id].process);
                self.tasks[id].doomed = true;
                self.stop_waiting(id);
            }
        }
    }

    /// Records the first failure; later ones, while tasks unwind, are ignored.
    pub(super) fn fail(&mut self, cause: Cause) {
        if self.over {
            return;
        }
        self.over = true;
        self.failure = Some(Failure {
            seed: self.seed,
            cause,
            at: self.now,
            tasks: self.reports(),
            turns: self
                .turns
                .iter()
                .map(|(at, task)| Turn { at: *at, task: self.tasks[*task].name.to_string() })
                .collect(),
        });
        self.doom(|_| true);
    }

    fn reports(&self) -> Vec<TaskReport> {
        let living = self.tasks.iter().enumerate().filter(|(_, task)| task.phase != Phase::Ended);
        living
            .map(|(id, task)| TaskReport {
                name: task.name.to_string(),
                doing: self.describe(id),
                stack: Vec::new(),
            })
            .collect()
    }

    fn describe(&self, id: TaskId) -> String {
        let until = |until: Option<Duration>| match until {
            Some(until) => format!(" until {until:?}"),
            None => String::new(),
        };
        match self.tasks[id].phase {
            Phase::Ready if self.turn == Some(id) => "has the turn".to_owned(),
            Phase::Ready => "is ready".to_owned(),
            Phase::Ended => "has ended".to_owned(),
            Phase::Waiting { key, until: at } => match key {
                WaitKey::Event(address) => format!("waits for event {address:#x}{}", until(at)),
                WaitKey::Task(task) => format!("waits for task {}", self.tasks[task].name),
                WaitKey::Process(process) => format!("waits for the end of process {process}"),
                WaitKey::SwitchPoint(process) => format!("waits for a step of process {process}"),
            },
        }
    }
}
