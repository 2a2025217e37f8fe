//! TPC-H: 22 queries over orders and their lines, with data from Firn's own generator (TPC
//! Benchmark H, revision 3.0.1). A run is the power test without the refresh functions: each
//! connection runs the queries one after the other.
//!
//! Answers are compared with those of another engine over the same rows: `export` writes rows and
//! queries to files, `scripts/tpch-answers.py` has DuckDB answer them, and `check --answers FILE`
//! compares; `check --against URL` asks a second server instead.

#![allow(clippy::disallowed_methods, reason = "a client beside the node, under no simulator")]

mod answers;
mod generate;
mod queries;
mod schema;
mod words;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::generate::{Generator, Sizes};
use self::words::TextPool;
use crate::client::{Session, Target};
use crate::error::BenchError;
use crate::load::{LoadOptions, export, load, make_tables};
use crate::measure::Measured;
use crate::report::Section;
use crate::workload::{Case, Condition, Next, Outcome, Suite, Worker};

#[derive(Debug, Clone)]
pub struct Tpch {
    /// Scale factor: 1 is about a gigabyte.
    pub scale: f64,
    /// Numbers of the queries that run.
    pub numbers: Vec<usize>,
    /// How often each connection runs them.
    pub passes: u64,
    /// A second server, whose answers `check` takes as right.
    pub against: Option<String>,
    /// A file of answers that `check` takes as right.
    pub answers: Option<PathBuf>,
    /// Determines the data.
    pub seed: u64,
}

impl Tpch {
    fn generator(&self) -> Generator {
        Generator { sizes: Sizes::of(self.scale), seed: self.seed, pool: TextPool::new(self.seed) }
    }

    fn queries(&self) -> Vec<(usize, String)> {
        let texts = queries::queries(self.scale);
        self.numbers.iter().map(|number| (*number, texts[number - 1].clone())).collect()
    }

    /// The numbers in a text such as `1,6,14` or `all`.
    #[must_use]
    pub fn numbers_of(text: &str) -> Option<Vec<usize>> {
        if text == "all" {
            return Some((1..=22).collect());
        }
        let one = |number: &str| number.parse().ok().filter(|number| (1..=22).contains(number));
        text.split(',').map(one).collect()
    }
}

impl Suite for Tpch {
    fn name(&self) -> &'static str {
        "tpch"
    }

    fn setup(&self) -> String {
        format!("TPC-H of scale factor {}, {} queries.", self.scale, self.numbers.len())
    }

    fn prepare(&self, target: &Target, options: &LoadOptions) -> Result<u64, BenchError> {
        let mut session = make_tables(target, &self.tables(), &schema::DEFINITIONS)?;
        let generator = self.generator();
        let size = (generator.parts(), generator.sizes.rows());
        let loaded = load(target, options, "tpch", size, |part, sink, loading| {
            generator.fill(part, sink, loading)
        })?;
        for index in schema::INDEXES {
            session.run(index)?;
        }
        session.ask(&format!("ANALYZE TABLE {}", schema::TABLES.join(", ")))?;
        Ok(loaded)
    }

    fn check(&self, target: &Target) -> Result<Vec<Condition>, BenchError> {
        let expected = match (&self.answers, &self.against) {
            (Some(path), _) => answers::Expected::File(answers::read(path)?),
            (None, Some(url)) => {
                answers::Expected::Server(Target::parse(url, self.name())?.connect()?)
            }
            (None, None) => {
                return Err(BenchError::Usage(
                    "check needs --answers FILE or --against URL to know what is right".to_owned(),
                ));
            }
        };
        answers::check(&mut target.connect()?, expected, &self.queries())
    }

    fn tables(&self) -> Vec<String> {
        schema::TABLES.map(str::to_owned).to_vec()
    }

    fn cases(&self) -> Vec<Box<dyn Case>> {
        vec![Box::new(self.clone())]
    }

    fn export(&self, directory: &Path, out: &mut dyn std::io::Write) -> Result<(), BenchError> {
        let generator = self.generator();
        let rows = export(directory, &self.tables(), generator.parts(), |part, sink, loading| {
            generator.fill(part, sink, loading)
        })?;
        for (number, text) in self.queries() {
            std::fs::write(directory.join(format!("q{number:02}.sql")), text + "\n")?;
        }
        write_statements(&directory.join("schema.sql"), &schema::DEFINITIONS)?;
        write_statements(&directory.join("indexes.sql"), &schema::INDEXES)?;
        writeln!(out, "tpch: {rows} rows in {}, fields separated by |", directory.display())?;
        Ok(())
    }
}

fn write_statements(path: &Path, statements: &[&str]) -> std::io::Result<()> {
    let text: String = statements.iter().map(|statement| format!("{statement};\n")).collect();
    std::fs::write(path, text)
}

impl Case for Tpch {
    fn label(&self) -> String {
        format!("tpch SF {}", self.scale)
    }

    fn kinds(&self) -> Vec<String> {
        self.numbers.iter().map(|number| format!("Q{number}")).collect()
    }

    fn worker(&self, target: &Target, _: usize, _: u64) -> Result<Box<dyn Worker>, BenchError> {
        let texts = self.queries().into_iter().map(|(_, text)| text).collect();
        Ok(Box::new(Asker { session: target.connect()?, texts, next: 0, now: 0 }))
    }

    fn operations(&self) -> Option<u64> {
        Some(self.numbers.len() as u64 * self.passes)
    }

    fn more(&self, measured: &Measured) -> Vec<Section> {
        let mut section = Section::new("Seconds of each query, medians", &["query", "seconds"]);
        let mut sum = 0.0;
        for (name, kind) in measured.names.iter().zip(&measured.kinds) {
            let seconds = kind.percentile_ms(50.0) / 1000.0;
            sum += seconds;
            section.push(vec![name.as_str().into(), seconds.into()]);
        }
        section.push(vec!["sum".into(), sum.into()]);
        vec![section]
    }
}

/// A connection that runs one query after the other, as text: preparing a query that runs once has
/// no use.
struct Asker {
    session: Session,
    texts: Vec<String>,
    next: usize,
    now: usize,
}

impl Worker for Asker {
    fn next(&mut self) -> Next {
        self.now = self.next;
        self.next = (self.next + 1) % self.texts.len();
        Next { kind: self.now, pause: Duration::ZERO }
    }

    fn attempt(&mut self) -> Result<Outcome, BenchError> {
        self.session.ask(&self.texts[self.now])?;
        Ok(Outcome::Done)
    }

    fn take_back(&mut self) -> Result<(), BenchError> {
        self.session.run("ROLLBACK")
    }
}
