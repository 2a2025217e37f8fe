//! The slow-query log and the general log, in MySQL's format, which `mysqldumpslow` and
//! `pt-query-digest` read.
//!
//! ```text
//!   # Time: 2026-11-21T18:25:40.123456Z
//!   # User@Host: ann[ann] @ localhost []  Id:     8
//!   # Query_time: 1.002000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 4096
//!   use shop;
//!   SET timestamp=1795285539;
//!   SELECT COUNT(*) FROM sale WHERE note LIKE '%late%';
//! ```
//!
//! Invariants:
//! * a statement's passwords are masked before it is written ([`secrets`]);
//! * no lock is held while a file is opened or written: an entry's place is reserved by one
//!   addition;
//! * a log that cannot be written is reported once and turned off; statements never fail because of
//!   it.

mod directories;
mod entry;
mod file;
pub mod secrets;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_base::Environment;
use firn_base::disk::Disk;
use parking_lot::RwLock;

pub use directories::LogDirectories;
pub use entry::{SlowEntry, Who, is_administrative};
use file::LogFile;

use crate::variables::GlobalVariables;

/// One of the two logs.
#[derive(Default)]
struct Log {
    is_on: AtomicBool,
    file: RwLock<Option<Arc<LogFile>>>,
}

pub struct Logs {
    disk: Arc<dyn Disk>,
    slow: Log,
    general: Log,
    wants_unindexed: AtomicBool,
    tells_more: AtomicBool,
}

impl Logs {
    /// Both logs, off.
    #[must_use]
    pub fn new(environment: &Environment) -> Logs {
        Logs {
            disk: environment.disk.clone(),
            slow: Log::default(),
            general: Log::default(),
            wants_unindexed: AtomicBool::new(false),
            tells_more: AtomicBool::new(false),
        }
    }

    /// Applies the global variables. Blocks if a log has to be opened.
    pub fn obey(&self, variables: &GlobalVariables) {
        let is_on = |name: &str| variables.get(name).is_some_and(|value| value.is_on());
        let text = |name: &str| {
            variables.get(name).map(|value| value.as_text().to_owned()).unwrap_or_default()
        };
        let writes_files = text("log_output").to_ascii_uppercase().contains("FILE");
        let directory = PathBuf::from(text("datadir"));
        let slow_on = writes_files && is_on("slow_query_log");
        self.turn(&self.slow, slow_on, &directory.join(text("slow_query_log_file")));
        let general_on = writes_files && is_on("general_log");
        self.turn(&self.general, general_on, &directory.join(text("general_log_file")));
        let unindexed = slow_on && is_on("log_queries_not_using_indexes");
        self.wants_unindexed.store(unindexed, Ordering::Relaxed);
        self.tells_more.store(is_on("log_slow_extra"), Ordering::Relaxed);
    }

    fn turn(&self, log: &Log, is_on: bool, path: &Path) {
        if !is_on {
            log.is_on.store(false, Ordering::Relaxed);
            *log.file.write() = None;
            return;
        }
        let is_same = log.file.read().as_ref().is_some_and(|file| file.path() == path);
        if !is_same {
            self.open(log, path);
        }
    }

    fn open(&self, log: &Log, path: &Path) {
        match LogFile::open(&*self.disk, path) {
            Ok(file) => {
                *log.file.write() = Some(Arc::new(file));
                log.is_on.store(true, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::error!(%error, path = %path.display(), "a log cannot be opened and stays off");
                log.is_on.store(false, Ordering::Relaxed);
                *log.file.write() = None;
            }
        }
    }

    /// `FLUSH LOGS`: opens the files again, so that they can be rotated. Blocks.
    pub fn reopen(&self) {
        for log in [&self.slow, &self.general] {
            let path = log.file.read().as_ref().map(|file| file.path().to_owned());
            if let Some(path) = path {
                self.open(log, &path);
            }
        }
    }

    /// Whether statements without an index are logged, however short they are.
    #[inline]
    #[must_use]
    pub fn wants_unindexed(&self) -> bool {
        self.wants_unindexed.load(Ordering::Relaxed)
    }

    /// Whether slow statements are logged.
    #[must_use]
    pub fn wants_slow(&self) -> bool {
        self.slow.is_on.load(Ordering::Relaxed)
    }

    /// Whether everything is logged.
    #[inline]
    #[must_use]
    pub fn wants_all(&self) -> bool {
        self.general.is_on.load(Ordering::Relaxed)
    }

    /// Writes an entry of the slow-query log. Blocks for the write.
    pub fn slow(&self, entry: &SlowEntry<'_>) {
        let tells_more = self.tells_more.load(Ordering::Relaxed);
        append(&self.slow, &entry.text(tells_more));
    }

    /// Writes a line of the general log. Blocks for the write.
    pub fn general(&self, now_us: u64, connection: u64, command: &str, argument: &str) {
        append(&self.general, &entry::general(now_us, connection, command, argument));
    }
}

fn append(log: &Log, text: &str) {
    let Some(file) = log.file.read().clone() else { return };
    if let Err(error) = file.append(text.as_bytes())
        && log.is_on.swap(false, Ordering::Relaxed)
    {
        tracing::error!(%error, path = %file.path().display(), "a log cannot be written and is turned off");
    }
}

#[cfg(test)]
mod tests;
