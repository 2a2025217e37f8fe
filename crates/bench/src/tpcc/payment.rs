//! Payment (specification 2.5): a customer pays. Warehouse, district and customer update their
//! sums, and the history gets a row. Three in twenty customers belong to another warehouse.

use super::customer::FindCustomer;
use super::input::{ByWhat, Constants, Scale, customer, other_warehouse};
use crate::client::{Command, Session, Value, amount, text};
use crate::error::BenchError;
use crate::random::Draw;
use crate::workload::Outcome;

const PAY_WAREHOUSE: &str = "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?";
const WAREHOUSE: &str =
    "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?";
const PAY_DISTRICT: &str = "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?";
const DISTRICT: &str = "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
     WHERE d_w_id = ? AND d_id = ?";
const CUSTOMER: &str = "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
     c_since, c_credit, c_credit_lim, c_discount, c_balance FROM customer \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE";
const CREDIT: usize = 10;
const PAY: &str = "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
     c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
const PAY_BAD_CREDIT: &str = "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
     c_payment_cnt = c_payment_cnt + 1, c_data = LEFT(CONCAT(?, c_data), 500) \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
const HISTORY: &str = "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
     VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)";

/// Input of a terminal.
#[derive(Debug)]
pub(crate) struct Input {
    warehouse: i64,
    district: i64,
    customer_warehouse: i64,
    customer_district: i64,
    customer: ByWhat,
    hundredths: i64,
}

impl Input {
    pub(crate) fn draw(
        draw: &mut Draw,
        constants: &Constants,
        scale: &Scale,
        warehouse: i64,
    ) -> Input {
        let district = draw.between(1, 10);
        let (customer_warehouse, customer_district) = match draw.percent(15.0) {
            true => (other_warehouse(draw, warehouse, scale), draw.between(1, 10)),
            false => (warehouse, district),
        };
        Input {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer: customer(draw, constants, scale),
            hundredths: draw.between(100, 500_000),
        }
    }
}

/// The transaction's commands in one session.
pub(crate) struct Payment {
    pay_warehouse: Command,
    warehouse: Command,
    pay_district: Command,
    district: Command,
    find: FindCustomer,
    customer: Command,
    pay: Command,
    pay_bad_credit: Command,
    history: Command,
}

impl Payment {
    pub(crate) fn prepare(session: &mut Session) -> Result<Payment, BenchError> {
        Ok(Payment {
            pay_warehouse: session.prepare(PAY_WAREHOUSE)?,
            warehouse: session.prepare(WAREHOUSE)?,
            pay_district: session.prepare(PAY_DISTRICT)?,
            district: session.prepare(DISTRICT)?,
            find: FindCustomer::prepare(session)?,
            customer: session.prepare(CUSTOMER)?,
            pay: session.prepare(PAY)?,
            pay_bad_credit: session.prepare(PAY_BAD_CREDIT)?,
            history: session.prepare(HISTORY)?,
        })
    }

    /// Runs in an open transaction.
    pub(crate) fn run(&self, session: &mut Session, input: &Input) -> Result<Outcome, BenchError> {
        let paid = Value::from(amount(input.hundredths));
        let (home, district) = (Value::from(input.warehouse), Value::from(input.district));
        session.change_one(&self.pay_warehouse, &[paid.clone(), home.clone()])?;
        let warehouse = session.row(&self.warehouse, std::slice::from_ref(&home))?;
        session.change_one(&self.pay_district, &[paid.clone(), home.clone(), district.clone()])?;
        let place = session.row(&self.district, &[home, district])?;
        let customer_place = (input.customer_warehouse, input.customer_district);
        let id = self.find.id(session, customer_place, &input.customer)?;
        let key = [input.customer_warehouse, input.customer_district, id].map(Value::from);
        let customer = session.row(&self.customer, &key)?;
        let sums = [paid.clone(), paid.clone()];
        if text(&customer[CREDIT]) == "BC" {
            let note = [Value::from(credit_note(input, id))];
            session.change_one(&self.pay_bad_credit, &[&sums[..], &note, &key].concat())?;
        } else {
            session.change_one(&self.pay, &[&sums[..], &key].concat())?;
        }
        let about = format!("{}    {}", text(&warehouse[0]), text(&place[0]));
        let ids = [
            id,
            input.customer_district,
            input.customer_warehouse,
            input.district,
            input.warehouse,
        ];
        let rest = [paid, Value::from(about)];
        session.change_one(&self.history, &[&ids.map(Value::from)[..], &rest].concat())?;
        Ok(Outcome::Done)
    }
}

/// The text that is kept for a customer with bad credit (2.5.2.2).
fn credit_note(input: &Input, id: i64) -> String {
    format!(
        "{id} {} {} {} {} {}|",
        input.customer_district,
        input.customer_warehouse,
        input.district,
        input.warehouse,
        amount(input.hundredths)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_in_twenty_payments_are_for_another_warehouse() {
        let (scale, mut draw) = (Scale::of(4), Draw::new(5, 0));
        let constants = Constants::of_run(&mut draw);
        let inputs = (0..20_000).map(|_| Input::draw(&mut draw, &constants, &scale, 2));
        let remote = inputs.filter(|input| input.customer_warehouse != 2).count();
        assert!((2_800..3_200).contains(&remote), "{remote}");
    }
}
