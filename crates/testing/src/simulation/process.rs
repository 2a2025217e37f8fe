//! Simulated processes. A process is a group of tasks that dies at once; its disk survives it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::clock::Clock;
use firn_base::network::Address;
use firn_base::task::{Spawner, TaskHandle};
use parking_lot::Mutex;

use super::disk::{Mount, SimulatedDisk};
use super::network::{HostNetwork, SimulatedNetwork};
use super::scheduler::Core;
use super::state::{ProcessId, TaskId};

/// The task's process was killed before the task gave its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Killed;

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task's process was killed")
    }
}

impl std::error::Error for Killed {}

/// A started task with a result. Dropping it detaches the task.
pub struct Task<T> {
    core: Arc<Core>,
    id: TaskId,
    result: Arc<Mutex<Option<T>>>,
}

impl<T: Send + 'static> Task<T> {
    pub(super) fn start(
        core: &Arc<Core>,
        process: ProcessId,
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Task<T> {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let body = Box::new(move || {
            let value = body();
            *slot.lock() = Some(value);
        });
        Task { core: Arc::clone(core), id: core.spawn(process, name, body), result }
    }

    /// Waits for the task to end.
    ///
    /// # Errors
    /// If its process was killed before.
    pub fn join(self) -> Result<T, Killed> {
        self.core.join(self.core.current(), self.id);
        self.result.lock().take().ok_or(Killed)
    }
}

/// A process of the simulated cluster. It ends when it is killed or when the run ends. Dropping the
/// handle does not end it.
pub struct Process {
    core: Arc<Core>,
    id: ProcessId,
    name: Arc<str>,
    disk: SimulatedDisk,
    mount: Arc<Mount>,
    network: Arc<HostNetwork>,
    environment: Environment,
}

impl Process {
    pub(super) fn start(
        core: &Arc<Core>,
        name: &str,
        disk: &SimulatedDisk,
        network: &SimulatedNetwork,
    ) -> Process {
        let id = core.new_process();
        let network = network.join(id, name);
        let mount = Arc::new(disk.mount());
        let spawner =
            SimulatedSpawner { core: Arc::clone(core), process: id, process_name: name.into() };
        let environment = Environment {
            clock: Arc::new(SimulatedClock { core: Arc::clone(core), process: id }),
            disk: Arc::clone(&mount) as _,
            network: Arc::clone(&network) as _,
            random: Arc::new(core.fork_random()),
            spawner: Arc::new(spawner),
        };
        let (core, disk) = (Arc::clone(core), disk.clone());
        Process { core, id, name: name.into(), disk, mount, network, environment }
    }

    /// The outside world of this process.
    #[must_use]
    pub fn environment(&self) -> Environment {
        self.environment.clone()
    }

    /// The clock of this process runs faster than the true one, in parts per million; negative:
    /// slower.
    ///
    /// # Panics
    /// If a task of the process has begun.
    pub fn drift(&self, ppm: i32) {
        self.core.set_clock(self.id, |clock| clock.drift_ppm = ppm);
    }

    /// The time of day of this process jumps by `ms` milliseconds. Its monotonic clock does not.
    pub fn jump(&self, ms: i64) {
        self.core.set_clock(self.id, |clock| clock.ahead_ms += ms);
    }

    /// Starts a task of this process.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        body: impl FnOnce(&Environment) -> T + Send + 'static,
    ) -> Task<T> {
        let environment = self.environment();
        let name = format!("{}/{name}", self.name);
        Task::start(&self.core, self.id, &name, move || body(&environment))
    }

    /// Starts a task of this process and waits for its result.
    ///
    /// # Errors
    /// If the process is killed meanwhile.
    pub fn run<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Environment) -> T + Send + 'static,
    ) -> Result<T, Killed> {
        self.spawn("run", body).join()
    }

    /// Waits until the tasks of this process have reached `switches` switch points since it was
    /// started. None of them continues before the caller waits or yields, so a crash now hits the
    /// process at that point. Returns false if the process ended or came to rest before. Only one
    /// task may wait for this at a time.
    pub fn wait_for_switches(&self, switches: u64) -> bool {
        self.core.wait_for_switches(self.core.current(), self.id, switches)
    }

    /// The address of a port of this process.
    #[must_use]
    pub fn address(&self, port: u16) -> Address {
        self.network.address(port)
    }

    /// `SIGSTOP`: no task of this process runs until [`Process::resume`]. Messages to it arrive,
    /// time passes, and its connections stay.
    pub fn pause(&self) {
        self.core.pause(self.id);
    }

    /// `SIGCONT`: its tasks continue.
    pub fn resume(&self) {
        self.core.resume(self.id);
    }

    /// `kill -9`: every task stops where it is. The operating system has all its writes and will
    /// bring them to the disk, synced or not. Its peers are told that their connections have ended.
    /// Waits until all tasks have unwound.
    pub fn kill(&self) {
        self.mount.cut();
        self.network.kill();
        self.core.kill(self.core.current(), self.id);
    }

    /// The machine loses power: every task stops where it is, and the seed decides which unsynced
    /// writes the disk keeps. Its peers are told nothing. Waits until all tasks have unwound.
    pub fn crash(&self) {
        self.mount.cut();
        self.network.lose_power();
        self.disk.lose_power();
        self.core.kill(self.core.current(), self.id);
    }
}

pub(super) struct SimulatedClock {
    pub(super) core: Arc<Core>,
    pub(super) process: ProcessId,
}

impl Clock for SimulatedClock {
    fn monotonic(&self) -> Duration {
        let (now, clock) = self.core.clock_of(self.process);
        clock.monotonic(now)
    }

    fn wall_time_ms(&self) -> u64 {
        let (now, clock) = self.core.clock_of(self.process);
        clock.wall_time_ms(now)
    }
}

struct SimulatedSpawner {
    core: Arc<Core>,
    process: ProcessId,
    process_name: Arc<str>,
}

impl Spawner for SimulatedSpawner {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Box<dyn TaskHandle> {
        let returned = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&returned);
        let body = Box::new(move || {
            body();
            flag.store(true, Ordering::SeqCst);
        });
        let name = format!("{}/{name}", self.process_name);
        let id = self.core.spawn(self.process, &name, body);
        Box::new(SimulatedHandle { core: Arc::clone(&self.core), id, returned })
    }
}

struct SimulatedHandle {
    core: Arc<Core>,
    id: TaskId,
    returned: Arc<AtomicBool>,
}

impl TaskHandle for SimulatedHandle {
    fn join(self: Box<Self>) -> bool {
        self.core.join(self.core.current(), self.id);
        self.returned.load(Ordering::SeqCst)
    }
}
