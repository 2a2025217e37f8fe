//! The `oltp_*` shapes of sysbench 1.0: tables of `id, k, c, pad`, point and range reads, updates
//! with and without an index, inserts, deletes, and their mixtures in transactions.
//!
//! Statements, ranges and texts are sysbench's, so figures are comparable with sysbench's own. They
//! are not equal, because the client differs.

mod keys;
mod worker;

pub use self::keys::Distribution;

use self::worker::{BulkWorker, ShapeWorker};
use crate::client::Target;
use crate::error::BenchError;
use crate::load::{LoadOptions, load, make_tables};
use crate::random::Draw;
use crate::workload::{Case, Condition, Suite, Worker};

/// The shape of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One row by primary key, without a transaction around it.
    PointSelect,
    /// Ten point reads and four ranges of a hundred rows.
    ReadOnly,
    /// The statements of `read_only` and `write_only`.
    ReadWrite,
    /// Two updates, a delete and an insert of the same row.
    WriteOnly,
    Insert,
    /// One delete of a row that may exist.
    Delete,
    /// One update of an indexed column.
    UpdateIndex,
    /// One update of a column without index.
    UpdateNonIndex,
    /// Inserts of many rows into a table for each connection.
    BulkInsert,
}

impl Shape {
    /// All shapes in the order in which they run: those that remove rows come last.
    pub const ALL: [Shape; 9] = [
        Shape::PointSelect,
        Shape::ReadOnly,
        Shape::ReadWrite,
        Shape::WriteOnly,
        Shape::Insert,
        Shape::UpdateIndex,
        Shape::UpdateNonIndex,
        Shape::Delete,
        Shape::BulkInsert,
    ];

    /// The name in sysbench.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Shape::PointSelect => "oltp_point_select",
            Shape::ReadOnly => "oltp_read_only",
            Shape::ReadWrite => "oltp_read_write",
            Shape::WriteOnly => "oltp_write_only",
            Shape::Insert => "oltp_insert",
            Shape::Delete => "oltp_delete",
            Shape::UpdateIndex => "oltp_update_index",
            Shape::UpdateNonIndex => "oltp_update_non_index",
            Shape::BulkInsert => "bulk_insert",
        }
    }

    /// The shape with a name, which may begin with `oltp_`.
    #[must_use]
    pub fn named(name: &str) -> Option<Shape> {
        let bare = |name: &str| name.strip_prefix("oltp_").unwrap_or(name).to_owned();
        Shape::ALL.into_iter().find(|shape| bare(shape.name()) == bare(name))
    }
}

/// The suite of sysbench's shapes.
#[derive(Debug, Clone)]
pub struct Sysbench {
    /// Tables `sbtest1` and so on.
    pub tables: i64,
    /// Rows of each table.
    pub rows: i64,
    pub shapes: Vec<Shape>,
    pub distribution: Distribution,
    /// Determines the data.
    pub seed: u64,
}

/// Rows in one part of a load.
const PART_ROWS: i64 = 10_000;
/// Tables for [`Shape::BulkInsert`]. No more connections than that can run it.
pub(crate) const BULK_TABLES: i64 = 256;

impl Suite for Sysbench {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn setup(&self) -> String {
        format!(
            "sysbench's shapes over {} tables of {} rows; rows are met by the distribution {}.",
            self.tables,
            self.rows,
            self.distribution.name()
        )
    }

    fn prepare(&self, target: &Target, options: &LoadOptions) -> Result<u64, BenchError> {
        let names = self.tables();
        let definitions: Vec<String> = (1..=self.tables).map(definition).collect();
        let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
        let mut session = make_tables(target, &names, &definitions)?;
        let per_table = (self.rows + PART_ROWS - 1) / PART_ROWS;
        let rows = (self.tables * self.rows) as u64;
        let parts = (self.tables * per_table) as usize;
        let loaded = load(target, options, "sysbench", (parts, rows), |part, sink, loading| {
            let table = format!("sbtest{}", part as i64 / per_table + 1);
            let first = part as i64 % per_table * PART_ROWS + 1;
            let mut draw = Draw::new(self.seed, part as u64);
            let mut rows = sink.rows(&table, loading)?;
            for id in first..=self.rows.min(first + PART_ROWS - 1) {
                let k = self.distribution.key(&mut draw, self.rows);
                rows.whole(id).whole(k).word(&keys::c(&mut draw)).word(&keys::pad(&mut draw));
                rows.end(sink)?;
            }
            rows.flush(sink)
        })?;
        for table in 1..=self.tables {
            session.run(&format!("CREATE INDEX k_{table} ON sbtest{table} (k)"))?;
        }
        let tables: Vec<_> = (1..=self.tables).map(|table| format!("sbtest{table}")).collect();
        session.ask(&format!("ANALYZE TABLE {}", tables.join(", ")))?;
        Ok(loaded)
    }

    fn check(&self, target: &Target) -> Result<Vec<Condition>, BenchError> {
        let mut session = target.connect()?;
        let mut conditions = Vec::new();
        for table in 1..=self.tables {
            let same = format!(
                "SELECT a.n, a.s, b.n, b.s FROM
                   (SELECT COUNT(*) AS n, SUM(k) AS s FROM sbtest{table} FORCE INDEX (PRIMARY)) a
                 JOIN (SELECT COUNT(*) AS n, SUM(k) AS s FROM sbtest{table} FORCE INDEX (k_{table})
                       WHERE k > -2147483648) b
                 WHERE a.n <> b.n OR a.s <> b.s"
            );
            let name = format!("sbtest{table}: index and rows count and sum up to the same");
            conditions.push(Condition::ask(&mut session, &name, &same)?);
            let form = format!(
                "SELECT id, c, pad FROM sbtest{table} WHERE CHAR_LENGTH(c) <> 119 OR CHAR_LENGTH(pad) <> 59"
            );
            let name = format!("sbtest{table}: texts are whole");
            conditions.push(Condition::ask(&mut session, &name, &form)?);
        }
        Ok(conditions)
    }

    fn tables(&self) -> Vec<String> {
        let own = (1..=self.tables).map(|table| format!("sbtest{table}"));
        own.chain((1..=BULK_TABLES).map(|table| format!("sbbulk{table}"))).collect()
    }

    fn cases(&self) -> Vec<Box<dyn Case>> {
        let case = |shape: &Shape| -> Box<dyn Case> {
            Box::new(ShapeCase { sysbench: self.clone(), shape: *shape })
        };
        self.shapes.iter().map(case).collect()
    }
}

fn definition(table: i64) -> String {
    format!(
        "CREATE TABLE sbtest{table} (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0,
           c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id))"
    )
}

struct ShapeCase {
    sysbench: Sysbench,
    shape: Shape,
}

impl Case for ShapeCase {
    fn label(&self) -> String {
        self.shape.name().to_owned()
    }

    fn kinds(&self) -> Vec<String> {
        vec![self.shape.name().to_owned()]
    }

    fn worker(
        &self,
        target: &Target,
        number: usize,
        seed: u64,
    ) -> Result<Box<dyn Worker>, BenchError> {
        Ok(match self.shape {
            Shape::BulkInsert => Box::new(BulkWorker::open(target, number)?),
            shape => Box::new(ShapeWorker::open(&self.sysbench, shape, target, number, seed)?),
        })
    }
}
