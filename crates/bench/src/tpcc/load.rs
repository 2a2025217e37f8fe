//! The initial population (specification 4.3.3.1).
//!
//! Parts: the items, then for each warehouse its row and stock, then for each district its
//! customers and their orders.

use super::input::{Constants, DISTRICTS, Scale, last_name};
use crate::error::BenchError;
use crate::load::Sink;
use crate::progress::Loading;
use crate::random::Draw;

/// The time of everything that happened before a run. Its value does not matter.
const LONG_AGO: &str = "2026-01-01 00:00:00";
const PARTS_PER_WAREHOUSE: usize = 1 + DISTRICTS as usize;

/// Number of parts, and their approximate number of rows.
pub(crate) fn size(scale: &Scale) -> (usize, u64) {
    let (warehouses, customers) = (scale.warehouses as u64, scale.customers as u64);
    // Customer, history, order, ten order lines, and three new orders for ten orders.
    let districts = warehouses * DISTRICTS as u64 * (1 + customers * 133 / 10);
    let rows = scale.items as u64 * (1 + warehouses) + warehouses + districts;
    (1 + scale.warehouses as usize * PARTS_PER_WAREHOUSE, rows)
}

pub(crate) fn fill(
    scale: &Scale,
    seed: u64,
    part: usize,
    sink: &mut Sink,
    loading: &Loading,
) -> Result<(), BenchError> {
    let mut draw = Draw::new(seed, part as u64);
    let Some(rest) = part.checked_sub(1) else { return items(scale, &mut draw, sink, loading) };
    let warehouse = (rest / PARTS_PER_WAREHOUSE) as i64 + 1;
    match (rest % PARTS_PER_WAREHOUSE) as i64 {
        0 => {
            warehouse_row(scale, warehouse, &mut draw, sink, loading)?;
            stock(scale, warehouse, &mut draw, sink, loading)
        }
        district => {
            district_row(scale, (warehouse, district), &mut draw, sink, loading)?;
            customers(scale, (warehouse, district), &mut draw, sink, loading)?;
            orders(scale, (warehouse, district), &mut draw, sink, loading)
        }
    }
}

/// A text that contains ORIGINAL in one row out of ten.
fn data(draw: &mut Draw) -> String {
    const MARK: &str = "ORIGINAL";
    let mut text = draw.alphanumeric(26, 50);
    if draw.percent(10.0) {
        let at = draw.between(0, (text.len() - MARK.len()) as i64) as usize;
        text.replace_range(at..at + MARK.len(), MARK);
    }
    text
}

fn items(
    scale: &Scale,
    draw: &mut Draw,
    sink: &mut Sink,
    loading: &Loading,
) -> Result<(), BenchError> {
    let mut rows = sink.rows("item", loading)?;
    for id in 1..=scale.items {
        let (image, price) = (draw.between(1, 10_000), draw.between(100, 10_000));
        rows.whole(id).whole(image).word(&draw.alphanumeric(14, 24)).hundredths(price);
        rows.word(&data(draw)).end(sink)?;
    }
    rows.flush(sink)
}

/// Two streets, a city, a state and a code.
fn address(draw: &mut Draw) -> [String; 5] {
    [
        draw.alphanumeric(10, 20),
        draw.alphanumeric(10, 20),
        draw.alphanumeric(10, 20),
        draw.drawn_from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 2),
        draw.digits(4) + "11111",
    ]
}

/// A customer's payments before a run, in hundredths.
const PAID: i64 = 1000;

fn warehouse_row(
    scale: &Scale,
    id: i64,
    draw: &mut Draw,
    sink: &mut Sink,
    loading: &Loading,
) -> Result<(), BenchError> {
    let mut rows = sink.rows("warehouse", loading)?;
    rows.whole(id).word(&draw.alphanumeric(6, 10));
    for field in address(draw) {
        rows.word(&field);
    }
    rows.ten_thousandths(draw.between(0, 2000)).hundredths(PAID * scale.customers * DISTRICTS);
    rows.end(sink)?;
    rows.flush(sink)
}

fn district_row(
    scale: &Scale,
    (warehouse, district): (i64, i64),
    draw: &mut Draw,
    sink: &mut Sink,
    loading: &Loading,
) -> Result<(), BenchError> {
    let mut rows = sink.rows("district", loading)?;
    rows.whole(warehouse).whole(district).word(&draw.alphanumeric(6, 10));
    for field in address(draw) {
        rows.word(&field);
    }
    rows.ten_thousandths(draw.between(0, 2000)).hundredths(PAID * scale.customers);
    rows.whole(scale.customers + 1).end(sink)?;
    rows.flush(sink)
}

fn stock(
    scale: &Scale,
    warehouse: i64,
    draw: &mut Draw,
    sink: &mut Sink,
    loading: &Loading,
) -> Result<(), BenchError> {
    let mut rows = sink.rows("stock", loading)?;
    for item in 1..=scale.items {
        rows.whole(warehouse).whole(item).whole(draw.between(10, 100));
        for _ in 0..DISTRICTS {
            rows.word(&draw.alphanumeric(24, 24));
        }
        rows.whole(0).whole(0).whole(0).word(&data(draw)).end(sink)?;
    }
    rows.flush(sink)
}

fn customers(
    scale: &Scale,
    (warehouse, district): (i64, i64),
    draw: &mut Draw,
    sink: &mut Sink,
    loading: &Loading,
) -> Result<(), BenchError> {
    let constants = Constants::of_load();
    let mut rows = sink.rows("customer", loading)?;
    let mut history = sink.rows("history", loading)?;
    for id in 1..=scale.customers {
        let last = match id <= scale.names() {
            true => last_name(id - 1),
            false => constants.last_name(draw, scale),
        };
        rows.whole(warehouse).whole(district).whole(id);
        rows.word(&draw.alphanumeric(8, 16)).word("OE").word(&last);
        for field in address(draw) {
            rows.word(&field);
        }
        rows.word(&draw.digits(16)).word(LONG_AGO);
        rows.word(if draw.percent(10.0) { "BC" } else { "GC" });
        rows.hundredths(5_000_000).ten_thousandths(draw.between(0, 5000));
        rows.hundredths(-PAID).hundredths(PAID).whole(1).whole(0);
        rows.word(&draw.alphanumeric(300, 500)).end(sink)?;
        history.whole(id).whole(district).whole(warehouse).whole(district).whole(warehouse);
        history.word(LONG_AGO).hundredths(PAID).word(&draw.alphanumeric(12, 24)).end(sink)?;
    }
    rows.flush(sink)?;
    history.flush(sink)
}

/// Customers in random order: each has one order.
fn shuffled(count: i64, draw: &mut Draw) -> Vec<i64> {
    let mut ids: Vec<i64> = (1..=count).collect();
    for last in (1..ids.len()).rev() {
        ids.swap(last, draw.between(0, last as i64) as usize);
    }
    ids
}

fn orders(
    scale: &Scale,
    (warehouse, district): (i64, i64),
    draw: &mut Draw,
    sink: &mut Sink,
    loading: &Loading,
) -> Result<(), BenchError> {
    let mut orders = sink.rows("orders", loading)?;
    let mut lines = sink.rows("order_line", loading)?;
    let mut new = sink.rows("new_order", loading)?;
    for (index, customer) in shuffled(scale.customers, draw).into_iter().enumerate() {
        let id = index as i64 + 1;
        let (is_delivered, count) = (id <= scale.delivered(), draw.between(5, 15));
        orders.whole(warehouse).whole(district).whole(id).whole(customer).word(LONG_AGO);
        match is_delivered {
            true => orders.whole(draw.between(1, 10)),
            false => orders.null(),
        };
        orders.whole(count).whole(1).end(sink)?;
        for number in 1..=count {
            lines.whole(warehouse).whole(district).whole(id).whole(number);
            lines.whole(draw.between(1, scale.items)).whole(warehouse);
            match is_delivered {
                true => lines.word(LONG_AGO).whole(5).hundredths(0),
                false => lines.null().whole(5).hundredths(draw.between(1, 999_999)),
            };
            lines.word(&draw.alphanumeric(24, 24)).end(sink)?;
        }
        if !is_delivered {
            new.whole(warehouse).whole(district).whole(id).end(sink)?;
        }
    }
    orders.flush(sink)?;
    lines.flush(sink)?;
    new.flush(sink)
}
