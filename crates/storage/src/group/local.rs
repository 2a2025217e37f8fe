//! The log of one member over a local directory.
//!
//! A [`LocalLog`] with entries does the work. A restart ends that log, and opens another one over
//! the same directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_api::{LogError, Room, Watermarks};
use firn_base::Lsn;
use firn_consensus::{Base, Saved, Write};
use parking_lot::Mutex;

use super::MemberLog;
use crate::local::{LocalDirectory, LocalLog, LogOptions, OpenError};

/// The log of a group's member in a local directory.
pub struct GroupLog {
    directory: Arc<LocalDirectory>,
    options: LogOptions,
    current: Mutex<Arc<LocalLog>>,
    saved: Mutex<Option<Saved>>,
    is_closed: AtomicBool,
}

impl GroupLog {
    /// Opens the member's log. In a new directory, makes one that begins at `founding`, which a
    /// directory that has a log does not look at. Blocks for I/O.
    ///
    /// # Errors
    /// [`OpenError::NotOfGroup`] if the directory has a log of a node alone, [`OpenError::Io`], or
    /// [`LogError::Damaged`] if log or entries that were synced are missing.
    pub fn open(
        directory: &Arc<LocalDirectory>,
        options: LogOptions,
        founding: Base,
    ) -> Result<GroupLog, OpenError> {
        GroupLog::open_behind(directory, options, founding, Watermarks::default())
    }

    /// Like [`GroupLog::open`], for a group whose database has a past: the ids below `watermarks`
    /// may have been handed out before its log begins. Blocks for I/O.
    ///
    /// # Errors
    /// As there.
    pub fn open_behind(
        directory: &Arc<LocalDirectory>,
        options: LogOptions,
        founding: Base,
        watermarks: Watermarks,
    ) -> Result<GroupLog, OpenError> {
        GroupLog::open_or_make(directory, options, Some((founding, watermarks)))
    }

    /// Opens the member's log, which was made before: without it the member has forgotten its votes
    /// and what it confirmed. Blocks for I/O.
    ///
    /// # Errors
    /// Those of [`GroupLog::open`]; [`LogError::Damaged`] if there is no log.
    pub fn open_again(
        directory: &Arc<LocalDirectory>,
        options: LogOptions,
    ) -> Result<GroupLog, OpenError> {
        GroupLog::open_or_make(directory, options, None)
    }

    fn open_or_make(
        directory: &Arc<LocalDirectory>,
        options: LogOptions,
        founding: Option<(Base, Watermarks)>,
    ) -> Result<GroupLog, OpenError> {
        let (log, saved) = LocalLog::open_member(directory, options, founding)?;
        Ok(GroupLog {
            directory: Arc::clone(directory),
            options,
            current: Mutex::new(log),
            saved: Mutex::new(Some(saved)),
            is_closed: AtomicBool::new(false),
        })
    }

    /// The log, for a page store and for readers: they get what is durable in the group. After a
    /// restart of the member it is another one.
    #[must_use]
    pub fn log(&self) -> Arc<LocalLog> {
        Arc::clone(&self.current.lock())
    }

    /// Throws the log away, and begins another one at `base`.
    fn restart(&self, write: &Write, base: &Base) -> Result<(), LogError> {
        let log = self.log();
        if !log.begin_restart(write.vote, base)? {
            return Ok(());
        }
        log.close();
        let opened = LocalLog::open_member(&self.directory, self.options, None);
        let (log, _) = opened.map_err(|error| {
            let place = self.directory.path().display().to_string();
            log.fail(LogError::Failed { place, reason: error.to_string() })
        })?;
        *self.current.lock() = Arc::clone(&log);
        if self.is_closed.load(Ordering::SeqCst) {
            log.close();
        }
        Ok(())
    }
}

impl MemberLog for GroupLog {
    fn saved(&self) -> Saved {
        self.saved.lock().take().expect("what was saved is handed over once")
    }

    fn write(&self, write: &Write, bytes: &[u8]) -> Result<(), LogError> {
        if let Some(base) = &write.restart {
            self.restart(write, base)?;
        }
        self.log().write_entries(write, bytes)
    }

    fn sync(&self) -> Result<(), LogError> {
        self.log().sync_entries()
    }

    fn read(&self, from: Lsn, to: Lsn, into: &mut Vec<u8>) -> Result<(), LogError> {
        self.log().read_written(from, to, into)
    }

    fn set_durable(&self, lsn: Lsn) {
        self.log().set_durable(lsn);
    }

    fn release(&self, lsn: Lsn) -> Lsn {
        self.log().release_entries(lsn)
    }

    fn raise_watermarks(&self, watermarks: Watermarks) {
        self.log().raise_watermarks(watermarks);
    }

    fn watermarks(&self) -> Result<Watermarks, LogError> {
        self.log().watermarks_of_durable()
    }

    fn room(&self) -> Result<Room, LogError> {
        self.log().room()
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.log().close();
    }
}
