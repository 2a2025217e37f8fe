//! New-Order (specification 2.4): an order of five to fifteen lines. The district's row supplies
//! the order's number, so the orders of a district are serial. One in a hundred orders names an
//! item that does not exist, and is rolled back.

use super::input::{Constants, Scale, other_warehouse};
use crate::client::{Command, Session, Value, hundredths, text, whole};
use crate::error::BenchError;
use crate::random::Draw;
use crate::workload::Outcome;

const NEXT_ORDER: &str =
    "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE";
const TAKE_ORDER: &str =
    "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?";
const CUSTOMER: &str = "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
const ORDER: &str = "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
     VALUES (?, ?, ?, ?, NOW(), ?, ?)";
const NEW_ORDER: &str = "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)";
const ITEM: &str = "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?";
const CHANGE_STOCK: &str = "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
     s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?";
const LINE: &str = "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, \
     ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// The stock has one text column for each district.
fn stock_sql(district: usize) -> String {
    format!(
        "SELECT s_quantity, s_data, s_dist_{district:02} FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"
    )
}

#[derive(Debug)]
struct Line {
    item: i64,
    supplier: i64,
    quantity: i64,
}

/// Input of a terminal.
#[derive(Debug)]
pub(crate) struct Input {
    warehouse: i64,
    district: i64,
    customer: i64,
    lines: Vec<Line>,
}

impl Input {
    pub(crate) fn draw(
        draw: &mut Draw,
        constants: &Constants,
        scale: &Scale,
        warehouse: i64,
    ) -> Input {
        let (district, count) = (draw.between(1, 10), draw.between(5, 15));
        let customer = constants.customer(draw, scale);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                item: constants.item(draw, scale),
                supplier: match draw.percent(1.0) {
                    true => other_warehouse(draw, warehouse, scale),
                    false => warehouse,
                },
                quantity: draw.between(1, 10),
            })
            .collect();
        if draw.percent(1.0)
            && let Some(last) = lines.last_mut()
        {
            last.item = scale.items + 1;
        }
        Input { warehouse, district, customer, lines }
    }

    fn is_local(&self) -> bool {
        self.lines.iter().all(|line| line.supplier == self.warehouse)
    }
}

/// The transaction's commands in one session.
pub(crate) struct NewOrder {
    next_order: Command,
    take_order: Command,
    customer: Command,
    order: Command,
    new_order: Command,
    item: Command,
    stock: Vec<Command>,
    change_stock: Command,
    line: Command,
}

impl NewOrder {
    pub(crate) fn prepare(session: &mut Session) -> Result<NewOrder, BenchError> {
        let stock: Result<Vec<_>, _> =
            (1..=10).map(|district| session.prepare(&stock_sql(district))).collect();
        Ok(NewOrder {
            next_order: session.prepare(NEXT_ORDER)?,
            take_order: session.prepare(TAKE_ORDER)?,
            customer: session.prepare(CUSTOMER)?,
            order: session.prepare(ORDER)?,
            new_order: session.prepare(NEW_ORDER)?,
            item: session.prepare(ITEM)?,
            stock: stock?,
            change_stock: session.prepare(CHANGE_STOCK)?,
            line: session.prepare(LINE)?,
        })
    }

    /// Runs in an open transaction; the caller rolls back after [`Outcome::Fruitless`].
    pub(crate) fn run(&self, session: &mut Session, input: &Input) -> Result<Outcome, BenchError> {
        let place = [Value::from(input.warehouse), Value::from(input.district)];
        // Locks the contended row first. A transaction that waits here has not yet read anything
        // that could change.
        let next = session.row(&self.next_order, &place)?;
        let order = whole(&next[0])?;
        session.change_one(&self.take_order, &place)?;
        let [warehouse, district] = place.clone();
        session.row(&self.customer, &[warehouse, district, input.customer.into()])?;
        self.insert_order(session, input, order)?;
        for (index, line) in input.lines.iter().enumerate() {
            if !self.add_line(session, input, order, (index as i64 + 1, line))? {
                return Ok(Outcome::Fruitless);
            }
        }
        Ok(Outcome::Done)
    }

    fn insert_order(
        &self,
        session: &mut Session,
        input: &Input,
        order: i64,
    ) -> Result<(), BenchError> {
        let (count, local) = (input.lines.len() as i64, i64::from(input.is_local()));
        let key = [input.warehouse, input.district, order].map(Value::from);
        let rest = [input.customer, count, local].map(Value::from);
        session.change_one(&self.order, &[&key[..], &rest].concat())?;
        session.change_one(&self.new_order, &key)
    }

    /// Adds a line; false if there is no such item.
    fn add_line(
        &self,
        session: &mut Session,
        input: &Input,
        order: i64,
        (number, line): (i64, &Line),
    ) -> Result<bool, BenchError> {
        let found = session.rows(&self.item, &[line.item.into()])?;
        let Some(item) = found.first() else { return Ok(false) };
        let price = hundredths(&item[0])?;
        let stock_key = [Value::from(line.supplier), Value::from(line.item)];
        let stock = session.row(&self.stock[input.district as usize - 1], &stock_key)?;
        let left = quantity_left(whole(&stock[0])?, line.quantity);
        let remote = i64::from(line.supplier != input.warehouse);
        let changes = [left, line.quantity, remote].map(Value::from);
        session.change_one(&self.change_stock, &[&changes[..], &stock_key].concat())?;
        let key = [input.warehouse, input.district, order, number].map(Value::from);
        let rest = [
            line.item.into(),
            line.supplier.into(),
            line.quantity.into(),
            crate::client::amount(price * line.quantity).into(),
            text(&stock[2]).into(),
        ];
        session.change_one(&self.line, &[&key[..], &rest].concat())?;
        Ok(true)
    }
}

/// Stock increases by 91 when fewer than ten would be left (2.4.2.2).
fn quantity_left(quantity: i64, ordered: i64) -> i64 {
    if quantity >= ordered + 10 { quantity - ordered } else { quantity - ordered + 91 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_filled_up() {
        assert_eq!(
            [quantity_left(20, 10), quantity_left(19, 10), quantity_left(10, 10)],
            [10, 100, 91]
        );
    }

    #[test]
    fn one_order_in_a_hundred_names_no_item_and_one_line_in_a_hundred_is_remote() {
        let (scale, mut draw) = (Scale::of(3), Draw::new(5, 0));
        let constants = Constants::of_run(&mut draw);
        let orders: Vec<_> =
            (0..20_000).map(|_| Input::draw(&mut draw, &constants, &scale, 2)).collect();
        let wrong =
            orders.iter().filter(|order| order.lines.iter().any(|line| line.item > scale.items));
        let wrong = wrong.count();
        assert!((140..260).contains(&wrong), "{wrong}");
        let lines = orders.iter().flat_map(|order| &order.lines);
        let (all, remote) = lines
            .fold((0, 0), |(all, remote), line| (all + 1, remote + i32::from(line.supplier != 2)));
        let share = f64::from(remote) / f64::from(all);
        assert!((0.009..0.011).contains(&share), "{share}");
        let alone = Input::draw(&mut draw, &constants, &Scale::of(1), 1);
        assert!(alone.is_local());
    }
}
