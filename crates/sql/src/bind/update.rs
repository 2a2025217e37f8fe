//! `UPDATE`.

use sqlparser::ast::{OrderByExpr, TableFactor, TableWithJoins};

use crate::catalog::model::{IndexPartModel, TableModel};
use crate::error::{Result, SqlError};
use crate::expression::{Expression, ExpressionKind, Slot};
use crate::grammar::ast::{self, ValueOrDefault};
use crate::plan::finish::finish;
use crate::plan::optimiser::Optimiser;
use crate::plan::visit::{SlotSet, add_all_reads, add_reads};
use crate::plan::{
    Access, Assignment, NeededPrivilege, NodeKind, PlanNode, UpdatePlan, WriteTarget,
};

use super::Binder;
use super::logical::{Block, Body, Query, RelationId, RelationSource};
use super::scope::{Clause, Scope};
use super::target::AssignedColumn;

impl Binder<'_> {
    /// Binds and plans an `UPDATE`.
    ///
    /// # Errors
    /// What its parts answer.
    pub fn update(&mut self, update: &ast::Update) -> Result<UpdatePlan> {
        if let Some(with) = &update.with {
            self.name_common_tables(with)?;
        }
        self.block_hints = self.block_hints(&update.hints);
        self.scopes.push(Scope::default());
        let planned = self.update_in_scope(update);
        self.scopes.pop();
        planned
    }

    fn update_in_scope(&mut self, update: &ast::Update) -> Result<UpdatePlan> {
        if is_single(&update.tables) {
            self.wanted = NeededPrivilege::Update;
        }
        self.writes_through_views = true;
        let from = self.from(&update.tables);
        self.wanted = NeededPrivilege::Select;
        self.writes_through_views = false;
        let from = from?;
        self.scope().shown = from.shown;
        self.scope().allows_aggregates = false;
        let columns = update
            .assignments
            .iter()
            .map(|assignment| self.assigned_column(&assignment.column, "UPDATE"))
            .collect::<Result<Vec<_>>>()?;
        self.check_roles(&columns)?;
        for column in &columns {
            let table = self.model_of(column.relation)?.id;
            self.written.push(table);
        }
        let mut targets: Vec<(RelationId, Vec<Assignment>)> = Vec::new();
        for (assignment, column) in update.assignments.iter().zip(columns) {
            let AssignedColumn { relation, ordinal, .. } = column;
            self.refuse_generated(relation, ordinal, &assignment.value)?;
            let value = self.assigned_value(relation, ordinal, &assignment.value)?;
            let assignment = Assignment { ordinal, value };
            match targets.iter_mut().find(|(other, _)| *other == relation) {
                Some((_, assignments)) => assignments.push(assignment),
                None => targets.push((relation, vec![assignment])),
            }
        }
        // In which order tables are changed shows where one role's change is the basis of the next.
        targets.sort_by_key(|(relation, _)| relation.0);
        let block = self.written_block(from.tree, from.conditions, update.selection.as_ref())?;
        let (order, limit) =
            self.written_order(&update.order_by, update.limit.as_ref(), targets.len())?;
        let mut targets = targets
            .into_iter()
            .map(|(relation, assignments)| {
                let may_be_absent =
                    block.from.as_ref().is_some_and(|tree| tree.may_leave_out(relation));
                let target = self.write_target(relation, assignments)?;
                Ok(WriteTarget { may_be_absent, ..target })
            })
            .collect::<Result<Vec<_>>>()?;
        let relations = block.from.as_ref().map_or(0, |tree| tree.relations().len());
        let source = self.plan_source(block, order, limit, &targets)?;
        for target in &mut targets {
            target.in_turn = relations <= 1 || self.is_changed_while_joining(&source, target);
        }
        let gather_first = relations > 1 || self.moves_rows(&source, &targets);
        Ok(UpdatePlan { source, targets, ignore: update.ignore, gather_first })
    }

    /// Refuses what no order of changes makes sense of.
    fn check_roles(&self, columns: &[AssignedColumn]) -> Result<()> {
        let Some(scope) = self.scopes.last() else { return Ok(()) };
        for (number, one) in columns.iter().enumerate() {
            let table = &scope.tables[one.table];
            for other in columns[..number].iter().filter(|other| other.relation != one.relation) {
                if other.table == one.table {
                    let schema = table.schema.as_deref().unwrap_or("");
                    let view = format!("{schema}.{}", table.original);
                    return Err(SqlError::new(
                        1393,
                        format!(
                            "Can not modify more than one base table through a join view '{view}'"
                        ),
                    ));
                }
                let model = self.model_of(one.relation)?;
                let moves = |column: &AssignedColumn| is_clustered(&model, column.ordinal);
                let is_role = |column: &AssignedColumn| {
                    [one.relation, other.relation].contains(&column.relation)
                };
                if self.model_of(other.relation)?.id == model.id
                    && columns.iter().any(|column| is_role(column) && moves(column))
                {
                    let mut roles = [one, other];
                    roles.sort_by_key(|role| role.relation.0);
                    let [first, second] = roles.map(|role| &scope.tables[role.table].alias);
                    return Err(SqlError::new(
                        1706,
                        format!(
                            "Primary key/partition key update is not allowed since the table is \
                             updated both as '{first}' and '{second}'."
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Generated columns may only be set to their default.
    fn refuse_generated(
        &self,
        relation: RelationId,
        ordinal: u16,
        value: &ValueOrDefault,
    ) -> Result<()> {
        let table = self.model_of(relation)?;
        let column = table.by_ordinal(ordinal).filter(|column| column.generated.is_some());
        match (column, value) {
            (Some(column), ValueOrDefault::Value(_)) => Err(SqlError::new(
                3105,
                format!(
                    "The value specified for generated column '{}' in table '{}' is not allowed.",
                    column.name, table.name
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The value of an assignment; `None` is the default.
    pub(crate) fn assigned_value(
        &mut self,
        relation: RelationId,
        ordinal: u16,
        value: &ValueOrDefault,
    ) -> Result<Option<Expression>> {
        match value {
            ValueOrDefault::Value(expr) => {
                let bound = self.bind_single(expr)?;
                let table = self.model_of(relation)?;
                Ok(Some(match table.by_ordinal(ordinal) {
                    Some(column) => self.number_beside(expr, bound, &column.ty),
                    None => bound,
                }))
            }
            ValueOrDefault::Default => {
                let rules = self.row_rules(relation)?;
                let default = rules.defaults.into_iter().find(|(of, _)| *of == ordinal);
                Ok(default.map(|(_, value)| value))
            }
        }
    }

    /// The rows that a statement writes to.
    pub(crate) fn written_block(
        &mut self,
        tree: Option<super::logical::JoinTree>,
        mut conditions: Vec<Expression>,
        selection: Option<&sqlparser::ast::Expr>,
    ) -> Result<Block> {
        let mut joins = Vec::new();
        if let Some(selection) = selection {
            self.in_clause(Clause::Where, |binder| {
                binder.bind_where(selection, &mut conditions, &mut joins)
            })?;
        }
        let from = self.with_joins(tree, joins);
        Ok(Block { from, conditions, straight: self.block_hints.straight, ..Block::default() })
    }

    /// `ORDER BY` and `LIMIT` of a statement that writes.
    #[allow(clippy::type_complexity)]
    pub(crate) fn written_order(
        &mut self,
        order: &[OrderByExpr],
        limit: Option<&sqlparser::ast::Expr>,
        targets: usize,
    ) -> Result<(Vec<crate::expression::SortKey>, Option<Expression>)> {
        let is_single = targets <= 1 && self.scope().tables.len() == 1;
        if !is_single && !order.is_empty() {
            return Err(SqlError::new(1221, "Incorrect usage of UPDATE and ORDER BY"));
        }
        if !is_single && limit.is_some() {
            return Err(SqlError::new(1221, "Incorrect usage of UPDATE and LIMIT"));
        }
        let order = self.order_by(order, &[])?;
        let limit = limit.map(|limit| self.limit(limit)).transpose()?;
        Ok((order, limit))
    }

    /// A table that is written, with what is worked out over its rows.
    pub(crate) fn write_target(
        &mut self,
        relation: RelationId,
        assignments: Vec<Assignment>,
    ) -> Result<WriteTarget> {
        let table = self.model_of(relation)?;
        let (row_key, row_payload) = self.make_target(relation);
        let rules = match assignments.is_empty() {
            true => super::target::RowRules {
                generated: Vec::new(),
                checks: Vec::new(),
                defaults: Vec::new(),
            },
            false => self.row_rules(relation)?,
        };
        let mut checks = rules.checks;
        if !assignments.is_empty() {
            checks.extend(self.view_checks(relation));
        }
        Ok(WriteTarget {
            table,
            row_key,
            row_payload,
            assignments,
            in_turn: true,
            may_be_absent: false,
            row: self.row_slots(relation),
            generated: rules.generated,
            checks,
        })
    }

    /// Plans the rows that a statement writes to.
    pub(crate) fn plan_source(
        &mut self,
        block: Block,
        order: Vec<crate::expression::SortKey>,
        limit: Option<Expression>,
        targets: &[WriteTarget],
    ) -> Result<PlanNode> {
        let query = Query {
            body: Body::Select(Box::new(block)),
            columns: Vec::new(),
            order,
            offset: None,
            limit,
            count_all: false,
        };
        let mut source = Optimiser { binder: self }.plan_query(query)?.root;
        let mut needed = SlotSet::default();
        for target in targets {
            needed.insert(target.row_key);
            needed.insert(target.row_payload);
            target.row.iter().for_each(|(_, slot)| needed.insert(*slot));
            let values = target.assignments.iter().filter_map(|one| one.value.as_ref());
            values.for_each(|value| add_reads(value, &mut needed));
            target.checks.iter().for_each(|check| add_reads(&check.condition, &mut needed));
        }
        finish(&mut source, &needed);
        Ok(source)
    }

    /// Whether the changes may move rows in the index that they are found by, or a subquery reads the table.
    fn moves_rows(&self, source: &PlanNode, targets: &[WriteTarget]) -> bool {
        targets.iter().any(|target| self.is_read_twice(target) || moves(source, target))
    }

    /// Whether MySQL changes the rows of a target while it joins: the table is read first and once,
    /// and no condition reads what is set.
    fn is_changed_while_joining(&self, source: &PlanNode, target: &WriteTarget) -> bool {
        let mut reads = SlotSet::default();
        add_all_reads(source, &mut reads);
        let is_set = |ordinal: u16| {
            target.assignments.iter().any(|assignment| assignment.ordinal == ordinal)
        };
        let mut row = target.row.iter();
        first_row_key(source) == Some(target.row_key)
            && !self.is_read_twice(target)
            && !row.any(|(ordinal, slot)| is_set(*ordinal) && reads.contains(*slot))
    }

    /// Whether the statement names a target's table more than once.
    pub(crate) fn is_read_twice(&self, target: &WriteTarget) -> bool {
        let same = |relation: &&super::logical::Relation| matches!(&relation.source, RelationSource::Table(table) if table.id == target.table.id);
        self.relations.iter().filter(same).count() > 1
    }
}

/// Whether a column is part of the key that InnoDB clusters the table by: the primary key, or the
/// first unique one without NULL.
fn is_clustered(table: &TableModel, ordinal: u16) -> bool {
    let nullable = |part: &IndexPartModel| {
        table.by_ordinal(part.ordinal).is_none_or(|column| column.ty.nullable)
    };
    let first_unique = || {
        let mut indexes = table.indexes.iter().filter(|index| index.unique);
        indexes.find(|index| !index.parts.iter().any(nullable))
    };
    let key = table.primary_key().or_else(first_unique);
    key.is_some_and(|key| key.parts.iter().any(|part| part.ordinal == ordinal))
}

/// Where the row's key of the table is that a plan reads first.
fn first_row_key(node: &PlanNode) -> Option<Slot> {
    if let NodeKind::Scan(scan) = &node.kind {
        return scan.row_key;
    }
    let mut first = None;
    crate::plan::visit::for_each_input(node, &mut |input| {
        first.get_or_insert_with(|| first_row_key(input));
    });
    first.flatten()
}

fn moves(node: &PlanNode, target: &WriteTarget) -> bool {
    if let NodeKind::Scan(scan) = &node.kind
        && scan.row_key == Some(target.row_key)
    {
        return changes_way(&scan.access, target);
    }
    let mut found = false;
    crate::plan::visit::for_each_input(node, &mut |input| found = found || moves(input, target));
    found
}

fn changes_way(access: &Access, target: &WriteTarget) -> bool {
    let index = match access {
        Access::Point { .. } => return false,
        Access::Full { index } | Access::Ranges { index, .. } => *index,
        Access::Union(parts) => return parts.iter().any(|part| changes_way(part, target)),
    };
    let index = match index {
        Some(number) => target.table.index_numbered(number),
        None => target.table.primary_key(),
    };
    let is_set = |ordinal: u16| {
        let on_update = target
            .table
            .by_ordinal(ordinal)
            .is_some_and(|column| column.on_update_now.is_some() || column.generated.is_some());
        on_update || target.assignments.iter().any(|one| one.ordinal == ordinal)
    };
    index.is_some_and(|index| index.parts.iter().any(|part| is_set(part.ordinal)))
}

/// Whether an expression is the word `DEFAULT`.
#[must_use]
pub(crate) fn is_default(expression: &Expression) -> bool {
    matches!(&expression.kind, ExpressionKind::Unresolved(name) if &**name == "DEFAULT")
}

/// Whether the statement names one table and nothing else.
fn is_single(tables: &[TableWithJoins]) -> bool {
    matches!(tables, [only] if only.joins.is_empty() && matches!(only.relation, TableFactor::Table { .. }))
}
