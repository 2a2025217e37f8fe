//! Delivery (specification 2.7): delivers the oldest new order of each district and charges its
//! customer. All ten districts are one transaction, and the terminal waits for it. The
//! specification allows a queue between them, but a queue would hide the wait.

use super::input::DISTRICTS;
use crate::client::{Command, Session, Value, whole};
use crate::error::BenchError;
use crate::random::Draw;
use crate::workload::Outcome;

const OLDEST: &str = "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
     ORDER BY no_o_id LIMIT 1 FOR UPDATE";
const TAKE: &str = "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
const WHOSE: &str = "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
const CARRY: &str =
    "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
const DELIVER: &str = "UPDATE order_line SET ol_delivery_d = NOW() \
     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
const COST: &str =
    "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
const OWE: &str = "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";

/// Input of a terminal.
#[derive(Debug)]
pub(crate) struct Input {
    warehouse: i64,
    carrier: i64,
}

impl Input {
    pub(crate) fn draw(draw: &mut Draw, warehouse: i64) -> Input {
        Input { warehouse, carrier: draw.between(1, 10) }
    }
}

/// The transaction's commands in one session.
pub(crate) struct Delivery {
    oldest: Command,
    take: Command,
    whose: Command,
    carry: Command,
    deliver: Command,
    cost: Command,
    owe: Command,
}

impl Delivery {
    pub(crate) fn prepare(session: &mut Session) -> Result<Delivery, BenchError> {
        Ok(Delivery {
            oldest: session.prepare(OLDEST)?,
            take: session.prepare(TAKE)?,
            whose: session.prepare(WHOSE)?,
            carry: session.prepare(CARRY)?,
            deliver: session.prepare(DELIVER)?,
            cost: session.prepare(COST)?,
            owe: session.prepare(OWE)?,
        })
    }

    /// Runs in an open transaction. Fruitless if no district had a new order.
    pub(crate) fn run(&self, session: &mut Session, input: &Input) -> Result<Outcome, BenchError> {
        let mut outcome = Outcome::Fruitless;
        for district in 1..=DISTRICTS {
            if self.deliver_one(session, input, district)? {
                outcome = Outcome::Done;
            }
        }
        Ok(outcome)
    }

    /// False if the district has no new order.
    fn deliver_one(
        &self,
        session: &mut Session,
        input: &Input,
        district: i64,
    ) -> Result<bool, BenchError> {
        let place = [input.warehouse, district].map(Value::from);
        let oldest = session.rows(&self.oldest, &place)?;
        let Some(order) = oldest.first() else { return Ok(false) };
        let key = [&place[..], order].concat();
        session.change_one(&self.take, &key)?;
        let whose = session.row(&self.whose, &key)?;
        session.change_one(&self.carry, &[&[Value::from(input.carrier)], &key[..]].concat())?;
        if session.execute(&self.deliver, &key)? == 0 {
            let order = whole(&order[0])?;
            return Err(BenchError::Wrong(format!("order {order} has no lines")));
        }
        let cost = session.row(&self.cost, &key)?;
        let values = [&cost[..], &place, &whose].concat();
        session.change_one(&self.owe, &values)?;
        Ok(true)
    }
}
