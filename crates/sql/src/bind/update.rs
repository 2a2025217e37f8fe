//! `UPDATE`.

use crate::catalog::model::{IndexPartModel, TableModel};
use crate::error::{Result, SqlError};
use crate::expression::{Expression, ExpressionKind};
use crate::grammar::ast::{self, Expr, OrderByExpr, TableFactor, TableWithJoins, ValueOrDefault};
use crate::logical::{Assignment, Block, BoundUpdate, NeededPrivilege, RelationId, WriteTarget};

use super::Binder;
use super::scope::{Clause, Scope};
use super::target::AssignedColumn;

impl Binder<'_> {
    /// Binds an `UPDATE`.
    ///
    /// # Errors
    /// The errors of its parts.
    pub fn update(&mut self, update: &ast::Update) -> Result<BoundUpdate> {
        if let Some(with) = &update.with {
            self.name_common_tables(with)?;
        }
        self.block_hints = self.block_hints(&update.hints);
        self.scopes.push(Scope::default());
        let bound = self.update_in_scope(update);
        self.scopes.pop();
        bound
    }

    fn update_in_scope(&mut self, update: &ast::Update) -> Result<BoundUpdate> {
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
        // The order in which tables are changed is visible if one role's change is the basis of the
        // next.
        targets.sort_by_key(|(relation, _)| relation.0);
        let block = self.written_block(from.tree, from.conditions, update.selection.as_ref())?;
        let (order, limit) =
            self.written_order(&update.order_by, update.limit.as_ref(), targets.len())?;
        let targets = targets
            .into_iter()
            .map(|(relation, assignments)| {
                let may_be_absent =
                    block.from.as_ref().is_some_and(|tree| tree.may_leave_out(relation));
                let target = self.write_target(relation, assignments)?;
                Ok(WriteTarget { may_be_absent, ..target })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(BoundUpdate { block, order, limit, targets, ignore: update.ignore })
    }

    /// Refuses assignments that no order of changes makes meaningful.
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

    /// The rows to which a statement writes.
    pub(crate) fn written_block(
        &mut self,
        tree: Option<crate::logical::JoinTree>,
        mut conditions: Vec<Expression>,
        selection: Option<&Expr>,
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
        limit: Option<&Expr>,
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

    /// A written table, with the expressions evaluated over its rows.
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
}

/// Whether a column is part of InnoDB's clustering key: the primary key, or the first unique key
/// without NULL.
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

/// Whether an expression is the word `DEFAULT`.
#[must_use]
pub(crate) fn is_default(expression: &Expression) -> bool {
    matches!(&expression.kind, ExpressionKind::Unresolved(name) if &**name == "DEFAULT")
}

/// Whether the statement names one table and nothing else.
fn is_single(tables: &[TableWithJoins]) -> bool {
    matches!(tables, [only] if only.joins.is_empty() && matches!(only.relation, TableFactor::Table { .. }))
}
