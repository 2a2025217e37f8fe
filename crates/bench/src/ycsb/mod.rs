//! YCSB's workloads A to F (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", 2010)
//! over one table of a key and ten fields.
//!
//! | | reads | updates | inserts | scans | read-modify-write | keys |
//! |---|---|---|---|---|---|---|
//! | A | 50 | 50 | | | | zipfian |
//! | B | 95 | 5 | | | | zipfian |
//! | C | 100 | | | | | zipfian |
//! | D | 95 | | 5 | | | latest |
//! | E | | | 5 | 95 | | zipfian |
//! | F | 50 | | | | 50 | zipfian |
//!
//! Each value begins with the key of its row, so that a check finds a value in a wrong row.

mod worker;

use std::sync::Arc;

use parking_lot::Mutex;

use self::worker::Caller;
use crate::client::{Target, whole};
use crate::error::BenchError;
use crate::load::{LoadOptions, load, make_tables};
use crate::random::{Draw, ZIPFIAN_THETA, Zipfian, scatter};
use crate::workload::{Case, Condition, Suite, Worker};

const TABLE: &str = "usertable";
const FIELDS: usize = 10;
const VALUE_BYTES: usize = 100;
const PART_ROWS: i64 = 2000;

/// An operation on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

const OPERATIONS: [(Operation, &str); 5] = [
    (Operation::Read, "read"),
    (Operation::Update, "update"),
    (Operation::Insert, "insert"),
    (Operation::Scan, "scan"),
    (Operation::ReadModifyWrite, "read-modify-write"),
];

/// Weights of [`OPERATIONS`] by the workload's letter.
fn weights(letter: char) -> Option<[u32; 5]> {
    Some(match letter {
        'a' => [50, 50, 0, 0, 0],
        'b' => [95, 5, 0, 0, 0],
        'c' => [100, 0, 0, 0, 0],
        'd' => [95, 0, 5, 0, 0],
        'e' => [0, 0, 5, 95, 0],
        'f' => [50, 0, 0, 0, 50],
        _ => return None,
    })
}

/// How often each key is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// All rows equally often.
    Uniform,
    /// By rank, scattered over the table.
    Zipfian,
    /// By rank; the row that was inserted last has the first rank.
    Latest,
}

impl Requests {
    /// The distribution with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Requests> {
        match name {
            "uniform" => Some(Requests::Uniform),
            "zipfian" => Some(Requests::Zipfian),
            "latest" => Some(Requests::Latest),
            _ => None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Ycsb {
    /// Rows after loading.
    pub records: i64,
    /// Letters of the workloads that are run.
    pub letters: Vec<char>,
    /// Overrides each workload's own distribution.
    pub requests: Option<Requests>,
    /// Determines the data.
    pub seed: u64,
}

/// The key of a row's number. Keys are scattered, so that inserts are spread over the table.
fn key(number: u64) -> String {
    format!("user{:020}", scatter(number))
}

/// A value of a row.
fn value(key: &str, draw: &mut Draw) -> String {
    let rest = VALUE_BYTES - key.len() - 1;
    format!("{key}:{}", draw.alphanumeric(rest as i64, rest as i64))
}

impl Ycsb {
    /// The letters in a text such as `a,c`.
    #[must_use]
    pub fn letters_of(text: &str) -> Option<Vec<char>> {
        let text = text.to_ascii_lowercase();
        let names = if text == "all" { "a,b,c,d,e,f" } else { &text };
        let one = |name: &str| match name.chars().collect::<Vec<_>>()[..] {
            [letter] if weights(letter).is_some() => Some(letter),
            _ => None,
        };
        names.split(',').map(one).collect()
    }
}

impl Suite for Ycsb {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn setup(&self) -> String {
        let requests = match self.requests {
            None => "each workload's own distribution".to_owned(),
            Some(requests) => format!("keys drawn {requests:?}").to_lowercase(),
        };
        format!(
            "YCSB over {} records of {FIELDS} times {VALUE_BYTES} bytes, {requests}.",
            self.records
        )
    }

    fn prepare(&self, target: &Target, options: &LoadOptions) -> Result<u64, BenchError> {
        let fields: Vec<String> =
            (0..FIELDS).map(|field| format!("field{field} VARCHAR({VALUE_BYTES})")).collect();
        let definition = format!(
            "CREATE TABLE {TABLE} (ycsb_key VARCHAR(64) NOT NULL, {}, PRIMARY KEY (ycsb_key))",
            fields.join(", ")
        );
        let mut session = make_tables(target, &self.tables(), &[&definition])?;
        let parts = (self.records + PART_ROWS - 1) / PART_ROWS;
        let size = (parts as usize, self.records as u64);
        let loaded = load(target, options, "ycsb", size, |part, sink, loading| {
            let first = part as i64 * PART_ROWS;
            let mut draw = Draw::new(self.seed, part as u64);
            let mut rows = sink.rows(TABLE, loading)?;
            for number in first..self.records.min(first + PART_ROWS) {
                let key = key(number as u64);
                rows.word(&key);
                for _ in 0..FIELDS {
                    rows.word(&value(&key, &mut draw));
                }
                rows.end(sink)?;
            }
            rows.flush(sink)
        })?;
        session.ask(&format!("ANALYZE TABLE {TABLE}"))?;
        Ok(loaded)
    }

    fn check(&self, target: &Target) -> Result<Vec<Condition>, BenchError> {
        let mut session = target.connect()?;
        let count = format!("SELECT COUNT(*) AS n FROM {TABLE} HAVING n < {}", self.records);
        let belongs: Vec<String> = (0..FIELDS)
            .map(|field| format!("LEFT(field{field}, 25) <> CONCAT(ycsb_key, ':') OR CHAR_LENGTH(field{field}) <> 100"))
            .collect();
        let belongs = format!("SELECT ycsb_key FROM {TABLE} WHERE {}", belongs.join(" OR "));
        Ok(vec![
            Condition::ask(&mut session, "no record has gone", &count)?,
            Condition::ask(&mut session, "values are whole and in their own rows", &belongs)?,
        ])
    }

    fn tables(&self) -> Vec<String> {
        vec![TABLE.to_owned()]
    }

    fn cases(&self) -> Vec<Box<dyn Case>> {
        let case = |letter: &char| -> Box<dyn Case> {
            let requests = self.requests.unwrap_or(match letter {
                'd' => Requests::Latest,
                _ => Requests::Zipfian,
            });
            Box::new(Lettered { letter: *letter, requests, shared: Mutex::new(None) })
        };
        self.letters.iter().map(case).collect()
    }
}

/// One of the workloads.
struct Lettered {
    letter: char,
    requests: Requests,
    /// Created when the first connection of a run counts the rows.
    shared: Mutex<Option<Arc<Shared>>>,
}

/// What the connections of a run share.
pub(crate) struct Shared {
    /// The number of the next inserted row.
    pub(crate) next_insert: crate::load::Counter,
    /// Number of rows at the beginning of the run.
    pub(crate) records: u64,
    pub(crate) zipfian: Zipfian,
    pub(crate) requests: Requests,
    pub(crate) weights: [u32; 5],
}

impl Lettered {
    fn count(&self, target: &Target) -> Result<u64, BenchError> {
        let rows = target.connect()?.ask(&format!("SELECT COUNT(*) FROM {TABLE}"))?;
        match rows.first().map(|row| whole(&row[0])).transpose()? {
            Some(count) if count > 0 => Ok(count as u64),
            _ => Err(BenchError::Usage("the table is empty; prepare it first".to_owned())),
        }
    }
}

impl Case for Lettered {
    fn label(&self) -> String {
        format!("ycsb {}", self.letter.to_ascii_uppercase())
    }

    fn kinds(&self) -> Vec<String> {
        OPERATIONS.map(|(_, name)| name.to_owned()).to_vec()
    }

    fn worker(
        &self,
        target: &Target,
        number: usize,
        seed: u64,
    ) -> Result<Box<dyn Worker>, BenchError> {
        let mut shared = self.shared.lock();
        if number == 0 {
            let records = self.count(target)?;
            *shared = Some(Arc::new(Shared {
                next_insert: crate::load::Counter::from(records),
                records,
                zipfian: Zipfian::new(records, ZIPFIAN_THETA),
                requests: self.requests,
                weights: weights(self.letter).expect("letters are checked when they are read"),
            }));
        }
        let shared = shared.clone().expect("connection 0 comes first");
        // Consecutive workloads must not write the same values.
        let seed = seed ^ (u64::from(u32::from(self.letter)) << 32);
        Ok(Box::new(Caller::open(shared, target, number, seed)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read() {
        assert_eq!(Ycsb::letters_of("A,c"), Some(vec!['a', 'c']));
        assert_eq!(Ycsb::letters_of("all").map(|letters| letters.len()), Some(6));
        assert_eq!(
            [Ycsb::letters_of("g"), Ycsb::letters_of("ab"), Ycsb::letters_of("")],
            [None, None, None]
        );
        for letter in "abcdef".chars() {
            assert_eq!(weights(letter).unwrap().iter().sum::<u32>(), 100);
        }
    }

    #[test]
    fn values_carry_their_key() {
        let mut draw = Draw::new(1, 0);
        let (key, other) = (key(7), key(8));
        assert_ne!(key, other);
        let value = value(&key, &mut draw);
        assert!(value.len() == VALUE_BYTES && value.starts_with(&format!("{key}:")));
    }
}
