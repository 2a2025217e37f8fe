//! The tree format.
//!
//! ```text
//!   -> Sort: t.a DESC  (cost=12.4 rows=10)
//!       -> Table scan on t  (cost=11.5 rows=10)
//! ```

use std::fmt::Write;

use crate::visit::{for_each_expression, for_each_input};
use crate::{
    Access, Counters, NodeKind, PlanNode, PreparedPlan, QueryPlan, RangePlan, ScanPlan,
    StatementPlan, WindowPlan,
};
use firn_sql_logical::expression::{Expression, SortKey, Subquery};
use firn_sql_logical::{JoinKind, SetOperation};

use super::expression::{aggregate, conditions_text, list_text, text as expression_text};
use super::names::{Names, subqueries_of};

struct Writer<'p> {
    names: Names<'p>,
    plan: &'p PreparedPlan,
    counters: Option<&'p Counters>,
    out: String,
    /// Common tables that are already printed.
    written: Vec<usize>,
}

/// A plan as a tree.
pub(super) fn text(plan: &PreparedPlan, counters: Option<&Counters>) -> String {
    let mut writer =
        Writer { names: Names::of(plan), plan, counters, out: String::new(), written: Vec::new() };
    match &plan.statement {
        StatementPlan::Query(query) => writer.query(query, 0),
        StatementPlan::Insert(insert) => {
            writer.line(0, &format!("Insert into {}", insert.table.name));
            writer.query(&insert.source, 1);
        }
        StatementPlan::Update(update) => {
            let tables: Vec<&str> =
                update.targets.iter().map(|target| &*target.table.name).collect();
            let how = if update.gather_first { "gathered" } else { "immediate" };
            writer.line(0, &format!("Update {} ({how})", tables.join(", ")));
            writer.node(&update.source, 1);
        }
        StatementPlan::Delete(delete) => {
            let tables: Vec<&str> =
                delete.targets.iter().map(|target| &*target.table.name).collect();
            let how = if delete.gather_first { "gathered" } else { "immediate" };
            writer.line(0, &format!("Delete from {} ({how})", tables.join(", ")));
            writer.node(&delete.source, 1);
        }
    }
    writer.out
}

impl<'p> Writer<'p> {
    fn line(&mut self, depth: usize, title: &str) {
        let _ = writeln!(self.out, "{}-> {title}", "    ".repeat(depth));
    }

    fn query(&mut self, query: &'p QueryPlan, depth: usize) {
        self.node(&query.root, depth);
        let mut subqueries = Vec::new();
        query.columns.iter().for_each(|column| subqueries_of(&column.value, &mut subqueries));
        self.subqueries(&subqueries, "projection", depth);
    }

    fn node(&mut self, node: &'p PlanNode, depth: usize) {
        let title = format!("{}{}", self.title(node), self.numbers(node));
        self.line(depth, &title);
        match &node.kind {
            NodeKind::Derived { query, .. } => self.query(query, depth + 1),
            NodeKind::SetOperation { inputs, .. } => {
                inputs.iter().for_each(|input| self.query(input, depth + 1));
            }
            NodeKind::CommonTable { number, .. } => self.common_table(*number, depth + 1),
            _ => for_each_input(node, &mut |input| self.node(input, depth + 1)),
        }
        let mut subqueries = Vec::new();
        for_each_expression(node, &mut |expression| subqueries_of(expression, &mut subqueries));
        self.subqueries(&subqueries, "condition", depth);
    }

    fn subqueries(&mut self, subqueries: &[&'p Subquery], place: &str, depth: usize) {
        for subquery in subqueries {
            let plan = &self.plan.subqueries[subquery.number];
            let how = match plan.outer_slots.is_empty() {
                true => "run only once",
                false => "dependent",
            };
            self.line(depth, &format!("Select (subquery in {place}; {how})"));
            self.query(&plan.query, depth + 1);
        }
    }

    fn common_table(&mut self, number: usize, depth: usize) {
        let plan = self.plan;
        let Some(table) =
            plan.common_tables.get(number).filter(|_| !self.written.contains(&number))
        else {
            return;
        };
        self.written.push(number);
        let is_recursive = table.recursive.is_some();
        let title = if is_recursive { "Materialize recursive" } else { "Materialize" };
        self.line(depth, title);
        self.query(&table.query, depth + 1);
        if let Some(step) = &table.recursive {
            self.line(depth + 1, "Repeat until convergence");
            self.query(step, depth + 2);
        }
    }

    fn numbers(&self, node: &PlanNode) -> String {
        let mut numbers = format!("  (cost={} rows={})", short(node.cost), short(node.rows));
        if let Some(counters) = self.counters {
            let did = counters.of(node);
            if did.loops == 0 {
                numbers += " (never executed)";
            } else {
                let loops = did.loops as f64;
                let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1000.0 / loops;
                let _ = write!(
                    numbers,
                    " (actual time={:.3}..{:.3} rows={} loops={})",
                    milliseconds(did.first_row),
                    milliseconds(did.total),
                    short(did.rows as f64 / loops),
                    did.loops
                );
            }
        }
        numbers
    }

    fn title(&self, node: &PlanNode) -> String {
        let names = &self.names;
        match &node.kind {
            NodeKind::OneRow => "Rows fetched before execution".to_owned(),
            NodeKind::Empty => "Zero rows (no matching row can exist)".to_owned(),
            NodeKind::Values { rows, .. } => format!("Values: {} row(s)", rows.len()),
            NodeKind::Scan(scan) => self.scan(scan),
            NodeKind::Virtual { table, hints, .. } => {
                format!("Table scan on {} ({} hints)", table.name(), hints.len())
            }
            NodeKind::JsonTable { .. } => "Materialize table function".to_owned(),
            NodeKind::CommonTable { number, .. } => format!("Table scan on common table {number}"),
            NodeKind::Derived { lateral, .. } => {
                if *lateral { "Derived table (lateral)" } else { "Derived table" }.to_owned()
            }
            NodeKind::Filter { conditions, .. } => {
                format!("Filter: {}", conditions_text(conditions, names))
            }
            NodeKind::Compute { outputs, .. } => {
                let values = outputs.iter().map(|(_, value)| expression_text(value, names));
                format!("Compute: {}", values.collect::<Vec<_>>().join(", "))
            }
            NodeKind::NestedLoop { join, conditions, .. } => {
                let on = if conditions.is_empty() {
                    String::new()
                } else {
                    format!(" on {}", conditions_text(conditions, names))
                };
                format!("Nested loop {}{on}", join_name(*join))
            }
            NodeKind::HashJoin { join, keys, conditions, .. } => {
                let keys = keys.iter().map(|(left, right)| {
                    format!(
                        "({} = {})",
                        expression_text(left, names),
                        expression_text(right, names)
                    )
                });
                let extra = if conditions.is_empty() {
                    String::new()
                } else {
                    format!(", extra {}", conditions_text(conditions, names))
                };
                format!("Hash {} {}{extra}", join_name(*join), keys.collect::<Vec<_>>().join(", "))
            }
            NodeKind::Aggregate { groups, aggregates, sorted, rollup, .. } => {
                let groups: Vec<String> =
                    groups.iter().map(|(_, value)| expression_text(value, names)).collect();
                let calls: Vec<String> =
                    aggregates.iter().map(|call| aggregate(call, names)).collect();
                let how = match (groups.is_empty(), sorted) {
                    (true, _) => "Aggregate",
                    (false, true) => "Group aggregate",
                    (false, false) => "Hash aggregate",
                };
                let by = if groups.is_empty() {
                    String::new()
                } else {
                    format!(" by {}", groups.join(", "))
                };
                let rollup = if rollup.is_some() { " with rollup" } else { "" };
                format!("{how}{by}{rollup}: {}", calls.join(", "))
            }
            NodeKind::Window(window) => self.window(window),
            NodeKind::Sort { keys, limit, .. } => {
                let top = limit.as_ref().map_or_else(String::new, |limit| {
                    format!(", limit {}", expression_text(limit, names))
                });
                format!("Sort: {}{top}", self.keys(keys))
            }
            NodeKind::Limit { offset, count, .. } => self.limit(offset.as_ref(), count.as_ref()),
            NodeKind::Distinct { slots, .. } => {
                let slots = slots.iter().map(|(slot, _)| names.name(*slot));
                format!("Distinct: {}", slots.collect::<Vec<_>>().join(", "))
            }
            NodeKind::SetOperation { operation, all, .. } => {
                let name = match operation {
                    SetOperation::Union => "Union",
                    SetOperation::Intersect => "Intersect",
                    SetOperation::Except => "Except",
                };
                format!("{name}{}", if *all { " all" } else { "" })
            }
        }
    }

    fn limit(&self, offset: Option<&Expression>, count: Option<&Expression>) -> String {
        let value = |one: Option<&Expression>| one.map(|one| expression_text(one, &self.names));
        match (value(count), value(offset)) {
            (Some(count), Some(offset)) => format!("Limit/Offset: {count}/{offset} row(s)"),
            (Some(count), None) => format!("Limit: {count} row(s)"),
            (None, Some(offset)) => format!("Offset: {offset} row(s)"),
            (None, None) => "Limit: none".to_owned(),
        }
    }

    fn window(&self, window: &WindowPlan) -> String {
        let mut title = format!("Window: {} function(s)", window.calls.len());
        if !window.partition.is_empty() {
            let _ = write!(title, " partition by {}", list_text(&window.partition, &self.names));
        }
        if !window.order.is_empty() {
            let _ = write!(title, " order by {}", self.keys(&window.order));
        }
        title
    }

    fn keys(&self, keys: &[SortKey]) -> String {
        let keys = keys.iter().map(|key| {
            let direction = if key.descending { " DESC" } else { "" };
            format!("{}{direction}", expression_text(&key.expression, &self.names))
        });
        keys.collect::<Vec<_>>().join(", ")
    }

    fn scan(&self, scan: &ScanPlan) -> String {
        let mut title = self.access(scan, &scan.access);
        if scan.direction == firn_api::rows::Direction::Backward {
            title += " (reverse)";
        }
        if !scan.conditions.is_empty() {
            let _ = write!(title, ", filter {}", conditions_text(&scan.conditions, &self.names));
        }
        if scan.mode != firn_api::rows::ReadMode::Consistent {
            title += ", locking";
        }
        title
    }

    fn access(&self, scan: &ScanPlan, access: &Access) -> String {
        let covering = if scan.covered { "Covering index" } else { "Index" };
        let name = |index: &Option<usize>| match index {
            None => "PRIMARY".to_owned(),
            Some(number) => {
                let index = scan.table.index_numbered(*number);
                index.map_or_else(|| "?".to_owned(), |index| index.name.to_string())
            }
        };
        let alias = &scan.alias;
        match access {
            Access::Full { index: None } => format!("Table scan on {alias}"),
            Access::Full { index } => format!("{covering} scan on {alias} using {}", name(index)),
            Access::Point { index, key } => format!(
                "Single-row index lookup on {alias} using {} ({})",
                name(index),
                self.equal(scan, *index, key)
            ),
            Access::Ranges { index, ranges } => {
                let ranges: Vec<String> =
                    ranges.iter().map(|range| self.range(scan, *index, range)).collect();
                let shown = match ranges.len() {
                    ..=4 => ranges.join(" or "),
                    count => format!("{} or … ({count} ranges)", ranges[..3].join(" or ")),
                };
                format!("{covering} range scan on {alias} using {} over ({shown})", name(index))
            }
            Access::Union(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.access(scan, part)).collect();
                format!("Union of [{}]", parts.join("; "))
            }
        }
    }

    fn part_name(&self, scan: &ScanPlan, index: Option<usize>, part: usize) -> String {
        let index = match index {
            None => scan.table.primary_key(),
            Some(number) => scan.table.index_numbered(number),
        };
        let part = index.and_then(|index| index.parts.get(part));
        let column = part.and_then(|part| scan.table.by_ordinal(part.ordinal));
        column.map_or_else(|| "?".to_owned(), |column| column.name.to_string())
    }

    fn equal(&self, scan: &ScanPlan, index: Option<usize>, key: &[Expression]) -> String {
        let parts = key.iter().enumerate().map(|(number, value)| {
            format!(
                "{}={}",
                self.part_name(scan, index, number),
                expression_text(value, &self.names)
            )
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    fn range(&self, scan: &ScanPlan, index: Option<usize>, range: &RangePlan) -> String {
        let mut written = self.equal(scan, index, &range.equal);
        let part = self.part_name(scan, index, range.equal.len());
        let mut bound = |sign: &str, value: &Expression, inclusive: bool| {
            if !written.is_empty() {
                written += ", ";
            }
            let equal = if inclusive { "=" } else { "" };
            let _ = write!(written, "{part}{sign}{equal}{}", expression_text(value, &self.names));
        };
        if let Some((value, inclusive)) = &range.lower {
            bound(">", value, *inclusive);
        }
        if let Some((value, inclusive)) = &range.upper {
            bound("<", value, *inclusive);
        }
        written
    }
}

fn join_name(join: JoinKind) -> &'static str {
    match join {
        JoinKind::Inner => "inner join",
        JoinKind::Left => "left join",
        JoinKind::Semi => "semijoin",
        JoinKind::Anti => "antijoin",
    }
}

/// A number rounded for reading.
pub(super) fn short(number: f64) -> String {
    if number >= 1e6 {
        format!("{number:.3e}")
    } else if number >= 100.0 || number.fract() == 0.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.2}")
    }
}
