//! Random reads of single rows that are all cached.

use firn_base::random::{RandomSource, SplitMix};
use firn_engine::transaction::{IsolationLevel, ReadMode, Transaction};
use firn_node::node::NodeOptions;

use crate::arguments::EngineArguments;
use crate::counts::Counts;
use crate::drive::{Drive, Driven};
use crate::node::{BenchNode, Workshop, check};
use crate::{BenchError, cores};
use firn_bench::progress::Progress;
use firn_bench::report::{Report, Section};
use firn_bench::statistics::median;

const THREADS: [usize; 4] = [1, 2, 8, 64];
const ROWS: u64 = 1_000_000;
const ROW_BYTES: usize = 100;
const BUFFER_POOL: u64 = 512 << 20;
/// How many reads share a snapshot, if they share one.
const READS_PER_TRANSACTION: u32 = 1000;
/// One read in this many is timed: reading the clock costs a tenth of a read.
const TIMED_ONE_IN: u32 = 16;

/// How reads are grouped into transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grouping {
    /// A transaction for each read: begin, read, commit.
    Alone,
    /// Many reads of one snapshot.
    Together,
}

impl Grouping {
    fn name(self) -> &'static str {
        match self {
            Grouping::Alone => "a transaction each",
            Grouping::Together => "1000 in a transaction",
        }
    }
}

pub(crate) fn run(
    arguments: &EngineArguments,
    workshop: &Workshop,
    progress: &Progress,
) -> Result<Report, BenchError> {
    let threads = arguments.threads_or(&THREADS);
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = arguments.buffer_pool_or(BUFFER_POOL);
    let rows = arguments.rows.unwrap_or(ROWS);
    progress.plan(1 + 2 * threads.len() * arguments.rounds);
    progress.step("point-reads: loading");
    let node = workshop.node(&options)?;
    node.load(rows, arguments.row_bytes.unwrap_or(ROW_BYTES), |row| row)?;
    let mut section = Section::new(
        "Reads a second (more is better), and latency of a read",
        &["reads", "threads", "reads/s", "P50 us", "P95 us", "P99 us", "CPU us/read", "misses"],
    );
    for grouping in [Grouping::Alone, Grouping::Together] {
        for threads in &threads {
            let before = Counts::read(node.system());
            let mut rounds = Vec::new();
            for _ in 0..arguments.rounds {
                progress.step(&format!("point-reads: {threads} threads"));
                rounds.push(measure(arguments, &node, rows, *threads, grouping)?);
            }
            let misses = Counts::read(node.system()).since(&before).misses;
            let percentile = |percent| median(rounds.iter().map(|one| one.percentile_us(percent)));
            section.push(vec![
                grouping.name().into(),
                (*threads).into(),
                median(rounds.iter().map(Driven::per_second)).into(),
                percentile(50.0).into(),
                percentile(95.0).into(),
                percentile(99.0).into(),
                median(rounds.iter().map(Driven::processor_us)).into(),
                (misses as f64).into(),
            ]);
        }
    }
    node.close()?;
    let mut report = Report::new("point-reads");
    report.note(format!(
        "{rows} rows of {} bytes in a buffer pool of {} MiB, random keys, each row is looked at. {} cores, \
         median of {} rounds of {} s.",
        arguments.row_bytes.unwrap_or(ROW_BYTES),
        arguments.buffer_pool_or(BUFFER_POOL) >> 20,
        cores(),
        arguments.rounds,
        arguments.duration.as_secs_f64(),
    ));
    report.add(section);
    Ok(report)
}

fn measure(
    arguments: &EngineArguments,
    node: &BenchNode,
    rows: u64,
    threads: usize,
    grouping: Grouping,
) -> Result<Driven, BenchError> {
    let drive = Drive { threads, duration: arguments.duration, timed_one_in: TIMED_ONE_IN };
    drive.run(|number| {
        let table = Table { node, random: SplitMix::new(number as u64), rows, found: Vec::new() };
        let mut reader = Reader { table, shared: None, reads_left: 0 };
        move || match grouping {
            Grouping::Alone => reader.read_alone(),
            Grouping::Together => reader.read_together(),
        }
    })
}

/// The rows, of which random ones are read.
struct Table<'a> {
    node: &'a BenchNode,
    random: SplitMix,
    rows: u64,
    found: Vec<u8>,
}

struct Reader<'a> {
    table: Table<'a>,
    shared: Option<Transaction>,
    reads_left: u32,
}

impl Reader<'_> {
    fn read_alone(&mut self) -> Result<(), BenchError> {
        let mut trx = self.table.begin()?;
        self.table.read(&mut trx)?;
        Ok(trx.commit()?)
    }

    /// The transaction stays where it is: moving it would cost a tenth of a read.
    fn read_together(&mut self) -> Result<(), BenchError> {
        let trx = match &mut self.shared {
            Some(trx) => trx,
            none => none.insert(self.table.begin()?),
        };
        self.table.read(trx)?;
        if self.reads_left > 0 {
            self.reads_left -= 1;
            return Ok(());
        }
        self.reads_left = READS_PER_TRANSACTION;
        Ok(self.shared.take().map_or(Ok(()), Transaction::commit)?)
    }
}

impl Table<'_> {
    fn begin(&self) -> Result<Transaction, BenchError> {
        self.node.begin(IsolationLevel::RepeatableRead)
    }

    fn read(&mut self, trx: &mut Transaction) -> Result<(), BenchError> {
        let row = self.random.next_u64() % self.rows;
        let key = row.to_be_bytes();
        if !trx.get(self.node.index(), &key, ReadMode::Consistent, &mut self.found)? {
            return Err(BenchError::WrongRow { row });
        }
        check(&self.found, row)
    }
}
