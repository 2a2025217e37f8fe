//! The interface of a workload: how it is prepared, run, checked and compared.
//!
//! ```text
//!   Suite: tables and data ── cases() ──► Case: one thing to measure ── worker() ──► Worker: one connection
//!   prepare · check · cleanup             kinds of transactions                       next() · attempt()
//! ```

use std::io;
use std::time::Duration;

use crate::client::{Session, Target};
use crate::error::BenchError;
use crate::load::{self, LoadOptions};
use crate::measure::Measured;
use crate::report::Section;

/// A condition on the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its name, with the specification's number if there is one.
    pub name: String,
    /// The violation; `None` if the condition holds.
    pub violation: Option<String>,
}

impl Condition {
    /// Runs a query for violations of a condition.
    ///
    /// # Errors
    /// The server's error.
    pub fn ask(session: &mut Session, name: &str, sql: &str) -> Result<Condition, BenchError> {
        let rows = session.ask(sql)?;
        let violation = rows.first().map(|row| {
            let shown: Vec<String> = row.iter().map(crate::client::text).collect();
            format!("{} rows, the first is ({})", rows.len(), shown.join(", "))
        });
        Ok(Condition { name: name.to_owned(), violation })
    }
}

/// A data set and the cases that run over it.
pub trait Suite: Sync {
    /// Name on the command line; also the default schema.
    fn name(&self) -> &'static str;

    /// Description of its settings, for reports.
    fn setup(&self) -> String;

    /// Drops old tables, creates new ones and loads them. Returns the rows loaded. Blocks.
    ///
    /// # Errors
    /// If the server refuses.
    fn prepare(&self, target: &Target, options: &LoadOptions) -> Result<u64, BenchError>;

    /// Checks that the data is consistent. Blocks.
    ///
    /// # Errors
    /// If the server refuses.
    fn check(&self, target: &Target) -> Result<Vec<Condition>, BenchError>;

    /// The tables that [`Suite::prepare`] makes.
    fn tables(&self) -> Vec<String>;

    /// The cases that can be measured over the data.
    fn cases(&self) -> Vec<Box<dyn Case>>;

    /// Drops the tables. Blocks.
    ///
    /// # Errors
    /// If the server refuses.
    fn cleanup(&self, target: &Target) -> Result<(), BenchError> {
        load::drop_tables(&mut target.connect()?, &self.tables())
    }

    /// Writes the data to files instead of a server, if the workload supports that.
    ///
    /// # Errors
    /// If it does not, or a file cannot be written.
    fn export(
        &self,
        _directory: &std::path::Path,
        _out: &mut dyn io::Write,
    ) -> Result<(), BenchError> {
        Err(BenchError::Usage(format!("{} has no files to export", self.name())))
    }
}

pub trait Case: Sync {
    fn label(&self) -> String;

    /// The kinds of transactions, which [`Worker::next`] refers to by index.
    fn kinds(&self) -> Vec<String>;

    /// Prepares a connection's worker. Blocks for the server.
    ///
    /// # Errors
    /// If the server refuses.
    fn worker(
        &self,
        target: &Target,
        number: usize,
        seed: u64,
    ) -> Result<Box<dyn Worker>, BenchError>;

    /// Transactions of each connection, for a case that does not run for a set time.
    fn operations(&self) -> Option<u64> {
        None
    }

    /// The kind whose rate is the headline; all kinds by default.
    fn counted(&self) -> Option<Counted> {
        None
    }

    /// Additional tables about a run.
    fn more(&self, _measured: &Measured) -> Vec<Section> {
        Vec::new()
    }
}

/// A rate that characterises a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    pub kind: usize,
    /// Name of the rate.
    pub name: &'static str,
    /// Unit of time, in seconds.
    pub seconds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    pub kind: usize,
    /// Pause before it, as a person at a terminal makes.
    pub pause: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The transaction did its work.
    Done,
    /// It was rolled back or found nothing, as the workload intends for some.
    Fruitless,
}

/// A connection's part in a run.
pub trait Worker: Send {
    /// Draws the next transaction with its input.
    fn next(&mut self) -> Next;

    /// Attempts the drawn transaction. After [`Worker::take_back`] it may be called again for the
    /// same input.
    ///
    /// # Errors
    /// After a conflict another attempt is worthwhile; any other error ends the run.
    fn attempt(&mut self) -> Result<Outcome, BenchError>;

    /// Rolls back after a conflict.
    ///
    /// # Errors
    /// If the server does not answer.
    fn take_back(&mut self) -> Result<(), BenchError>;
}
