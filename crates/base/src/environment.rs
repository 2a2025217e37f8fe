//! The world outside the process, in one value that is handed down from `main` or from the simulator.

use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::disk::{Disk, SystemDisk};
use crate::network::{Network, SystemNetwork};
use crate::random::{RandomSource, SplitMix};
use crate::task::{Spawner, ThreadSpawner};

/// Clock, disk, network, randomness and threads.
#[derive(Clone)]
pub struct Environment {
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where files are.
    pub disk: Arc<dyn Disk>,
    /// How other processes of the cluster are reached.
    pub network: Arc<dyn Network>,
    /// Where randomness comes from.
    pub random: Arc<dyn RandomSource>,
    /// Who starts background tasks.
    pub spawner: Arc<dyn Spawner>,
}

impl Environment {
    /// The operating system's.
    #[must_use]
    pub fn system() -> Environment {
        Environment {
            clock: Arc::new(SystemClock),
            disk: Arc::new(SystemDisk),
            network: Arc::new(SystemNetwork),
            random: Arc::new(SplitMix::from_entropy()),
            spawner: Arc::new(ThreadSpawner),
        }
    }
}
