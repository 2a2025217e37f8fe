//! Order-Status (specification 2.6): a customer's last order and its lines.

use super::customer::FindCustomer;
use super::input::{ByWhat, Constants, Scale, customer};
use crate::client::{Command, Session, Value, whole};
use crate::error::BenchError;
use crate::random::Draw;
use crate::workload::Outcome;

const CUSTOMER: &str = "SELECT c_balance, c_first, c_middle, c_last FROM customer \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
const LAST_ORDER: &str = "SELECT o_id, o_entry_d, o_carrier_id, o_ol_cnt FROM orders \
     WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";
const LINES: &str = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";

/// Input of a terminal.
#[derive(Debug)]
pub(crate) struct Input {
    warehouse: i64,
    district: i64,
    customer: ByWhat,
}

impl Input {
    pub(crate) fn draw(
        draw: &mut Draw,
        constants: &Constants,
        scale: &Scale,
        warehouse: i64,
    ) -> Input {
        let district = draw.between(1, 10);
        Input { warehouse, district, customer: customer(draw, constants, scale) }
    }
}

/// The transaction's commands in one session.
pub(crate) struct OrderStatus {
    find: FindCustomer,
    customer: Command,
    last_order: Command,
    lines: Command,
}

impl OrderStatus {
    pub(crate) fn prepare(session: &mut Session) -> Result<OrderStatus, BenchError> {
        Ok(OrderStatus {
            find: FindCustomer::prepare(session)?,
            customer: session.prepare(CUSTOMER)?,
            last_order: session.prepare(LAST_ORDER)?,
            lines: session.prepare(LINES)?,
        })
    }

    /// Runs in an open transaction.
    pub(crate) fn run(&self, session: &mut Session, input: &Input) -> Result<Outcome, BenchError> {
        let place = (input.warehouse, input.district);
        let id = self.find.id(session, place, &input.customer)?;
        let key = [input.warehouse, input.district, id].map(Value::from);
        session.row(&self.customer, &key)?;
        // Every customer has an order from the load.
        let order = session.row(&self.last_order, &key)?;
        let [warehouse, district, _] = key;
        let lines = session.rows(&self.lines, &[warehouse, district, order[0].clone()])?;
        if lines.len() as i64 != whole(&order[3])? {
            let found = lines.len();
            let expected = order[3].as_sql(false);
            return Err(BenchError::Wrong(format!("an order of {expected} lines has {found}")));
        }
        Ok(Outcome::Done)
    }
}
