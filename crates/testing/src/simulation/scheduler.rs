//! The seeded scheduler: every simulated task is a thread of the operating system, and just one of
//! them, the one that has the *turn*, runs.
//!
//! ```text
//!   task a   ──run──┤wait(event)                          ├──run──
//!   task b          ├──run──┤disk call (the seed: stay)──run──┤sleep(5 ms)
//!   task c                                            ...nobody ready: time jumps to the next timer
//! ```
//!
//! Invariants, under the one mutex of [`Core`]:
//!
//! * at most one task has the turn; a task that is neither it, nor ready, nor waiting, has ended;
//! * a task is in `ready` exactly once if it is ready, in `waiting` at most once if it waits, in
//!   `timers` exactly once if its wait has a timeout;
//! * no decision depends on an address, on real time or on which thread the operating system runs:
//!   the same seed gives the same turns. Events are known by address, but addresses are only ever
//!   looked up, never ordered or iterated over.
//!
//! A task is *doomed* when its process is killed or the run is over: it is made ready, and at the
//! switch point where it stands it unwinds with a payload that only the task's root catches. Code that
//! runs while unwinding may call anything here; it keeps the turn and returns at once. If it goes on
//! asking ([`UNWINDING_PATIENCE`]), it spins on something that never comes, and its thread is parked
//! for ever: a killed process runs no destructors anyway.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use firn_base::task::Scheduler;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::failure::{Cause, Failure, TaskReport, Turn};
use super::panics::{self, Ending};
use crate::random::Random;

pub(super) type TaskId = usize;
pub(super) type ProcessId = usize;

/// The simulated time that passes at each switch point, so that whoever polls a deadline meets it.
const STEP: Duration = Duration::from_micros(1);
/// How many turns a failure tells.
const TOLD_TURNS: usize = 64;
/// How often code that runs while its task unwinds may ask for a switch before its thread is given up.
const UNWINDING_PATIENCE: u32 = 10_000;

/// How far a run may go.
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
    /// A switch point of a process that was asked for by its number.
    SwitchPoint(ProcessId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It has the turn or is in `ready`.
    Ready,
    Waiting {
        key: WaitKey,
        until: Option<Duration>,
    },
    Ended,
}

/// How the next task is chosen. Some bugs want a switch at every point, some a long undisturbed run of
/// one task, some a task that is left aside for long although it is ready: each seed has its way.
#[derive(Debug, Clone, Copy)]
enum Policy {
    /// At a point where a task could go on, another one gets the turn with this probability; which
    /// one is drawn evenly.
    Even { switch_probability: f64 },
    /// The ready task of the highest priority runs. A task that could go on draws its priority anew
    /// with this probability, so that nobody waits for ever for one that polls.
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

enum Intent {
    Yield,
    Wait { key: WaitKey, timeout: Option<Duration> },
}

struct TaskState {
    name: Arc<str>,
    process: ProcessId,
    phase: Phase,
    priority: u64,
    turn: Arc<Condvar>,
    doomed: bool,
    timed_out: bool,
    switches_while_unwinding: u32,
    thread: Option<JoinHandle<()>>,
    thread_id: Option<i32>,
    stack: Vec<String>,
}

#[derive(Default)]
struct ProcessState {
    /// How many of its tasks have not ended.
    living: usize,
    is_killed: bool,
    /// How many switch points its tasks have come to.
    switches: u64,
    /// Who waits for which of them.
    awaited: Option<(u64, TaskId)>,
}

pub(super) struct State {
    seed: u64,
    tasks: Vec<TaskState>,
    processes: Vec<ProcessState>,
    /// Who runs next whatever the policy says.
    next: Option<TaskId>,
    turn: Option<TaskId>,
    ready: Vec<TaskId>,
    waiting: HashMap<WaitKey, Vec<TaskId>>,
    timers: BTreeSet<(Duration, TaskId)>,
    now: Duration,
    steps: u64,
    random: Random,
    policy: Policy,
    limits: Limits,
    turns: VecDeque<(Duration, TaskId)>,
    trace_hash: u64,
    failure: Option<Failure>,
    capture_stacks: bool,
    over: bool,
}

/// The scheduler of one run.
pub(super) struct Core {
    state: Mutex<State>,
    all_ended: Condvar,
}

/// What the scheduler did, for comparing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) steps: u64,
    pub(super) now: Duration,
    pub(super) trace_hash: u64,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<TaskScheduler>>> = const { RefCell::new(None) };
}

impl Core {
    /// The task that the calling thread is.
    ///
    /// # Panics
    /// If the thread is no task of this run.
    pub(super) fn current(self: &Arc<Core>) -> TaskId {
        let current = CURRENT.with_borrow(Clone::clone);
        let own = current.filter(|task| Arc::ptr_eq(&task.core, self));
        own.expect("only a task of this simulation may ask for this").me
    }

    pub(super) fn new(seed: u64, limits: Limits) -> Arc<Core> {
        let random = Random::new(seed);
        let policy = Policy::draw(&random);
        let state = State {
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
        };
        Arc::new(Core { state: Mutex::new(state), all_ended: Condvar::new() })
    }

    pub(super) fn now(&self) -> Duration {
        self.state.lock().now
    }

    pub(super) fn fork_random(&self) -> Random {
        self.state.lock().random.fork()
    }

    pub(super) fn new_process(&self) -> ProcessId {
        let mut state = self.state.lock();
        state.processes.push(ProcessState::default());
        state.processes.len() - 1
    }

    /// Starts `body` as a task, which is ready at once. A task of a process that has been killed ends
    /// before it begins.
    pub(super) fn spawn(
        self: &Arc<Core>,
        process: ProcessId,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> TaskId {
        let id = self.state.lock().add_task(process, name);
        let core = Arc::clone(self);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || core.task_root(id, body))
            .unwrap_or_else(|error| panic!("cannot start a thread for the task {name}: {error}"));
        self.state.lock().tasks[id].thread = Some(thread);
        id
    }

    fn task_root(self: &Arc<Core>, me: TaskId, body: Box<dyn FnOnce() + Send>) {
        let scheduler = Arc::new(TaskScheduler { core: Arc::clone(self), me });
        CURRENT.set(Some(Arc::clone(&scheduler)));
        firn_base::task::install_scheduler(Some(scheduler));
        let ending = panics::run(|| {
            let mut state = self.state.lock();
            state.tasks[me].thread_id = Some(rustix::thread::gettid().as_raw_nonzero().get());
            drop(self.await_turn(state, me));
            body();
        });
        firn_base::task::install_scheduler(None);
        CURRENT.set(None);
        self.end_task(me, ending);
    }

    fn end_task(&self, me: TaskId, ending: Ending<()>) {
        let mut state = self.state.lock();
        if let Ending::Panicked(message) = ending
            && !state.tasks[me].doomed
        {
            let task = state.tasks[me].name.to_string();
            state.fail(Cause::Panic { task, message });
        }
        self.retire(&mut state, me);
    }

    /// Takes a task out of the run and gives the turn to the next one.
    fn retire(&self, state: &mut State, me: TaskId) {
        state.tasks[me].phase = Phase::Ended;
        state.wake(WaitKey::Task(me));
        let process = state.tasks[me].process;
        state.processes[process].living -= 1;
        if state.processes[process].living == 0 {
            state.wake(WaitKey::Process(process));
            state.wake(WaitKey::SwitchPoint(process));
        }
        state.pass_turn();
        if state.all_ended() {
            self.all_ended.notify_all();
        }
    }

    /// Gives the first turn of the run.
    pub(super) fn begin(&self) {
        self.state.lock().pass_turn();
    }

    /// The one switch point. False if a timeout ended the wait.
    fn switch(&self, me: TaskId, intent: Intent) -> bool {
        let mut state = self.state.lock();
        if std::thread::panicking() {
            self.switch_while_unwinding(state, me);
            return false;
        }
        state.advance();
        if state.tasks[me].doomed {
            self.leave(state, me);
        }
        let interrupted = state.count_switch(me);
        match intent {
            Intent::Yield if !interrupted && !state.wants_to_switch(me) => return true,
            Intent::Yield => state.ready.push(me),
            Intent::Wait { key, timeout } => state.enqueue(me, key, timeout),
        }
        state.pass_turn();
        let mut state = self.await_turn(state, me);
        !std::mem::take(&mut state.tasks[me].timed_out)
    }

    fn switch_while_unwinding(&self, mut state: MutexGuard<'_, State>, me: TaskId) {
        let task = &mut state.tasks[me];
        task.switches_while_unwinding += 1;
        if task.switches_while_unwinding < UNWINDING_PATIENCE {
            return;
        }
        task.thread = None;
        self.retire(&mut state, me);
        let never = Condvar::new();
        loop {
            never.wait(&mut state);
        }
    }

    fn await_turn<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        me: TaskId,
    ) -> MutexGuard<'a, State> {
        let turn = Arc::clone(&state.tasks[me].turn);
        while state.turn != Some(me) {
            turn.wait(&mut state);
        }
        if state.tasks[me].doomed {
            self.leave(state, me);
        }
        state
    }

    fn leave(&self, state: MutexGuard<'_, State>, me: TaskId) -> ! {
        let capture = state.capture_stacks;
        drop(state);
        if capture {
            let stack = panics::own_functions(&Backtrace::force_capture());
            self.state.lock().tasks[me].stack = stack;
        }
        panics::stop()
    }

    pub(super) fn wait(&self, me: TaskId, key: WaitKey, timeout: Option<Duration>) -> bool {
        self.switch(me, Intent::Wait { key, timeout })
    }

    /// Waits for the end of a task; false if the caller unwinds and cannot wait.
    pub(super) fn join(&self, me: TaskId, task: TaskId) -> bool {
        while self.state.lock().tasks[task].phase != Phase::Ended {
            if std::thread::panicking() {
                return false;
            }
            self.wait(me, WaitKey::Task(task), None);
        }
        true
    }

    /// Waits until the tasks of `process` have come to `switches` switch points in all; the caller then
    /// has the turn before any of them goes on. False if the process ended before, or came to rest.
    pub(super) fn wait_for_switches(&self, me: TaskId, process: ProcessId, switches: u64) -> bool {
        {
            let mut state = self.state.lock();
            let process = &mut state.processes[process];
            if process.switches >= switches || process.living == 0 {
                return process.switches >= switches;
            }
            process.awaited = Some((switches, me));
        }
        self.wait(me, WaitKey::SwitchPoint(process), None);
        let mut state = self.state.lock();
        state.processes[process].awaited = None;
        state.processes[process].switches >= switches
    }

    /// Ends all tasks of `process` and waits until they have ended; the caller with them if it is one.
    pub(super) fn kill(&self, me: TaskId, process: ProcessId) {
        let own = {
            let mut state = self.state.lock();
            state.processes[process].is_killed = true;
            state.doom(|task| task.process == process);
            state.tasks[me].process == process
        };
        if own {
            self.switch(me, Intent::Yield);
        }
        while self.state.lock().processes[process].living > 0 && !std::thread::panicking() {
            self.wait(me, WaitKey::Process(process), None);
        }
    }

    /// Ends all tasks that are left. Called by the run's first task when it has finished.
    pub(super) fn finish(&self) {
        let mut state = self.state.lock();
        state.over = true;
        state.doom(|_| true);
    }

    pub(super) fn summary(&self) -> Summary {
        let state = self.state.lock();
        Summary { steps: state.steps, now: state.now, trace_hash: state.trace_hash }
    }

    /// Waits, in real time, until every task has ended or `patience` is over: false in that case.
    pub(super) fn wait_for_end(&self, patience: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.all_ended() {
            self.all_ended.wait_for(&mut state, patience);
        }
        state.all_ended()
    }

    /// The step count and the thread of the task that has the turn: what a watchdog compares.
    pub(super) fn progress(&self) -> (u64, Option<i32>) {
        let state = self.state.lock();
        (state.steps, state.turn.and_then(|task| state.tasks[task].thread_id))
    }

    /// Fails the run because the task that has the turn keeps it.
    pub(super) fn stall(&self, asleep: bool) {
        let mut state = self.state.lock();
        let task =
            state.turn.map_or("nobody".to_owned(), |task| state.tasks[task].name.to_string());
        state.fail(Cause::Stall { task, asleep });
    }

    /// The failure, if the run failed, and the threads that remain to be joined.
    pub(super) fn take_result(&self) -> (Option<Failure>, Vec<JoinHandle<()>>) {
        let mut state = self.state.lock();
        let threads = state.tasks.iter_mut().filter_map(|task| task.thread.take()).collect();
        let mut failure = state.failure.take();
        if let Some(failure) = &mut failure {
            for report in &mut failure.tasks {
                let task = state.tasks.iter_mut().find(|task| *task.name == *report.name);
                report.stack = task.map(|task| std::mem::take(&mut task.stack)).unwrap_or_default();
            }
        }
        (failure, threads)
    }
}

impl State {
    fn all_ended(&self) -> bool {
        self.processes.iter().all(|process| process.living == 0)
    }

    fn add_task(&mut self, process: ProcessId, name: &str) -> TaskId {
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
        self.ready.push(id);
        id
    }

    /// Counts a switch point of the task's process; true if somebody waited for it, who is then next.
    fn count_switch(&mut self, me: TaskId) -> bool {
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

    fn wants_to_switch(&mut self, me: TaskId) -> bool {
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

    /// Takes the task that runs next out of `ready`, which must not be empty.
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

    /// One step: time passes, timers that are due make their tasks ready.
    fn advance(&mut self) {
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

    fn enqueue(&mut self, me: TaskId, key: WaitKey, timeout: Option<Duration>) {
        // A timeout beyond what a duration can hold is none.
        let until = timeout.and_then(|timeout| self.now.checked_add(timeout));
        if let Some(until) = until {
            self.timers.insert((until, me));
        }
        self.waiting.entry(key).or_default().push(me);
        self.tasks[me].phase = Phase::Waiting { key, until };
        self.tasks[me].timed_out = false;
    }

    /// Makes a waiting task ready and forgets what it waited for.
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
        self.ready.push(task);
    }

    fn wake(&mut self, key: WaitKey) {
        for task in self.waiting.get(&key).cloned().unwrap_or_default() {
            self.stop_waiting(task);
        }
    }

    /// Gives the turn to somebody who is ready; lets time jump if nobody is.
    fn pass_turn(&mut self) {
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

    /// A switch point that somebody waits for; once nothing moves any more it will not be reached.
    fn awaited_switch_point(&self) -> Option<WaitKey> {
        let mut processes = 0..self.processes.len();
        let key = processes.find(|id| self.waiting.contains_key(&WaitKey::SwitchPoint(*id)));
        key.map(WaitKey::SwitchPoint)
    }

    fn record(&mut self, task: TaskId) {
        for word in [task as u64, self.now.as_nanos() as u64, self.steps] {
            // The multiplication of FNV over words: order and value both count.
            self.trace_hash = (self.trace_hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            self.trace_hash ^= self.trace_hash >> 29;
        }
        if self.turns.len() == TOLD_TURNS {
            self.turns.pop_front();
        }
        self.turns.push_back((self.now, task));
    }

    fn doom(&mut self, who: impl Fn(&TaskState) -> bool) {
        for id in 0..self.tasks.len() {
            if who(&self.tasks[id]) {
                self.tasks[id].doomed = true;
                self.stop_waiting(id);
            }
        }
    }

    /// The first failure counts; what happens while everybody unwinds does not.
    fn fail(&mut self, cause: Cause) {
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

/// What a simulated thread asks: the run's scheduler, and who it is there.
pub(super) struct TaskScheduler {
    core: Arc<Core>,
    me: TaskId,
}

impl Scheduler for TaskScheduler {
    fn wait(&self, key: usize, timeout: Option<Duration>) -> bool {
        self.core.wait(self.me, WaitKey::Event(key), timeout)
    }

    fn wake_all(&self, key: usize) {
        self.core.state.lock().wake(WaitKey::Event(key));
    }

    fn yield_now(&self) {
        self.core.switch(self.me, Intent::Yield);
    }

    fn monotonic(&self) -> Duration {
        self.core.now()
    }
}
