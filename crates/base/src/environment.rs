//! The outside world as one value, which `main` or the simulator passes down.

use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::disk::{Disk, SystemDisk};
use crate::network::{Network, SystemNetwork};
use crate::random::{RandomSource, SplitMix};
use crate::task::{Spawner, ThreadSpawner};

/// Clock, disk, network, randomness and threads.
#[derive(Clone)]
pub struct Environment {
    pub clock: Arc<dyn Clock>,
    pub disk: Arc<dyn Disk>,
    /// Connections to the other processes of the cluster.
    pub network: Arc<dyn Network>,
    pub random: Arc<dyn RandomSource>,
    pub spawner: Arc<dyn Spawner>,
}

impl Environment {
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
