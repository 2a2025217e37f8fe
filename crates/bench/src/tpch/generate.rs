//! The rows, by the distributions of the specification (4.2.3). They differ from those of TPC's own
//! program, so answers are compared with another engine over the same rows, not with published
//! ones.

use super::words::{
    COLORS, CONTAINERS, INSTRUCTIONS, MODES, NATIONS, PRIORITIES, REGIONS, SEGMENTS, TYPES,
    TextPool,
};
use crate::error::BenchError;
use crate::load::Sink;
use crate::progress::Loading;
use crate::random::Draw;

/// Row counts of the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) suppliers: i64,
    pub(crate) parts: i64,
    pub(crate) customers: i64,
    pub(crate) orders: i64,
    pub(crate) clerks: i64,
}

impl Sizes {
    /// Row counts for a scale factor.
    pub(crate) fn of(scale: f64) -> Sizes {
        let scaled = |rows: f64, least: i64| ((rows * scale).round() as i64).max(least);
        let suppliers = scaled(10_000.0, 80);
        Sizes {
            // With some small numbers divisible by three, the rule for a part's four suppliers
            // picks one twice.
            suppliers: if suppliers < 240 && suppliers % 3 == 0 {
                suppliers + 1
            } else {
                suppliers
            },
            parts: scaled(200_000.0, 40),
            customers: scaled(150_000.0, 30),
            orders: scaled(1_500_000.0, 100),
            clerks: scaled(1000.0, 1),
        }
    }

    /// A supplier of a part, by an index from 0 to 3. They are spread over all suppliers.
    fn supplier_of(&self, part: i64, index: i64) -> i64 {
        let count = self.suppliers;
        (part + index * (count / 4 + (part - 1) / count)) % count + 1
    }

    /// Approximate number of rows: an order has four lines on average.
    pub(crate) fn rows(&self) -> u64 {
        (30 + self.suppliers + self.parts * 5 + self.customers + self.orders * 5) as u64
    }
}

/// Orders, parts and other rows in one part of the load.
const PART_ROWS: i64 = 5000;

/// Generates the tables in parts.
pub(crate) struct Generator {
    pub(crate) sizes: Sizes,
    pub(crate) seed: u64,
    pub(crate) pool: TextPool,
}

fn parts_of(rows: i64) -> usize {
    ((rows + PART_ROWS - 1) / PART_ROWS) as usize
}

/// Days since the first order date, 1992-01-01.
const LAST_ORDER_DAY: i64 = 2405;
const TODAY: i64 = 1263;

/// The date of a day since 1992-01-01.
fn date(day: i64) -> String {
    let (mut year, mut left) = (1992, day);
    let is_leap = |year: i64| year % 4 == 0;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", left + 1)
}

/// The price of a part, in hundredths.
fn retail_price(part: i64) -> i64 {
    90_000 + (part / 10) % 20_001 + 100 * (part % 1000)
}

impl Generator {
    /// Number of parts of the load.
    pub(crate) fn parts(&self) -> usize {
        let sizes = &self.sizes;
        let tables = [sizes.suppliers, sizes.parts, sizes.customers, sizes.orders];
        1 + tables.into_iter().map(parts_of).sum::<usize>()
    }

    /// Writes the rows of a part.
    pub(crate) fn fill(
        &self,
        part: usize,
        sink: &mut Sink,
        loading: &Loading,
    ) -> Result<(), BenchError> {
        let mut draw = Draw::new(self.seed, part as u64);
        let Some(mut rest) = part.checked_sub(1) else {
            return self.fixed(&mut draw, sink, loading);
        };
        let sizes = self.sizes;
        type Fill =
            fn(&Generator, (i64, i64), &mut Draw, &mut Sink, &Loading) -> Result<(), BenchError>;
        let tables: [(i64, Fill); 4] = [
            (sizes.suppliers, Generator::suppliers),
            (sizes.customers, Generator::customers),
            (sizes.parts, Generator::parts_and_supplies),
            (sizes.orders, Generator::orders),
        ];
        for (rows, fill) in tables {
            if rest < parts_of(rows) {
                let first = rest as i64 * PART_ROWS + 1;
                return fill(
                    self,
                    (first, rows.min(first + PART_ROWS - 1)),
                    &mut draw,
                    sink,
                    loading,
                );
            }
            rest -= parts_of(rows);
        }
        Ok(())
    }

    fn fixed(&self, draw: &mut Draw, sink: &mut Sink, loading: &Loading) -> Result<(), BenchError> {
        let mut regions = sink.rows("region", loading)?;
        for (key, name) in REGIONS.iter().enumerate() {
            regions.whole(key as i64).word(name).word(self.pool.cut(draw, 31, 115)).end(sink)?;
        }
        regions.flush(sink)?;
        let mut nations = sink.rows("nation", loading)?;
        for (key, (name, region)) in NATIONS.iter().enumerate() {
            nations.whole(key as i64).word(name).whole(*region);
            nations.word(self.pool.cut(draw, 31, 114)).end(sink)?;
        }
        nations.flush(sink)
    }

    fn suppliers(
        &self,
        (first, last): (i64, i64),
        draw: &mut Draw,
        sink: &mut Sink,
        loading: &Loading,
    ) -> Result<(), BenchError> {
        let mut rows = sink.rows("supplier", loading)?;
        for key in first..=last {
            let nation = draw.between(0, 24);
            rows.whole(key).word(&format!("Supplier#{key:09}")).word(&draw.alphanumeric(10, 40));
            rows.whole(nation)
                .word(&phone(draw, nation))
                .hundredths(draw.between(-99_999, 999_999));
            rows.word(&self.supplier_comment(key, draw)).end(sink)?;
        }
        rows.flush(sink)
    }

    /// Five of ten thousand comments complain, and five recommend.
    fn supplier_comment(&self, key: i64, draw: &mut Draw) -> String {
        let mut comment = self.pool.cut(draw, 25, 100).to_owned();
        let what = match key % 2000 {
            7 => "Customer Complaints",
            1007 => "Customer Recommends",
            _ => return comment,
        };
        let at = draw.between(0, (comment.len() - what.len()) as i64) as usize;
        comment.replace_range(at..at + what.len(), what);
        comment
    }

    fn customers(
        &self,
        (first, last): (i64, i64),
        draw: &mut Draw,
        sink: &mut Sink,
        loading: &Loading,
    ) -> Result<(), BenchError> {
        let mut rows = sink.rows("customer", loading)?;
        for key in first..=last {
            let nation = draw.between(0, 24);
            rows.whole(key).word(&format!("Customer#{key:09}")).word(&draw.alphanumeric(10, 40));
            rows.whole(nation)
                .word(&phone(draw, nation))
                .hundredths(draw.between(-99_999, 999_999));
            rows.word(draw.pick(&SEGMENTS)).word(self.pool.cut(draw, 29, 116)).end(sink)?;
        }
        rows.flush(sink)
    }

    fn parts_and_supplies(
        &self,
        (first, last): (i64, i64),
        draw: &mut Draw,
        sink: &mut Sink,
        loading: &Loading,
    ) -> Result<(), BenchError> {
        let mut rows = sink.rows("part", loading)?;
        let mut supplies = sink.rows("partsupp", loading)?;
        for key in first..=last {
            let (maker, brand) = (draw.between(1, 5), draw.between(1, 5));
            rows.whole(key).word(&part_name(draw)).word(&format!("Manufacturer#{maker}"));
            rows.word(&format!("Brand#{maker}{brand}"));
            let kind = TYPES.map(|words| draw.pick(words)).join(" ");
            rows.word(&kind).whole(draw.between(1, 50));
            rows.word(&CONTAINERS.map(|words| draw.pick(words)).join(" "));
            rows.hundredths(retail_price(key)).word(self.pool.cut(draw, 5, 22)).end(sink)?;
            for index in 0..4 {
                supplies
                    .whole(key)
                    .whole(self.sizes.supplier_of(key, index))
                    .whole(draw.between(1, 9999));
                supplies.hundredths(draw.between(100, 100_000));
                supplies.word(self.pool.cut(draw, 49, 198)).end(sink)?;
            }
        }
        rows.flush(sink)?;
        supplies.flush(sink)
    }

    /// One customer in three never orders.
    fn customer(&self, draw: &mut Draw) -> i64 {
        loop {
            let key = draw.between(1, self.sizes.customers);
            if key % 3 != 0 {
                return key;
            }
        }
    }

    fn orders(
        &self,
        (first, last): (i64, i64),
        draw: &mut Draw,
        sink: &mut Sink,
        loading: &Loading,
    ) -> Result<(), BenchError> {
        let mut rows = sink.rows("orders", loading)?;
        let mut lines = sink.rows("lineitem", loading)?;
        for number in first..=last {
            let day = draw.between(0, LAST_ORDER_DAY);
            let order: Vec<Line> = (0..draw.between(1, 7)).map(|_| self.line(draw, day)).collect();
            let open = order.iter().filter(|line| line.is_open()).count();
            let status = match open {
                0 => "F",
                open if open == order.len() => "O",
                _ => "P",
            };
            let key = order_key(number);
            rows.whole(key).whole(self.customer(draw)).word(status);
            rows.hundredths(order.iter().map(Line::charge).sum()).word(&date(day));
            rows.word(draw.pick(&PRIORITIES));
            rows.word(&format!("Clerk#{:09}", draw.between(1, self.sizes.clerks))).whole(0);
            rows.word(self.pool.cut(draw, 19, 78)).end(sink)?;
            for (index, line) in order.iter().enumerate() {
                lines.whole(key).whole(line.part).whole(line.supplier).whole(index as i64 + 1);
                lines.hundredths(line.quantity * 100).hundredths(line.price);
                lines.hundredths(line.discount).hundredths(line.tax);
                lines.word(line.return_flag).word(if line.is_open() { "O" } else { "F" });
                lines.word(&date(line.shipped)).word(&date(line.committed));
                lines
                    .word(&date(line.received))
                    .word(draw.pick(&INSTRUCTIONS))
                    .word(draw.pick(&MODES));
                lines.word(self.pool.cut(draw, 10, 43)).end(sink)?;
            }
        }
        rows.flush(sink)?;
        lines.flush(sink)
    }

    fn line(&self, draw: &mut Draw, day: i64) -> Line {
        let (part, quantity) = (draw.between(1, self.sizes.parts), draw.between(1, 50));
        let shipped = day + draw.between(1, 121);
        let received = shipped + draw.between(1, 30);
        Line {
            part,
            supplier: self.sizes.supplier_of(part, draw.between(0, 3)),
            quantity,
            price: quantity * retail_price(part),
            discount: draw.between(0, 10),
            tax: draw.between(0, 8),
            shipped,
            committed: day + draw.between(30, 90),
            received,
            return_flag: match received <= TODAY {
                true => draw.pick(&["R", "A"]),
                false => "N",
            },
        }
    }
}

/// Eight of each 32 keys are used (4.2.3).
fn order_key(number: i64) -> i64 {
    (number - 1) / 8 * 32 + (number - 1) % 8 + 1
}

struct Line {
    part: i64,
    supplier: i64,
    quantity: i64,
    price: i64,
    discount: i64,
    tax: i64,
    shipped: i64,
    committed: i64,
    received: i64,
    return_flag: &'static str,
}

impl Line {
    fn is_open(&self) -> bool {
        self.shipped > TODAY
    }

    /// The price with discount and tax in hundredths. Each product is truncated.
    fn charge(&self) -> i64 {
        self.price * (100 - self.discount) / 100 * (100 + self.tax) / 100
    }
}

fn phone(draw: &mut Draw, nation: i64) -> String {
    let (area, office, number) =
        (draw.between(100, 999), draw.between(100, 999), draw.between(1000, 9999));
    format!("{}-{area}-{office}-{number}", nation + 10)
}

fn part_name(draw: &mut Draw) -> String {
    let mut words: Vec<&str> = Vec::new();
    while words.len() < 5 {
        let word = draw.pick(&COLORS);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests;
