//! Stock-Level (specification 2.8): how many items of the district's last twenty orders are low.

use crate::client::{Command, Session, Value, whole};
use crate::error::BenchError;
use crate::random::Draw;
use crate::workload::Outcome;

const NEXT_ORDER: &str = "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
const SHORT: &str = "SELECT COUNT(DISTINCT s_i_id) FROM order_line \
     JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?";
const ORDERS: i64 = 20;

/// Input of a terminal, which belongs to one district.
#[derive(Debug)]
pub(crate) struct Input {
    warehouse: i64,
    district: i64,
    threshold: i64,
}

impl Input {
    pub(crate) fn draw(draw: &mut Draw, (warehouse, district): (i64, i64)) -> Input {
        Input { warehouse, district, threshold: draw.between(10, 20) }
    }
}

/// The transaction's commands in one session.
pub(crate) struct StockLevel {
    next_order: Command,
    short: Command,
}

impl StockLevel {
    pub(crate) fn prepare(session: &mut Session) -> Result<StockLevel, BenchError> {
        Ok(StockLevel { next_order: session.prepare(NEXT_ORDER)?, short: session.prepare(SHORT)? })
    }

    /// Runs in an open transaction.
    pub(crate) fn run(&self, session: &mut Session, input: &Input) -> Result<Outcome, BenchError> {
        let place = [input.warehouse, input.district].map(Value::from);
        let next = whole(&session.row(&self.next_order, &place)?[0])?;
        let range = [next - ORDERS, next, input.threshold].map(Value::from);
        session.row(&self.short, &[&place[..], &range].concat())?;
        Ok(Outcome::Done)
    }
}
