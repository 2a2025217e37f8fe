//! The lease of the process's member as leader of the log group, for what reads at its engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::rows::WriterLease;

/// Told of the lease: until when it lasts, on the monotonic clock.
pub(crate) type TellLease = Box<dyn Fn(Duration) + Send>;

/// The lease during one life of the engine.
#[derive(Debug, Default)]
pub(crate) struct LeaderLease {
    until_ns: AtomicU64,
}

impl LeaderLease {
    /// Takes what the log group tells of the lease, and passes it on.
    pub(crate) fn listen(self: &Arc<Self>, also: Option<TellLease>) -> TellLease {
        let own = Arc::clone(self);
        Box::new(move |until| {
            let until_ns = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
            own.until_ns.store(until_ns, Ordering::SeqCst);
            if let Some(also) = &also {
                also(until);
            }
        })
    }
}

impl WriterLease for LeaderLease {
    fn lasts_until(&self) -> Duration {
        Duration::from_nanos(self.until_ns.load(Ordering::SeqCst))
    }
}
