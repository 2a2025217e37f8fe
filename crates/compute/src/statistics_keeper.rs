//! Keeps the planner's statistics fresh: reads written tables again, beside the clients' work.
//! Removes old notes of commits too.
//!
//! ```text
//!   every 10 s:  tables with a tenth of their rows written since ──► ANALYZE, one after the other
//!                                                                       └─► plans are made again
//! ```
//!
//! A table about which nothing is known is read at a quarter of a core: after each slice the task
//! sleeps three times as long as the slice took. A table whose statistics have only aged is read at
//! a fiftieth, beside the clients that write to it. `innodb_stats_auto_recalc = OFF` stops it. A
//! table that cannot be read is tried again in the next round.
//!
//! Rule: no lock is held while a table is read or the task sleeps.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_sql::catalog::analyze::analyze_table;
use firn_sql::catalog::model::TableModel;
use firn_sql::catalog::statistics;
use firn_sql::types::EvaluationContext;

use crate::instance::Instance;
use crate::variables::Setting;

/// How often the keeper looks.
const INTERVAL: Duration = Duration::from_secs(10);
/// How often old notes of commits are removed.
const CLEARING_INTERVAL: Duration = Duration::from_secs(600);
/// Ratio of sleep to work, for a table without statistics.
const FIRST_SLEEP_RATIO: u32 = 3;
/// The same for a table that has some.
const SLEEP_RATIO: u32 = 49;

#[derive(Debug, Default)]
struct Stop {
    is_asked: AtomicBool,
    event: Event,
}

/// The task. Dropping it ends it and waits until it has ended.
pub struct StatisticsKeeper {
    stop: Arc<Stop>,
    task: Option<Box<dyn TaskHandle>>,
}

impl StatisticsKeeper {
    /// Starts the task for a server.
    #[must_use]
    pub fn start(environment: &Environment, instance: Arc<Instance>) -> StatisticsKeeper {
        let stop = Arc::new(Stop::default());
        let asked = Arc::clone(&stop);
        let body = move || {
            let mut definitions_version = instance.catalog.definitions_version();
            let clock = Arc::clone(&instance.facts.environment.clock);
            let mut cleared = clock.monotonic();
            while asked.wait(INTERVAL) {
                if clock.monotonic().saturating_sub(cleared) >= CLEARING_INTERVAL {
                    cleared = clock.monotonic();
                    clear_notes(&instance);
                }
                instance.left.end_forgotten();
                let version = instance.catalog.definitions_version();
                if std::mem::replace(&mut definitions_version, version) != version {
                    forget_dropped(&instance);
                }
                refresh(&instance, &|duration| asked.wait(duration));
            }
        };
        let task = environment.spawner.spawn("statistics", Box::new(body));
        StatisticsKeeper { stop, task: Some(task) }
    }
}

impl Drop for StatisticsKeeper {
    fn drop(&mut self) {
        self.stop.is_asked.store(true, Ordering::Release);
        self.stop.event.notify_all();
        if let Some(task) = self.task.take() {
            task.join();
        }
    }
}

impl Stop {
    fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire)
    }

    /// Waits; false if the task must end.
    fn wait(&self, duration: Duration) -> bool {
        self.event.wait_until(Some(duration), || self.is_asked());
        !self.is_asked()
    }
}

fn clear_notes(instance: &Instance) {
    let now_ms = instance.facts.environment.clock.wall_time_ms();
    if let Err(error) = instance.commits.forget_old(now_ms) {
        tracing::debug!(%error, "old notes of commits stay");
    }
}

/// Removes the statistics of tables that are gone.
fn forget_dropped(instance: &Instance) {
    if let Err(error) = statistics::remove_gone(instance.catalog.node()) {
        tracing::debug!(%error, "statistics of dropped tables stay");
    }
}

/// Gathers the statistics of all tables whose statistics are stale, unless
/// `innodb_stats_auto_recalc` is off. After each slice of rows, calls `pause` with the time to
/// wait; false ends it all. Blocks.
pub fn refresh(instance: &Instance, pause: &dyn Fn(Duration) -> bool) {
    if instance.variables.get("innodb_stats_auto_recalc") == Some(Setting::Number(0)) {
        return;
    }
    for table in instance.catalog.stale_tables() {
        if !pause(Duration::ZERO) {
            return;
        }
        match gather(instance, pause, &table) {
            Ok(()) => instance.statistics_gathered(table.id),
            Err(error) => {
                tracing::debug!(%error, schema = &*table.schema, table = &*table.name, "statistics stay");
            }
        }
    }
}

fn gather(
    instance: &Instance,
    pause: &dyn Fn(Duration) -> bool,
    table: &Arc<TableModel>,
) -> firn_sql::error::Result<()> {
    let is_first = table.statistics.gathered().is_none();
    let sleep_ratio = if is_first { FIRST_SLEEP_RATIO } else { SLEEP_RATIO };
    let clock = &instance.facts.environment.clock;
    let slice_began = Cell::new(clock.monotonic());
    let go_on = || {
        let took = clock.monotonic().saturating_sub(slice_began.get());
        let goes_on = pause(took * sleep_ratio);
        slice_began.set(clock.monotonic());
        goes_on
    };
    let evaluation = EvaluationContext::default();
    analyze_table(&instance.catalog, table, &evaluation, &go_on)
}
