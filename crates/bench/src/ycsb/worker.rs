//! A connection's operations.

use std::sync::Arc;
use std::time::Duration;

use super::{FIELDS, OPERATIONS, Operation, Requests, Shared, TABLE, key, value};
use crate::client::{Command, Session, Target, Value, text};
use crate::error::BenchError;
use crate::random::{Draw, scatter};
use crate::workload::{Next, Outcome, Worker};

const SCAN_ROWS: i64 = 100;

struct Input {
    operation: Operation,
    key: String,
    field: usize,
    values: Vec<String>,
    rows: i64,
}

/// A connection's worker.
pub(super) struct Caller {
    session: Session,
    shared: Arc<Shared>,
    draw: Draw,
    input: Option<Input>,
    read: Command,
    updates: Vec<Command>,
    insert: Command,
    scan: Command,
}

impl Caller {
    pub(super) fn open(
        shared: Arc<Shared>,
        target: &Target,
        number: usize,
        seed: u64,
    ) -> Result<Caller, BenchError> {
        let mut session = target.connect()?;
        let updates: Result<Vec<_>, _> = (0..FIELDS)
            .map(|field| {
                session.prepare(&format!("UPDATE {TABLE} SET field{field} = ? WHERE ycsb_key = ?"))
            })
            .collect();
        let places = ["?"; FIELDS + 1].join(", ");
        let scan = format!("SELECT * FROM {TABLE} WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?");
        Ok(Caller {
            read: session.prepare(&format!("SELECT * FROM {TABLE} WHERE ycsb_key = ?"))?,
            updates: updates?,
            insert: session.prepare(&format!("INSERT INTO {TABLE} VALUES ({places})"))?,
            scan: session.prepare(&scan)?,
            session,
            shared,
            draw: Draw::new(seed, number as u64),
            input: None,
        })
    }

    /// The number of a row that existed at the beginning of the run.
    fn number(&mut self) -> u64 {
        let records = self.shared.records;
        match self.shared.requests {
            Requests::Uniform => self.draw.between(0, records as i64 - 1) as u64,
            Requests::Zipfian => scatter(self.shared.zipfian.draw(&mut self.draw)) % records,
            Requests::Latest => {
                // Newly inserted rows have the lowest ranks. The newest row may still be in the
                // middle of its insert.
                let last = self.shared.next_insert.peek() - 1;
                last - self.shared.zipfian.draw(&mut self.draw).min(last)
            }
        }
    }

    fn read(&mut self, key: &str) -> Result<Outcome, BenchError> {
        let rows = self.session.rows(&self.read, &[key.into()])?;
        let Some(row) = rows.first() else {
            return match self.shared.requests {
                Requests::Latest => Ok(Outcome::Fruitless),
                _ => Err(BenchError::Wrong(format!("the record {key} is not there"))),
            };
        };
        for value in &row[1..] {
            if !text(value).starts_with(key) {
                return Err(BenchError::Wrong(format!(
                    "the record {key} has {}",
                    value.as_sql(false)
                )));
            }
        }
        Ok(Outcome::Done)
    }

    fn update(&mut self, input: &Input) -> Result<Outcome, BenchError> {
        let values = [Value::from(&input.values[0]), Value::from(&input.key)];
        match self.session.execute(&self.updates[input.field], &values)? {
            0 => Ok(Outcome::Fruitless),
            _ => Ok(Outcome::Done),
        }
    }

    fn insert(&mut self, input: &Input) -> Result<Outcome, BenchError> {
        let key = [Value::from(&input.key)];
        let fields: Vec<Value> = input.values.iter().map(Value::from).collect();
        self.session.change_one(&self.insert, &[&key[..], &fields].concat())?;
        Ok(Outcome::Done)
    }

    fn scan(&mut self, input: &Input) -> Result<Outcome, BenchError> {
        let values = [Value::from(&input.key), Value::from(input.rows)];
        let rows = self.session.rows(&self.scan, &values)?;
        Ok(if rows.is_empty() { Outcome::Fruitless } else { Outcome::Done })
    }

    fn run(&mut self, input: &Input) -> Result<Outcome, BenchError> {
        match input.operation {
            Operation::Read => self.read(&input.key),
            Operation::Update => self.update(input),
            Operation::Insert => self.insert(input),
            Operation::Scan => self.scan(input),
            Operation::ReadModifyWrite => {
                self.session.run("BEGIN")?;
                self.read(&input.key)?;
                let outcome = self.update(input)?;
                self.session.run("COMMIT")?;
                Ok(outcome)
            }
        }
    }
}

impl Worker for Caller {
    fn next(&mut self) -> Next {
        let kind = self.draw.weighted(&self.shared.weights);
        let operation = OPERATIONS[kind].0;
        let number = match operation {
            Operation::Insert => self.shared.next_insert.take(),
            _ => self.number(),
        };
        let key = key(number);
        let count = match operation {
            Operation::Insert => FIELDS,
            Operation::Update | Operation::ReadModifyWrite => 1,
            Operation::Read | Operation::Scan => 0,
        };
        let values = (0..count).map(|_| value(&key, &mut self.draw)).collect();
        let (field, rows) =
            (self.draw.between(0, FIELDS as i64 - 1) as usize, self.draw.between(1, SCAN_ROWS));
        self.input = Some(Input { operation, key, field, values, rows });
        Next { kind, pause: Duration::ZERO }
    }

    fn attempt(&mut self) -> Result<Outcome, BenchError> {
        let input = self.input.take().expect("an operation was drawn");
        let outcome = self.run(&input);
        self.input = Some(input);
        outcome
    }

    fn take_back(&mut self) -> Result<(), BenchError> {
        self.session.run("ROLLBACK")
    }
}
