//! What a plan does as a whole, for status counters and the log of statements without indexes.

use super::{Access, NodeKind, PlanNode, PreparedPlan, QueryPlan, ScanPlan, StatementPlan};

/// Counts of a plan's parts, named as in MySQL's status counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanShape {
    /// Joins, and single tables, whose first table is read whole.
    pub scans: u64,
    /// Joins, and single tables, that read ranges of an index of the first table.
    pub ranges: u64,
    /// Tables that a join reads whole for each earlier row.
    pub full_joins: u64,
    /// Tables of which a join reads index ranges for each earlier row.
    pub range_joins: u64,
    /// Sorts of rows from whole tables.
    pub sorted_scans: u64,
    /// Sorts of rows from ranges or look-ups.
    pub sorted_ranges: u64,
    /// Tables that exist while the statement runs.
    pub temporary_tables: u64,
}

impl PlanShape {
    #[must_use]
    pub fn of(plan: &PreparedPlan) -> PlanShape {
        let mut shape = PlanShape::default();
        match &plan.statement {
            StatementPlan::Query(query) => shape.query(query),
            StatementPlan::Insert(insert) => shape.query(&insert.source),
            StatementPlan::Update(update) => shape.node(&update.source, false),
            StatementPlan::Delete(delete) => shape.node(&delete.source, false),
        }
        for common in &plan.common_tables {
            shape.temporary_tables += 1;
            shape.query(&common.query);
            common.recursive.iter().for_each(|query| shape.query(query));
        }
        shape
    }

    #[must_use]
    pub fn reads_whole_tables(&self) -> bool {
        self.scans + self.full_joins > 0
    }

    fn query(&mut self, query: &QueryPlan) {
        self.node(&query.root, false);
    }

    fn node(&mut self, node: &PlanNode, is_inner: bool) {
        match &node.kind {
            NodeKind::Scan(scan) => self.scan(scan, is_inner),
            NodeKind::Derived { query, .. } => self.node(&query.root, is_inner),
            NodeKind::NestedLoop { left, right, .. } | NodeKind::HashJoin { left, right, .. } => {
                self.node(left, is_inner);
                self.node(right, true);
            }
            NodeKind::Filter { input, .. }
            | NodeKind::Compute { input, .. }
            | NodeKind::Limit { input, .. } => self.node(input, is_inner),
            NodeKind::Sort { input, .. } => {
                let scans = self.scans;
                self.node(input, is_inner);
                match self.scans > scans {
                    true => self.sorted_scans += 1,
                    false => self.sorted_ranges += 1,
                }
            }
            NodeKind::Aggregate { input, groups, sorted, .. } => {
                self.temporary_tables += u64::from(!sorted && !groups.is_empty());
                self.node(input, is_inner);
            }
            NodeKind::Distinct { input, .. } => {
                self.temporary_tables += 1;
                self.node(input, is_inner);
            }
            NodeKind::Window(window) => {
                self.temporary_tables += 1;
                self.node(&window.input, is_inner);
            }
            NodeKind::SetOperation { all, inputs, .. } => {
                self.temporary_tables += u64::from(!all);
                inputs.iter().for_each(|query| self.query(query));
            }
            NodeKind::OneRow
            | NodeKind::Empty
            | NodeKind::Values { .. }
            | NodeKind::Virtual { .. }
            | NodeKind::CommonTable { .. }
            | NodeKind::JsonTable { .. } => {}
        }
    }

    fn scan(&mut self, scan: &ScanPlan, is_inner: bool) {
        match (&scan.access, is_inner) {
            (Access::Full { .. }, false) => self.scans += 1,
            (Access::Full { .. }, true) => self.full_joins += 1,
            (Access::Ranges { .. } | Access::Union(_), false) => self.ranges += 1,
            (Access::Ranges { .. } | Access::Union(_), true) => self.range_joins += 1,
            (Access::Point { .. }, _) => {}
        }
    }
}
