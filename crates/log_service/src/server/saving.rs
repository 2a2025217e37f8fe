//! The task that keeps the list of readers: it ends leases that are over, and writes the readers
//! that stay to the registry.
//!
//! One task writes. A request that needs the list on the disk raises `wanted` and waits until the
//! task has saved a list that it read after that.

use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::LogError;
use firn_base::event::Event;
use parking_lot::Mutex;

use super::Shared;
use crate::message::HeldReader;

/// Requests to save the readers, by number, and how far they were carried out.
#[derive(Default)]
pub(super) struct Saving {
    /// Zero until the readers of the file are restored: before that the list is not saved.
    wanted: AtomicU64,
    done: Mutex<Done>,
    /// Notified when the task has saved, or has failed to.
    saved: Event,
}

#[derive(Default)]
struct Done {
    /// Requests up to this one have been tried.
    tried: u64,
    /// Why the last try failed.
    failure: Option<String>,
    /// What is on the disk, if that is known.
    saved: Option<Vec<HeldReader>>,
}

impl Saving {
    /// The list is whole: it may replace the file.
    pub(super) fn allow(&self) {
        self.wanted.fetch_max(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Blocks until these readers, which were put on the list, are on the disk. Their positions
    /// there may be older.
    pub(super) fn save_readers(&self, readers: Vec<HeldReader>) -> Result<(), LogError> {
        let is_saved = {
            let done = self.saving.done.lock();
            let saved = done.saved.as_deref().unwrap_or_default();
            readers.iter().all(|reader| {
                let is_same = |saved: &HeldReader| {
                    saved.name == reader.name && saved.limit_bytes == reader.limit_bytes
                };
                saved.iter().any(is_same)
            })
        };
        if is_saved { Ok(()) } else { self.save_now() }
    }

    /// Blocks until the readers that stay are on the disk, if the service keeps them there.
    pub(super) fn save_now(&self) -> Result<(), LogError> {
        let Some(registry) = &self.registry else { return Ok(()) };
        let wanted = self.saving.wanted.fetch_add(1, Ordering::SeqCst) + 1;
        self.changed.notify_all();
        let mut failure = None;
        self.saving.saved.wait_until(None, || {
            let done = self.saving.done.lock();
            failure.clone_from(&done.failure);
            done.tried >= wanted || self.is_closed()
        });
        match failure {
            None if self.saving.done.lock().tried >= wanted => Ok(()),
            None => {
                let reason = "the log service of this member is closed".to_owned();
                Err(LogError::Unavailable { reason })
            }
            Some(reason) => Err(LogError::NoRoom { place: registry.place(), reason }),
        }
    }

    /// What the task `log-leases` does.
    pub(super) fn keep_readers(&self) {
        let mut tried = 0;
        while !self.is_closed() {
            let is_wanted = || self.saving.wanted.load(Ordering::SeqCst) > tried;
            self.changed.wait_until(Some(self.options.lease / 4), || {
                self.is_closed() || (self.registry.is_some() && is_wanted())
            });
            self.readers.expire(self.environment.clock.monotonic(), self.options.lease);
            self.readers.drop_lost(&*self.store);
            tried = self.save();
        }
        self.saving.saved.notify_all();
    }

    /// Writes the list, if it is another one than what is on the disk. Returns the last request
    /// that is done.
    fn save(&self) -> u64 {
        let wanted = self.saving.wanted.load(Ordering::SeqCst);
        let Some(registry) = self.registry.as_ref().filter(|_| wanted > 0) else { return wanted };
        let readers = self.readers.staying();
        let is_known = self.saving.done.lock().saved.as_ref() == Some(&readers);
        let outcome = if is_known { Ok(()) } else { registry.save(&readers) };
        let failure = outcome.err().map(|error| error.to_string());
        if let Some(reason) = &failure {
            tracing::warn!(reason, "the readers of the log cannot be written down");
        }
        let saved = if failure.is_none() { Some(readers) } else { None };
        *self.saving.done.lock() = Done { tried: wanted, failure, saved };
        self.saving.saved.notify_all();
        wanted
    }
}
