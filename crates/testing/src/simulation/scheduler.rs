//! The seeded scheduler. Every simulated task is a thread of the operating system, and only the
//! task with the *turn* runs.
//!
//! ```text
//!   task a  ──run──┤wait(event)                          ├──run──
//!   task b         ├──run──┤disk call (the seed: stay)──run──┤sleep(5 ms)
//!   task c                                           ...nobody ready: time jumps to the next timer
//! ```
//!
//! [`super::state`] has the scheduler's state and decisions; this module has the threads.
//!
//! A task is *doomed* when its process is killed or the run has ended. It is made ready, and at its
//! switch point it unwinds with a payload that only the task's root catches. Code that runs while
//! unwinding may call any function here; it keeps the turn, and the call returns at once. If it
//! calls too often ([`UNWINDING_PATIENCE`]), it polls for something that never happens, and its
//! thread is parked forever: a killed process runs no destructors anyway.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use firn_base::task::Scheduler;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::clock::ProcessClock;
use super::failure::{Cause, Failure};
use super::panics::{self, Ending};
use super::state::{Limits, Phase, ProcessId, ProcessState, State, TaskId, WaitKey};
use crate::random::Random;

/// Switches that code may request while its task unwinds, before its thread is abandoned.
const UNWINDING_PATIENCE: u32 = 10_000;

enum Intent {
    Yield,
    Wait { key: WaitKey, timeout: Option<Duration> },
}

/// The scheduler of one run.
pub(super) struct Core {
    state: Mutex<State>,
    all_ended: Condvar,
}

/// A summary of the scheduler's work, for comparing runs.
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
    /// The task of the calling thread.
    ///
    /// # Panics
    /// If the thread is not a task of this run.
    pub(super) fn current(self: &Arc<Core>) -> TaskId {
        let current = CURRENT.with_borrow(Clone::clone);
        let own = current.filter(|task| Arc::ptr_eq(&task.core, self));
        own.expect("only a task of this simulation may ask for this").me
    }

    pub(super) fn new(seed: u64, limits: Limits) -> Arc<Core> {
        let state = State::new(seed, limits);
        Arc::new(Core { state: Mutex::new(state), all_ended: Condvar::new() })
    }

    pub(super) fn now(&self) -> Duration {
        self.state.lock().now
    }

    /// The true time and the clock of a process.
    pub(super) fn clock_of(&self, process: ProcessId) -> (Duration, ProcessClock) {
        let state = self.state.lock();
        (state.now, state.processes[process].clock)
    }

    /// Changes the clock of a process, whose tasks may run already if its rate stays.
    pub(super) fn set_clock(&self, process: ProcessId, change: impl FnOnce(&mut ProcessClock)) {
        let mut state = self.state.lock();
        let process = &mut state.processes[process];
        let before = process.clock;
        change(&mut process.clock);
        let is_fresh = process.living == 0 && process.switches == 0;
        assert!(is_fresh || process.clock.drift_ppm == before.drift_ppm, "its tasks run");
    }

    pub(super) fn fork_random(&self) -> Random {
        self.state.lock().random.fork()
    }

    pub(super) fn new_process(&self) -> ProcessId {
        let mut state = self.state.lock();
        state.processes.push(ProcessState::default());
        state.processes.len() - 1
    }

    /// Starts `body` as a task, which is ready at once. A task of a killed process ends before it
    /// begins.
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
            .stack_size(firn_base::stack::THREAD_STACK_BYTES)
            .spawn(move || {
                firn_base::stack::begin(firn_base::stack::THREAD_STACK_BYTES);
                core.task_root(id, body);
            })
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

    /// Removes a task from the run and passes the turn to the next one.
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
            Intent::Yield => state.make_ready(me),
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

    /// Waits until the tasks of `process` have reached `switches` switch points in all. The caller
    /// then has the turn before any of them continues. False if the process ended or came to rest
    /// before.
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

    /// No task of `process` gets the turn before [`Core::resume`].
    pub(super) fn pause(&self, process: ProcessId) {
        self.state.lock().pause(process);
    }

    /// Lets the ready tasks of a paused process continue.
    pub(super) fn resume(&self, process: ProcessId) {
        self.state.lock().resume(process);
    }

    /// Ends all tasks of `process` and waits for them; ends the caller too if it is one of them.
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

    /// Ends all remaining tasks. The run's first task calls this when it has finished.
    pub(super) fn finish(&self) {
        let mut state = self.state.lock();
        state.over = true;
        state.doom(|_| true);
    }

    pub(super) fn summary(&self) -> Summary {
        let state = self.state.lock();
        Summary { steps: state.steps, now: state.now, trace_hash: state.trace_hash }
    }

    /// Waits, in real time, until every task has ended; false if `patience` is over before.
    pub(super) fn wait_for_end(&self, patience: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.all_ended() {
            self.all_ended.wait_for(&mut state, patience);
        }
        state.all_ended()
    }

    /// The step count and the thread of the task with the turn, which a watchdog compares.
    pub(super) fn progress(&self) -> (u64, Option<i32>) {
        let state = self.state.lock();
        (state.steps, state.turn.and_then(|task| state.tasks[task].thread_id))
    }

    /// Fails the run because the task with the turn keeps it.
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

/// The scheduler of a simulated thread, and the thread's task.
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

    fn wake_one(&self, key: usize) {
        self.core.state.lock().wake_one(WaitKey::Event(key));
    }

    fn yield_now(&self) {
        self.core.switch(self.me, Intent::Yield);
    }

    fn monotonic(&self) -> Duration {
        let state = self.core.state.lock();
        state.processes[state.tasks[self.me].process].clock.monotonic(state.now)
    }
}
