//! TPC-C: order entry in warehouses, five transactions (TPC Benchmark C, revision 5.11).
//!
//! ```text
//!   terminal ── new_order 45 ─ payment 43 ─ order_status 4 ─ delivery 4 ─ stock_level 4 ──► warehouse
//! ```
//!
//! A connection is a terminal of one warehouse. Departures from the specification: transactions are
//! drawn by weight instead of from a shuffled deck, deliveries are not queued, and no screens are
//! filled. Keying and think times are off by default; a result without them is not tpmC in the
//! sense of the specification, but is commonly called so. Foreign keys are not declared; the
//! specification does not require them.

mod check;
mod customer;
mod delivery;
mod input;
mod load;
mod new_order;
mod order_status;
mod payment;
mod schema;
mod stock_level;

use std::time::Duration;

pub use self::input::Scale;

use self::delivery::Delivery;
use self::input::{Constants, DISTRICTS};
use self::new_order::NewOrder;
use self::order_status::OrderStatus;
use self::payment::Payment;
use self::stock_level::StockLevel;
use crate::client::{Session, Target};
use crate::error::BenchError;
use crate::load::{LoadOptions, load as load_parts, make_tables};
use crate::random::Draw;
use crate::workload::{Case, Condition, Counted, Next, Outcome, Suite, Worker};

/// The kinds, in the order of their indexes.
const KINDS: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];
const NEW_ORDER: usize = 0;
/// Weights of the kinds: the specification's minimum shares, and new orders for the rest (5.2.3).
pub const MIX: [u32; 5] = [45, 43, 4, 4, 4];
/// Seconds for entering the input (5.2.5.7).
const KEYING_SECONDS: [u64; 5] = [18, 3, 2, 2, 2];
/// Mean seconds of thinking afterwards (5.2.5.7).
const THINK_SECONDS: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];

#[derive(Debug, Clone, Copy)]
pub struct Tpcc {
    pub scale: Scale,
    /// Weights of the kinds.
    pub mix: [u32; 5],
    /// Whether terminals wait as people would.
    pub thinks: bool,
    /// Determines the data.
    pub seed: u64,
}

impl Suite for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn setup(&self) -> String {
        let pauses =
            if self.thinks { "keying and think times" } else { "no keying or think times" };
        let [new_order, payment, status, delivery, level] = self.mix;
        format!(
            "TPC-C of {} warehouses, {pauses}; mix {new_order}/{payment}/{status}/{delivery}/{level} of \
             new_order/payment/order_status/delivery/stock_level.",
            self.scale.warehouses
        )
    }

    fn prepare(&self, target: &Target, options: &LoadOptions) -> Result<u64, BenchError> {
        let mut session = make_tables(target, &self.tables(), &schema::DEFINITIONS)?;
        let loaded =
            load_parts(target, options, "tpcc", load::size(&self.scale), |part, sink, loading| {
                load::fill(&self.scale, self.seed, part, sink, loading)
            })?;
        session.ask(&format!("ANALYZE TABLE {}", schema::TABLES.join(", ")))?;
        Ok(loaded)
    }

    fn check(&self, target: &Target) -> Result<Vec<Condition>, BenchError> {
        check::check(target)
    }

    fn tables(&self) -> Vec<String> {
        schema::TABLES.map(str::to_owned).to_vec()
    }

    fn cases(&self) -> Vec<Box<dyn Case>> {
        vec![Box::new(*self)]
    }
}

impl Case for Tpcc {
    fn label(&self) -> String {
        "tpcc".to_owned()
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    fn worker(
        &self,
        target: &Target,
        number: usize,
        seed: u64,
    ) -> Result<Box<dyn Worker>, BenchError> {
        Ok(Box::new(Terminal::open(self, target, number as i64, seed)?))
    }

    fn counted(&self) -> Option<Counted> {
        Some(Counted { kind: NEW_ORDER, name: "tpmC", seconds: 60 })
    }
}

enum Input {
    NewOrder(new_order::Input),
    Payment(payment::Input),
    OrderStatus(order_status::Input),
    Delivery(delivery::Input),
    StockLevel(stock_level::Input),
}

/// A terminal of one warehouse.
struct Terminal {
    session: Session,
    draw: Draw,
    constants: Constants,
    tpcc: Tpcc,
    warehouse: i64,
    /// The terminal's district, for Stock-Level.
    district: i64,
    input: Option<Input>,
    new_order: NewOrder,
    payment: Payment,
    order_status: OrderStatus,
    delivery: Delivery,
    stock_level: StockLevel,
    /// The pause before the next transaction: thinking after the last one, and keying.
    thought: Duration,
}

impl Terminal {
    fn open(tpcc: &Tpcc, target: &Target, number: i64, seed: u64) -> Result<Terminal, BenchError> {
        let mut session = target.connect()?;
        // One set of constants for all terminals (2.1.6.1).
        let constants = Constants::of_run(&mut Draw::new(seed, u64::MAX));
        let warehouses = tpcc.scale.warehouses;
        Ok(Terminal {
            new_order: NewOrder::prepare(&mut session)?,
            payment: Payment::prepare(&mut session)?,
            order_status: OrderStatus::prepare(&mut session)?,
            delivery: Delivery::prepare(&mut session)?,
            stock_level: StockLevel::prepare(&mut session)?,
            session,
            draw: Draw::new(seed, number as u64),
            constants,
            tpcc: *tpcc,
            warehouse: number % warehouses + 1,
            district: number / warehouses % DISTRICTS + 1,
            input: None,
            thought: Duration::ZERO,
        })
    }

    fn run(&mut self) -> Result<Outcome, BenchError> {
        let session = &mut self.session;
        match self.input.as_ref().expect("a transaction was drawn") {
            Input::NewOrder(input) => self.new_order.run(session, input),
            Input::Payment(input) => self.payment.run(session, input),
            Input::OrderStatus(input) => self.order_status.run(session, input),
            Input::Delivery(input) => self.delivery.run(session, input),
            Input::StockLevel(input) => self.stock_level.run(session, input),
        }
    }

    fn pause(&mut self, kind: usize) -> Duration {
        if !self.tpcc.thinks {
            return Duration::ZERO;
        }
        let thinking = Duration::from_secs_f64(self.draw.exponential(THINK_SECONDS[kind]));
        let thought = std::mem::replace(&mut self.thought, thinking);
        thought + Duration::from_secs(KEYING_SECONDS[kind])
    }
}

impl Worker for Terminal {
    fn next(&mut self) -> Next {
        let kind = self.draw.weighted(&self.tpcc.mix);
        let (scale, home) = (self.tpcc.scale, self.warehouse);
        let (draw, constants) = (&mut self.draw, &self.constants);
        self.input = Some(match kind {
            NEW_ORDER => Input::NewOrder(new_order::Input::draw(draw, constants, &scale, home)),
            1 => Input::Payment(payment::Input::draw(draw, constants, &scale, home)),
            2 => Input::OrderStatus(order_status::Input::draw(draw, constants, &scale, home)),
            3 => Input::Delivery(delivery::Input::draw(draw, home)),
            _ => Input::StockLevel(stock_level::Input::draw(draw, (home, self.district))),
        });
        Next { kind, pause: self.pause(kind) }
    }

    fn attempt(&mut self) -> Result<Outcome, BenchError> {
        self.session.run("BEGIN")?;
        let outcome = self.run()?;
        let is_rolled_back =
            outcome == Outcome::Fruitless && matches!(self.input, Some(Input::NewOrder(_)));
        self.session.run(if is_rolled_back { "ROLLBACK" } else { "COMMIT" })?;
        Ok(outcome)
    }

    fn take_back(&mut self) -> Result<(), BenchError> {
        self.session.run("ROLLBACK")
    }
}
