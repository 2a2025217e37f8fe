//! The traditional format: a row for each table.

use crate::visit::{for_each_expression, for_each_input};
use crate::{
    Access, NodeKind, PlanNode, PreparedPlan, QueryPlan, ScanPlan, StatementPlan, SubqueryPlan,
};
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::SqlType;

use super::names::{Names, subqueries_of};

/// The columns of the traditional format.
pub const TABLE_COLUMNS: [&str; 12] = [
    "id",
    "select_type",
    "table",
    "partitions",
    "type",
    "possible_keys",
    "key",
    "key_len",
    "ref",
    "rows",
    "filtered",
    "Extra",
];

/// A row of the traditional format.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainRow {
    /// The number of the query block.
    pub id: Option<u64>,
    /// `SIMPLE`, `PRIMARY`, `SUBQUERY`, `DERIVED`, `UNION`, …
    pub select_type: &'static str,
    /// The table's alias.
    pub table: Option<String>,
    /// How rows are found: `const`, `eq_ref`, `ref`, `range`, `index`, `ALL`, …
    pub access: Option<&'static str>,
    /// Indexes that could be used.
    pub possible_keys: Option<String>,
    /// The index that is used.
    pub key: Option<String>,
    /// How many bytes of it.
    pub key_length: Option<String>,
    /// What its columns are compared with.
    pub reference: Option<String>,
    /// Examined rows.
    pub rows: Option<u64>,
    /// The share of them that remains, in percent.
    pub filtered: Option<f64>,
    /// Remarks.
    pub extra: Option<String>,
}

struct Rows<'p> {
    rows: Vec<ExplainRow>,
    next_id: u64,
    names: Names<'p>,
    subqueries: &'p [SubqueryPlan],
    is_complex: bool,
}

/// The rows of a plan.
pub(super) fn rows(plan: &PreparedPlan) -> Vec<ExplainRow> {
    let mut rows = Rows {
        rows: Vec::new(),
        next_id: 2,
        names: Names::of(plan),
        subqueries: &plan.subqueries,
        is_complex: false,
    };
    match &plan.statement {
        StatementPlan::Query(query) => rows.query(query, 1, "SIMPLE"),
        StatementPlan::Insert(insert) => {
            let kind = match insert.duplicates {
                firn_sql_logical::DuplicatePolicy::Replace => "REPLACE",
                _ => "INSERT",
            };
            rows.rows.push(ExplainRow {
                table: Some(insert.table.name.to_string()),
                access: Some("ALL"),
                ..empty(1, kind)
            });
            if !matches!(insert.source.root.kind, NodeKind::Values { .. }) {
                rows.query(&insert.source, 1, "SIMPLE");
            }
        }
        StatementPlan::Update(update) => rows.node(&update.source, 1, "UPDATE", &mut Vec::new()),
        StatementPlan::Delete(delete) => rows.node(&delete.source, 1, "DELETE", &mut Vec::new()),
    }
    for table in &plan.common_tables {
        let id = rows.take_id();
        rows.query(&table.query, id, "DERIVED");
        if let Some(step) = &table.recursive {
            let id = rows.take_id();
            rows.query(step, id, "UNION");
        }
    }
    rows.finish()
}

impl Rows<'_> {
    fn take_id(&mut self) -> u64 {
        self.is_complex = true;
        self.next_id += 1;
        self.next_id - 1
    }

    fn finish(mut self) -> Vec<ExplainRow> {
        if self.is_complex {
            for row in self.rows.iter_mut().filter(|row| row.select_type == "SIMPLE") {
                row.select_type = "PRIMARY";
            }
        }
        self.rows
    }

    fn query(&mut self, query: &QueryPlan, id: u64, kind: &'static str) {
        let mut remarks = Vec::new();
        self.node(&query.root, id, kind, &mut remarks);
        for column in &query.columns {
            self.subqueries(&column.value);
        }
    }

    fn subqueries(&mut self, expression: &Expression) {
        let mut subqueries = Vec::new();
        subqueries_of(expression, &mut subqueries);
        for subquery in subqueries {
            let id = self.take_id();
            let plan = &self.subqueries[subquery.number];
            let kind = match plan.outer_slots.is_empty() {
                true => "SUBQUERY",
                false => "DEPENDENT SUBQUERY",
            };
            self.query(&plan.query, id, kind);
        }
    }

    /// The rows of a node; remarks of operators above go to the first table below.
    fn node(
        &mut self,
        node: &PlanNode,
        id: u64,
        kind: &'static str,
        remarks: &mut Vec<&'static str>,
    ) {
        match &node.kind {
            NodeKind::Scan(scan) => self.scan(node, scan, id, kind, remarks),
            NodeKind::OneRow | NodeKind::Empty | NodeKind::Values { .. } => {
                let extra = match node.kind {
                    NodeKind::Empty => "Impossible WHERE",
                    _ => "No tables used",
                };
                self.rows.push(ExplainRow { extra: Some(extra.to_owned()), ..empty(id, kind) });
            }
            NodeKind::Virtual { table, .. } => {
                let extra = extra_of(remarks, Vec::new());
                let table = Some(table.name().to_owned());
                self.rows.push(ExplainRow { table, access: Some("ALL"), extra, ..empty(id, kind) });
            }
            NodeKind::JsonTable { .. } => {
                let extra = extra_of(remarks, vec!["Table function: json_table"]);
                let access = Some("ALL");
                self.rows.push(ExplainRow { access, extra, ..empty(id, kind) });
            }
            NodeKind::CommonTable { number, .. } => {
                let extra = extra_of(remarks, Vec::new());
                self.rows.push(ExplainRow {
                    table: Some(format!("<derived{}>", number + 2)),
                    access: Some("ALL"),
                    rows: Some(node.rows as u64),
                    filtered: Some(100.0),
                    extra,
                    ..empty(id, kind)
                });
            }
            NodeKind::Derived { query, .. } => {
                let inner = self.take_id();
                self.rows.push(ExplainRow {
                    table: Some(format!("<derived{inner}>")),
                    access: Some("ALL"),
                    rows: Some(node.rows as u64),
                    filtered: Some(100.0),
                    extra: extra_of(remarks, Vec::new()),
                    ..empty(id, kind)
                });
                self.query(query, inner, "DERIVED");
            }
            NodeKind::SetOperation { inputs, all, .. } => self.set(inputs, *all, id, kind),
            _ => {
                remarks.extend(remark(node));
                for_each_input(node, &mut |input| self.node(input, id, kind, remarks));
            }
        }
        for_each_expression(node, &mut |expression| self.subqueries(expression));
    }

    fn set(&mut self, inputs: &[QueryPlan], all: bool, id: u64, kind: &'static str) {
        let mut numbers = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            let (input_id, input_kind) = match number {
                0 => (id, if kind == "SIMPLE" { "PRIMARY" } else { kind }),
                _ => (self.take_id(), "UNION"),
            };
            numbers.push(input_id.to_string());
            self.query(input, input_id, input_kind);
        }
        if !all {
            self.rows.push(ExplainRow {
                id: None,
                table: Some(format!("<union{}>", numbers.join(","))),
                access: Some("ALL"),
                extra: Some("Using temporary".to_owned()),
                ..empty(0, "UNION RESULT")
            });
        }
    }

    fn scan(
        &mut self,
        node: &PlanNode,
        scan: &ScanPlan,
        id: u64,
        kind: &'static str,
        remarks: &mut Vec<&'static str>,
    ) {
        let mut own = Vec::new();
        if !scan.conditions.is_empty() {
            own.push("Using where");
        }
        if scan.covered {
            own.push("Using index");
        }
        if scan.direction == firn_api::rows::Direction::Backward {
            own.push("Backward index scan");
        }
        let (access, key, used, reference) = self.access(scan, &scan.access);
        let possible: Vec<&str> = scan
            .table
            .indexes
            .iter()
            .filter(|index| key.as_deref().is_some_and(|key| *key == *index.name))
            .map(|index| &*index.name)
            .collect();
        let is_lookup = !matches!(scan.access, Access::Full { .. });
        self.rows.push(ExplainRow {
            table: Some(scan.alias.to_string()),
            access: Some(access),
            possible_keys: (is_lookup && !possible.is_empty()).then(|| possible.join(",")),
            key_length: key.as_ref().and_then(|key| key_length(scan, key, used)),
            key,
            reference,
            rows: Some(node.rows.max(1.0) as u64),
            filtered: Some(100.0),
            extra: extra_of(remarks, own),
            ..empty(id, kind)
        });
    }

    #[allow(clippy::type_complexity)]
    fn access(
        &self,
        scan: &ScanPlan,
        access: &Access,
    ) -> (&'static str, Option<String>, usize, Option<String>) {
        let index_of = |index: &Option<usize>| match index {
            None => scan.table.primary_key(),
            Some(number) => scan.table.index_numbered(*number),
        };
        let name = |index: &Option<usize>| index_of(index).map(|index| index.name.to_string());
        let parts = |index: &Option<usize>| index_of(index).map_or(0, |index| index.parts.len());
        match access {
            Access::Full { index: None } => ("ALL", None, 0, None),
            Access::Full { index } => ("index", name(index), parts(index), None),
            Access::Point { index, key } => {
                let kind = if key.iter().all(is_constant) { "const" } else { "eq_ref" };
                (kind, name(index), key.len(), Some(self.references(key)))
            }
            Access::Ranges { index, ranges } => match ranges.as_slice() {
                [range] if range.lower.is_none() && range.upper.is_none() => {
                    (("ref"), name(index), range.equal.len(), Some(self.references(&range.equal)))
                }
                ranges => {
                    let used = ranges.iter().map(|range| {
                        let bounded = range.lower.is_some() || range.upper.is_some();
                        range.equal.len() + usize::from(bounded)
                    });
                    ("range", name(index), used.max().unwrap_or(0), None)
                }
            },
            Access::Union(parts) => {
                let names = parts.iter().filter_map(|part| self.access(scan, part).1);
                ("index_merge", Some(names.collect::<Vec<_>>().join(",")), 0, None)
            }
        }
    }

    fn references(&self, key: &[Expression]) -> String {
        let references = key.iter().map(|value| match &value.kind {
            ExpressionKind::Slot(slot) => self.names.name(*slot),
            _ if is_constant(value) => "const".to_owned(),
            _ => "func".to_owned(),
        });
        references.collect::<Vec<_>>().join(",")
    }
}

fn is_constant(value: &Expression) -> bool {
    firn_sql_logical::expression::visit::reads(value).is_empty()
}

fn empty(id: u64, select_type: &'static str) -> ExplainRow {
    ExplainRow {
        id: Some(id),
        select_type,
        table: None,
        access: None,
        possible_keys: None,
        key: None,
        key_length: None,
        reference: None,
        rows: None,
        filtered: None,
        extra: None,
    }
}

fn remark(node: &PlanNode) -> Option<&'static str> {
    match &node.kind {
        NodeKind::Filter { .. } => Some("Using where"),
        NodeKind::Sort { .. } => Some("Using filesort"),
        NodeKind::Aggregate { sorted: false, groups, .. } if !groups.is_empty() => {
            Some("Using temporary")
        }
        NodeKind::Distinct { .. } | NodeKind::Window(_) => Some("Using temporary"),
        NodeKind::HashJoin { .. } => Some("Using join buffer (hash join)"),
        _ => None,
    }
}

fn extra_of(remarks: &mut Vec<&'static str>, own: Vec<&'static str>) -> Option<String> {
    let mut all = own;
    for remark in remarks.drain(..).rev() {
        if !all.contains(&remark) {
            all.push(remark);
        }
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// The bytes of an index's first columns, as MySQL counts them.
fn key_length(scan: &ScanPlan, key: &str, parts: usize) -> Option<String> {
    let index = scan.table.index(key)?;
    let bytes: u64 = index
        .parts
        .iter()
        .take(parts)
        .filter_map(|part| {
            let column = scan.table.by_ordinal(part.ordinal)?;
            Some(width(&column.ty, part.prefix) + u64::from(column.ty.nullable))
        })
        .sum();
    Some(bytes.to_string())
}

fn width(ty: &SqlType, prefix: Option<u32>) -> u64 {
    use firn_sql_types::TypeKind;
    let text = |chars: u32, collation| {
        let charset = firn_sql_collation::get(collation).charset;
        u64::from(prefix.unwrap_or(chars)) * u64::from(charset.max_character_bytes())
    };
    match &ty.kind {
        TypeKind::Integer { width, .. } => width.bytes() as u64,
        TypeKind::Bit { bits } => u64::from(bits.div_ceil(8)),
        TypeKind::Year => 1,
        TypeKind::Decimal { precision, .. } => u64::from(*precision).div_ceil(9) * 4,
        TypeKind::Float => 4,
        TypeKind::Double => 8,
        TypeKind::Char { max_chars, collation } => text(*max_chars, *collation),
        TypeKind::Varchar { max_chars, collation } => text(*max_chars, *collation) + 2,
        TypeKind::Text { max_bytes, collation } => text(*max_bytes, *collation) + 2,
        TypeKind::Binary { max_bytes } => u64::from(prefix.unwrap_or(*max_bytes)),
        TypeKind::Varbinary { max_bytes } | TypeKind::Blob { max_bytes } => {
            u64::from(prefix.unwrap_or(*max_bytes)) + 2
        }
        TypeKind::Date | TypeKind::Time { .. } => 3,
        TypeKind::DateTime { fsp } => 5 + u64::from(fsp.div_ceil(2)),
        TypeKind::Timestamp { fsp } => 4 + u64::from(fsp.div_ceil(2)),
        TypeKind::Enum { .. } => 1,
        _ => 8,
    }
}
