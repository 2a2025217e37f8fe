//! TATP: a telephone network's home location register with seven short transactions, four fifths of
//! which read (Telecom Application Transaction Processing Benchmark, version 1.0).
//!
//! Some transactions find nothing or insert an existing row, because the specification draws their
//! input so. They count as transactions and are reported as fruitless. Reports show the expected
//! share of the other transactions beside the measured one.

mod load;
mod transactions;

use self::transactions::{KINDS, Registrar};
use crate::client::Target;
use crate::error::BenchError;
use crate::load::{LoadOptions, load as load_parts, make_tables};
use crate::measure::Measured;
use crate::report::Section;
use crate::workload::{Case, Condition, Suite, Worker};

const TABLES: [&str; 4] = ["subscriber", "access_info", "special_facility", "call_forwarding"];

#[derive(Debug, Clone, Copy)]
pub struct Tatp {
    /// Rows of the subscriber table, on which the other tables' sizes depend.
    pub subscribers: i64,
    /// Determines the data.
    pub seed: u64,
}

const CONDITIONS: [(&str, &str); 5] = [
    (
        "sub_nbr is s_id with fifteen digits",
        "SELECT s_id, sub_nbr FROM subscriber WHERE sub_nbr <> LPAD(s_id, 15, '0')",
    ),
    (
        "each access_info has its subscriber",
        "SELECT a.s_id, a.ai_type FROM access_info a LEFT JOIN subscriber s ON s.s_id = a.s_id
         WHERE s.s_id IS NULL OR a.ai_type NOT BETWEEN 1 AND 4",
    ),
    (
        "each special_facility has its subscriber",
        "SELECT f.s_id, f.sf_type FROM special_facility f LEFT JOIN subscriber s ON s.s_id = f.s_id
         WHERE s.s_id IS NULL OR f.sf_type NOT BETWEEN 1 AND 4",
    ),
    (
        "each call_forwarding has its special_facility",
        "SELECT c.s_id, c.sf_type, c.start_time FROM call_forwarding c
         LEFT JOIN special_facility f ON f.s_id = c.s_id AND f.sf_type = c.sf_type WHERE f.s_id IS NULL",
    ),
    (
        "calls are forwarded from 0, 8 or 16 o'clock for one to eight hours",
        "SELECT s_id, sf_type, start_time, end_time FROM call_forwarding
         WHERE start_time NOT IN (0, 8, 16) OR end_time - start_time NOT BETWEEN 1 AND 8",
    ),
];

impl Suite for Tatp {
    fn name(&self) -> &'static str {
        "tatp"
    }

    fn setup(&self) -> String {
        format!("TATP with {} subscribers, drawn with favourites.", self.subscribers)
    }

    fn prepare(&self, target: &Target, options: &LoadOptions) -> Result<u64, BenchError> {
        let mut session = make_tables(target, &self.tables(), &load::DEFINITIONS)?;
        let loaded =
            load_parts(target, options, "tatp", load::size(self), |part, sink, loading| {
                load::fill(self, part, sink, loading)
            })?;
        session.ask(&format!("ANALYZE TABLE {}", TABLES.join(", ")))?;
        Ok(loaded)
    }

    fn check(&self, target: &Target) -> Result<Vec<Condition>, BenchError> {
        let mut session = target.connect()?;
        let mut ask = |(name, sql): &(&str, &str)| Condition::ask(&mut session, name, sql);
        CONDITIONS.iter().map(&mut ask).collect()
    }

    fn tables(&self) -> Vec<String> {
        TABLES.map(str::to_owned).to_vec()
    }

    fn cases(&self) -> Vec<Box<dyn Case>> {
        vec![Box::new(*self)]
    }
}

impl Case for Tatp {
    fn label(&self) -> String {
        "tatp".to_owned()
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.iter().map(|kind| kind.name.to_owned()).collect()
    }

    fn worker(
        &self,
        target: &Target,
        number: usize,
        seed: u64,
    ) -> Result<Box<dyn Worker>, BenchError> {
        Ok(Box::new(Registrar::open(self, target, number, seed)?))
    }

    fn more(&self, measured: &Measured) -> Vec<Section> {
        let mut section =
            Section::new("Transactions that found their rows", &["transaction", "%", "expected %"]);
        for (kind, counted) in KINDS.iter().zip(&measured.kinds) {
            let all = counted.transactions();
            let share = (all > 0).then(|| (all - counted.fruitless) as f64 * 100.0 / all as f64);
            section.push(vec![kind.name.into(), share.into(), kind.fruitful_percent.into()]);
        }
        vec![section]
    }
}
