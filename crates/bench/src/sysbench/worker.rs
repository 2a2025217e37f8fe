//! A connection's transactions.

use std::time::Duration;

use super::keys::{c, pad};
use super::{BULK_TABLES, Shape, Sysbench};
use crate::client::{Command, Session, Target, Value};
use crate::error::BenchError;
use crate::random::Draw;
use crate::workload::{Next, Outcome, Worker};

/// Reads in a transaction.
const POINT_SELECTS: usize = 10;
const RANGE_ROWS: i64 = 100;

/// The commands of one table.
struct Table {
    point: Command,
    range: Command,
    sum: Command,
    order: Command,
    distinct: Command,
    update_index: Command,
    update_non_index: Command,
    delete: Command,
    insert: Command,
    insert_next: Command,
}

impl Table {
    fn prepare(session: &mut Session, number: i64) -> Result<Table, BenchError> {
        let table = format!("sbtest{number}");
        let mut command = |sql: &str| session.prepare(&sql.replace("{}", &table));
        Ok(Table {
            point: command("SELECT c FROM {} WHERE id = ?")?,
            range: command("SELECT c FROM {} WHERE id BETWEEN ? AND ?")?,
            sum: command("SELECT SUM(k) FROM {} WHERE id BETWEEN ? AND ?")?,
            order: command("SELECT c FROM {} WHERE id BETWEEN ? AND ? ORDER BY c")?,
            distinct: command("SELECT DISTINCT c FROM {} WHERE id BETWEEN ? AND ? ORDER BY c")?,
            update_index: command("UPDATE {} SET k = k + 1 WHERE id = ?")?,
            update_non_index: command("UPDATE {} SET c = ? WHERE id = ?")?,
            delete: command("DELETE FROM {} WHERE id = ?")?,
            insert: command("INSERT INTO {} (id, k, c, pad) VALUES (?, ?, ?, ?)")?,
            insert_next: command("INSERT INTO {} (k, c, pad) VALUES (?, ?, ?)")?,
        })
    }
}

/// A connection's worker.
pub(crate) struct ShapeWorker {
    session: Session,
    sysbench: Sysbench,
    shape: Shape,
    draw: Draw,
    tables: Vec<Table>,
    /// Seed of a transaction's input, so that another attempt has the same input.
    transaction_seed: u64,
}

impl ShapeWorker {
    pub(crate) fn open(
        sysbench: &Sysbench,
        shape: Shape,
        target: &Target,
        number: usize,
        seed: u64,
    ) -> Result<ShapeWorker, BenchError> {
        let mut session = target.connect()?;
        let tables: Result<Vec<_>, _> =
            (1..=sysbench.tables).map(|table| Table::prepare(&mut session, table)).collect();
        Ok(ShapeWorker {
            session,
            sysbench: sysbench.clone(),
            shape,
            draw: Draw::new(seed, number as u64),
            tables: tables?,
            transaction_seed: 0,
        })
    }
}

struct Attempt<'a> {
    session: &'a mut Session,
    sysbench: &'a Sysbench,
    tables: &'a [Table],
    draw: Draw,
}

impl Attempt<'_> {
    fn table<'t>(tables: &'t [Table], draw: &mut Draw) -> &'t Table {
        draw.one(tables)
    }

    fn key(&mut self) -> i64 {
        self.sysbench.distribution.key(&mut self.draw, self.sysbench.rows)
    }

    fn point(&mut self) -> Result<(), BenchError> {
        let (table, key) = (Self::table(self.tables, &mut self.draw), self.key());
        // A delete may have removed the row.
        self.session.rows(&table.point, &[key.into()]).map(drop)
    }

    fn ranges(&mut self) -> Result<(), BenchError> {
        let picks: [fn(&Table) -> &Command; 4] = [
            |table| &table.range,
            |table| &table.sum,
            |table| &table.order,
            |table| &table.distinct,
        ];
        for pick in picks {
            let (table, from) = (Self::table(self.tables, &mut self.draw), self.key());
            let range = [from, from + RANGE_ROWS - 1].map(Value::from);
            self.session.rows(pick(table), &range)?;
        }
        Ok(())
    }

    fn reads(&mut self) -> Result<(), BenchError> {
        for _ in 0..POINT_SELECTS {
            self.point()?;
        }
        self.ranges()
    }

    fn update_index(&mut self) -> Result<(), BenchError> {
        let (table, key) = (Self::table(self.tables, &mut self.draw), self.key());
        self.session.execute(&table.update_index, &[key.into()]).map(drop)
    }

    fn update_non_index(&mut self) -> Result<(), BenchError> {
        let (table, key) = (Self::table(self.tables, &mut self.draw), self.key());
        let values = [Value::from(c(&mut self.draw)), key.into()];
        self.session.execute(&table.update_non_index, &values).map(drop)
    }

    fn delete(&mut self) -> Result<(), BenchError> {
        let (table, key) = (Self::table(self.tables, &mut self.draw), self.key());
        self.session.execute(&table.delete, &[key.into()]).map(drop)
    }

    fn insert_next(&mut self) -> Result<(), BenchError> {
        let (table, k) = (Self::table(self.tables, &mut self.draw), self.key());
        let values = [k.into(), Value::from(c(&mut self.draw)), pad(&mut self.draw).into()];
        self.session.execute(&table.insert_next, &values).map(drop)
    }

    fn writes(&mut self) -> Result<(), BenchError> {
        self.update_index()?;
        self.update_non_index()?;
        let (table, key) = (Self::table(self.tables, &mut self.draw), self.key());
        let k = self.key();
        self.session.execute(&table.delete, &[key.into()])?;
        let texts = [Value::from(c(&mut self.draw)), pad(&mut self.draw).into()];
        let values = [&[key.into(), k.into()][..], &texts].concat();
        self.session.execute(&table.insert, &values).map(drop)
    }

    fn within_transaction(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        self.session.run("BEGIN")?;
        body(self)?;
        self.session.run("COMMIT")
    }

    fn run(&mut self, shape: Shape) -> Result<(), BenchError> {
        match shape {
            Shape::PointSelect => self.point(),
            Shape::ReadOnly => self.within_transaction(Attempt::reads),
            Shape::WriteOnly => self.within_transaction(Attempt::writes),
            Shape::ReadWrite => self.within_transaction(|attempt| {
                attempt.reads()?;
                attempt.writes()
            }),
            Shape::Insert => self.insert_next(),
            Shape::Delete => self.delete(),
            Shape::UpdateIndex => self.update_index(),
            Shape::UpdateNonIndex => self.update_non_index(),
            Shape::BulkInsert => unreachable!("it has a worker of its own"),
        }
    }
}

impl Worker for ShapeWorker {
    fn next(&mut self) -> Next {
        self.transaction_seed = self.draw.word();
        Next { kind: 0, pause: Duration::ZERO }
    }

    fn attempt(&mut self) -> Result<Outcome, BenchError> {
        let mut attempt = Attempt {
            session: &mut self.session,
            sysbench: &self.sysbench,
            tables: &self.tables,
            draw: Draw::new(self.transaction_seed, 0),
        };
        attempt.run(self.shape)?;
        Ok(Outcome::Done)
    }

    fn take_back(&mut self) -> Result<(), BenchError> {
        self.session.run("ROLLBACK")
    }
}

/// Rows of one bulk insert. sysbench fills a packet; this number stays below the smallest packet.
const BULK_ROWS: i64 = 1000;

/// A connection that fills its own table with whole batches.
pub(crate) struct BulkWorker {
    session: Session,
    table: String,
    next_id: i64,
    text: String,
}

impl BulkWorker {
    pub(crate) fn open(target: &Target, number: usize) -> Result<BulkWorker, BenchError> {
        if number as i64 >= BULK_TABLES {
            let message = format!("bulk_insert takes no more than {BULK_TABLES} connections");
            return Err(BenchError::Usage(message));
        }
        let mut session = target.connect()?;
        let table = format!("sbbulk{}", number + 1);
        session.run(&format!("DROP TABLE IF EXISTS {table}"))?;
        session.run(&format!(
            "CREATE TABLE {table} (id INT NOT NULL, k INT NOT NULL DEFAULT 0, PRIMARY KEY (id))"
        ))?;
        Ok(BulkWorker { session, table, next_id: 0, text: String::new() })
    }
}

impl Worker for BulkWorker {
    fn next(&mut self) -> Next {
        let rows = (self.next_id + 1..=self.next_id + BULK_ROWS).map(|id| format!("({id},{id})"));
        let rows: Vec<String> = rows.collect();
        self.text = format!("INSERT INTO {} VALUES {}", self.table, rows.join(","));
        self.next_id += BULK_ROWS;
        Next { kind: 0, pause: Duration::ZERO }
    }

    fn attempt(&mut self) -> Result<Outcome, BenchError> {
        self.session.run(&self.text)?;
        Ok(Outcome::Done)
    }

    fn take_back(&mut self) -> Result<(), BenchError> {
        self.session.run("ROLLBACK")
    }
}
