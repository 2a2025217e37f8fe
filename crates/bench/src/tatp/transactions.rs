//! The seven transactions.

use std::time::Duration;

use super::Tatp;
use crate::client::{Command, Session, Target, Value};
use crate::error::BenchError;
use crate::random::Draw;
use crate::workload::{Next, Outcome, Worker};

pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Its share of all transactions, in percent.
    weight: u32,
    /// Expected percentage of transactions that find their rows, as it follows from the
    /// distributions of data and input.
    pub(super) fruitful_percent: f64,
}

pub(super) const KINDS: [Kind; 7] = [
    Kind { name: "get_subscriber_data", weight: 35, fruitful_percent: 100.0 },
    Kind { name: "get_new_destination", weight: 10, fruitful_percent: 16.0 },
    Kind { name: "get_access_data", weight: 35, fruitful_percent: 62.5 },
    Kind { name: "update_subscriber_data", weight: 2, fruitful_percent: 62.5 },
    Kind { name: "update_location", weight: 14, fruitful_percent: 100.0 },
    Kind { name: "insert_call_forwarding", weight: 2, fruitful_percent: 31.25 },
    Kind { name: "delete_call_forwarding", weight: 2, fruitful_percent: 31.25 },
];

const SUBSCRIBER: &str = "SELECT * FROM subscriber WHERE s_id = ?";
const DESTINATION: &str = "SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf \
     WHERE sf.s_id = ? AND sf.sf_type = ? AND sf.is_active = 1 AND cf.s_id = sf.s_id \
     AND cf.sf_type = sf.sf_type AND cf.start_time <= ? AND ? < cf.end_time";
const ACCESS: &str =
    "SELECT data1, data2, data3, data4 FROM access_info WHERE s_id = ? AND ai_type = ?";
const SET_BIT: &str = "UPDATE subscriber SET bit_1 = ? WHERE s_id = ?";
const SET_DATA: &str = "UPDATE special_facility SET data_a = ? WHERE s_id = ? AND sf_type = ?";
const LOCATE: &str = "UPDATE subscriber SET vlr_location = ? WHERE sub_nbr = ?";
const BY_NUMBER: &str = "SELECT s_id FROM subscriber WHERE sub_nbr = ?";
const FACILITIES: &str = "SELECT sf_type FROM special_facility WHERE s_id = ?";
const FORWARD: &str = "INSERT INTO call_forwarding VALUES (?, ?, ?, ?, ?)";
const UNFORWARD: &str =
    "DELETE FROM call_forwarding WHERE s_id = ? AND sf_type = ? AND start_time = ?";
const DUPLICATE: u16 = 1062;

#[derive(Debug, Default)]
struct Input {
    kind: usize,
    subscriber: i64,
    /// Type of an access info or a special facility.
    facility: i64,
    start: i64,
    end: i64,
    number: String,
    location: i64,
    bit: i64,
    data: i64,
}

/// A connection's worker.
pub(super) struct Registrar {
    session: Session,
    draw: Draw,
    subscribers: i64,
    input: Input,
    subscriber: Command,
    destination: Command,
    access: Command,
    set_bit: Command,
    set_data: Command,
    locate: Command,
    by_number: Command,
    facilities: Command,
    forward: Command,
    unforward: Command,
}

/// The mask that spreads the favourites, by the number of subscribers (NURand of the
/// specification).
fn favourites(subscribers: i64) -> i64 {
    match subscribers {
        ..=1_000_000 => 65_535,
        1_000_001..=10_000_000 => 1_048_575,
        _ => 2_097_151,
    }
}

impl Registrar {
    pub(super) fn open(
        tatp: &Tatp,
        target: &Target,
        number: usize,
        seed: u64,
    ) -> Result<Registrar, BenchError> {
        let mut session = target.connect()?;
        Ok(Registrar {
            subscriber: session.prepare(SUBSCRIBER)?,
            destination: session.prepare(DESTINATION)?,
            access: session.prepare(ACCESS)?,
            set_bit: session.prepare(SET_BIT)?,
            set_data: session.prepare(SET_DATA)?,
            locate: session.prepare(LOCATE)?,
            by_number: session.prepare(BY_NUMBER)?,
            facilities: session.prepare(FACILITIES)?,
            forward: session.prepare(FORWARD)?,
            unforward: session.prepare(UNFORWARD)?,
            session,
            draw: Draw::new(seed, number as u64),
            subscribers: tatp.subscribers,
            input: Input::default(),
        })
    }

    fn read(&mut self) -> Result<bool, BenchError> {
        let input = &self.input;
        let (id, kind) = (Value::from(input.subscriber), Value::from(input.facility));
        let rows = match input.kind {
            0 => self.session.rows(&self.subscriber, &[id])?,
            1 => {
                let times = [input.start, input.end].map(Value::from);
                self.session.rows(&self.destination, &[&[id, kind][..], &times].concat())?
            }
            _ => self.session.rows(&self.access, &[id, kind])?,
        };
        Ok(!rows.is_empty())
    }

    fn subscriber_id(&mut self) -> Result<Value, BenchError> {
        let rows = self.session.row(&self.by_number, &[sub_nbr(self.input.subscriber)])?;
        Ok(rows[0].clone())
    }

    fn write(&mut self) -> Result<bool, BenchError> {
        let (id, kind) = (Value::from(self.input.subscriber), Value::from(self.input.facility));
        match self.input.kind {
            3 => {
                self.session.execute(&self.set_bit, &[self.input.bit.into(), id.clone()])?;
                let values = [self.input.data.into(), id, kind];
                Ok(self.session.execute(&self.set_data, &values)? > 0)
            }
            5 => {
                let id = self.subscriber_id()?;
                self.forward(id, kind)
            }
            _ => {
                let id = self.subscriber_id()?;
                let values = [id, kind, self.input.start.into()];
                Ok(self.session.execute(&self.unforward, &values)? > 0)
            }
        }
    }

    /// False if the forwarding exists or its facility does not. Both are checked first, for servers
    /// without the foreign key.
    fn forward(&mut self, id: Value, kind: Value) -> Result<bool, BenchError> {
        let rows = self.session.rows(&self.facilities, std::slice::from_ref(&id))?;
        let wanted = self.input.facility;
        let mut is_there = false;
        for row in &rows {
            is_there |= crate::client::whole(&row[0])? == wanted;
        }
        if !is_there {
            return Ok(false);
        }
        let times = [self.input.start, self.input.end].map(Value::from);
        let number = [Value::from(self.input.number.as_str())];
        match self.session.execute(&self.forward, &[&[id, kind][..], &times, &number].concat()) {
            Err(error) if error.code() == Some(DUPLICATE) => Ok(false),
            outcome => outcome.map(|rows| rows == 1),
        }
    }

    /// Always true: MySQL does not report the rows that an update has found and not changed.
    fn locate(&mut self) -> Result<bool, BenchError> {
        let values = [self.input.location.into(), sub_nbr(self.input.subscriber)];
        self.session.execute(&self.locate, &values)?;
        Ok(true)
    }
}

fn sub_nbr(id: i64) -> Value {
    Value::from(format!("{id:015}"))
}

impl Worker for Registrar {
    fn next(&mut self) -> Next {
        let draw = &mut self.draw;
        let kind = draw.weighted(&KINDS.each_ref().map(|kind| kind.weight));
        let start = draw.between(0, 2) * 8;
        self.input = Input {
            kind,
            subscriber: draw.non_uniform(favourites(self.subscribers), 0, 1, self.subscribers),
            facility: draw.between(1, 4),
            start,
            end: if kind == 1 { draw.between(1, 24) } else { start + draw.between(1, 8) },
            number: draw.digits(15),
            location: draw.between(1, i64::from(u32::MAX)),
            bit: draw.between(0, 1),
            data: draw.between(0, 255),
        };
        Next { kind, pause: Duration::ZERO }
    }

    fn attempt(&mut self) -> Result<Outcome, BenchError> {
        let is_fruitful = match self.input.kind {
            0..=2 => self.read()?,
            4 => self.locate()?,
            _ => {
                self.session.run("BEGIN")?;
                let is_fruitful = self.write()?;
                self.session.run("COMMIT")?;
                is_fruitful
            }
        };
        Ok(if is_fruitful { Outcome::Done } else { Outcome::Fruitless })
    }

    fn take_back(&mut self) -> Result<(), BenchError> {
        self.session.run("ROLLBACK")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fifths_read() {
        let weight = |range: std::ops::Range<usize>| -> u32 {
            KINDS[range].iter().map(|kind| kind.weight).sum()
        };
        assert_eq!((weight(0..3), weight(3..5), weight(5..6), weight(6..7)), (80, 16, 2, 2));
    }
}
