//! Scopes: the meaning of names in a query.
//!
//! ```text
//!   SELECT a, (SELECT max(b) FROM u WHERE u.x = t.x) FROM t
//!                       scope 1: u ──not found──► scope 0: t
//! ```
//!
//! Name look-up starts in the innermost scope. An unqualified column that two tables of a scope
//! have is ambiguous, unless `USING` or `NATURAL` merged the two.

use std::sync::Arc;

use firn_sql_catalog::model::{TableModel, same_name};
use firn_sql_grammar::ast::{Expr, WindowSpec};
use firn_sql_logical::expression::visit::SlotSet;
use firn_sql_logical::expression::{AggregateCall, Expression, ExpressionKind, Slot};
use firn_sql_logical::{ColumnOrigin, RelationId, Window};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::metadata::flag;
use firn_sql_types::{Display, SqlType};

use super::columns::flags;
use super::{Binder, Names};

/// The clause that is being bound, as error messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clause {
    /// The select list, `SET`, `VALUES`.
    FieldList,
    On,
    Where,
    GroupBy,
    Having,
    OrderBy,
    /// `OVER (…)`
    Window,
}

impl Clause {
    /// The clause's name in MySQL's messages.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Clause::FieldList => "field list",
            Clause::On => "on clause",
            Clause::Where => "where clause",
            Clause::GroupBy => "group statement",
            Clause::Having => "having clause",
            Clause::OrderBy => "order clause",
            Clause::Window => "window partition by",
        }
    }
}

/// The meaning of the names of one query block.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Tables, in the order of `FROM`.
    pub tables: Vec<ScopeTable>,
    /// The meaning of unqualified names and of `*`.
    pub shown: Vec<ShownColumn>,
    /// Aliases and values of the select list, once it is bound.
    pub aliases: Vec<(Arc<str>, Expression)>,
    /// Aggregates of this block, collected while its expressions are bound.
    pub aggregates: Vec<AggregateCall>,
    /// Windows of this block, collected in the same way.
    pub windows: Vec<Window>,
    /// `WINDOW name AS (…)`.
    pub named_windows: Vec<(String, WindowSpec)>,
    /// `GROUP BY`, once it is bound: `GROUPING()` refers to it.
    pub groups: Vec<(Slot, Expression)>,
    /// Slots of `GROUPING()`, by group.
    pub grouping_slots: Option<Vec<Slot>>,
    /// Subqueries of the select list and of `GROUP BY`, by the hash of their text, with their bound
    /// form: a repeated subquery is the same subquery.
    pub subqueries: Vec<(u64, Expr, Expression)>,
    /// Slots that `ANY_VALUE` reads.
    pub any_values: SlotSet,
    /// Its names are invisible (a derived table that is not lateral is being bound).
    pub is_hidden: bool,
    /// Whether aggregates are allowed here.
    pub allows_aggregates: bool,
    /// Whether window functions are allowed here.
    pub allows_windows: bool,
    /// Whether the arguments of an aggregate are being bound.
    pub in_aggregate: bool,
    /// Only whether the block has rows matters: `EXISTS (SELECT * FROM DUAL)`.
    pub(crate) is_tested: bool,
    /// How many tables the block joins, including those of merged queries.
    pub(crate) joined_tables: usize,
}

#[derive(Debug)]
pub(crate) struct ScopeTable {
    /// Its alias, or its name.
    pub alias: Arc<str>,
    /// Its schema; `None` for aliases of subqueries.
    pub schema: Option<Arc<str>>,
    /// Its own name.
    pub original: Arc<str>,
    pub columns: Vec<ScopeColumn>,
    /// Whether an outer join may make it NULL.
    pub nullable: bool,
    /// Its definition, if it is a table itself.
    pub model: Option<Arc<TableModel>>,
    /// Conditions for rows that are written through it: it is a view `WITH CHECK OPTION`.
    pub checks: Vec<Expression>,
    /// Its index among the statement's named tables, if privileges on it are checked.
    pub(crate) named: Option<usize>,
}

/// A column of a table of a scope.
#[derive(Debug)]
pub(crate) struct ScopeColumn {
    pub name: Arc<str>,
    pub ty: SqlType,
    /// Where its value is.
    pub source: ColumnSource,
    /// Not part of `*`.
    pub invisible: bool,
    /// For a column of a subquery: what clients see of it.
    pub reported: Option<Box<ReportedColumn>>,
}

/// What clients see of a subquery's column.
#[derive(Debug)]
pub(crate) struct ReportedColumn {
    pub origin: ColumnOrigin,
    /// How long its values are.
    pub display: Option<Display>,
}

/// Where a column's value comes from.
#[derive(Debug, Clone)]
pub(crate) enum ColumnSource {
    /// A column of a relation.
    Relation(RelationId, u16),
    /// An expression: columns of merged subqueries.
    Expression(Expression),
}

/// A column by its table and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShownColumn {
    /// The table's place in the scope.
    pub table: usize,
    /// The column's place in the table.
    pub column: usize,
}

/// A column name, split into its parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnPath<'a> {
    /// The schema, if it is written.
    pub schema: Option<&'a str>,
    /// The table, if it is written.
    pub table: Option<&'a str>,
    pub column: &'a str,
}

impl ColumnPath<'_> {
    fn written(&self) -> String {
        let parts = [self.schema, self.table, Some(self.column)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(".")
    }
}

impl Scope {
    fn table_matches(&self, table: &ScopeTable, path: &ColumnPath<'_>) -> bool {
        let schema = |wanted: &str| {
            let is_it = |schema: &Arc<str>| {
                **schema == *wanted || is_made_up(schema) && schema.eq_ignore_ascii_case(wanted)
            };
            table.schema.as_ref().is_some_and(is_it)
        };
        path.table.is_none_or(|wanted| table.alias.eq_ignore_ascii_case(wanted))
            && path.schema.is_none_or(schema)
    }

    /// The column of a path, if this scope has it.
    ///
    /// # Errors
    /// 1052 if two columns have the name.
    pub(crate) fn find(
        &self,
        path: &ColumnPath<'_>,
        clause: Clause,
    ) -> Result<Option<ShownColumn>> {
        let mut found: Option<ShownColumn> = None;
        let mut consider = |place: ShownColumn| {
            if found.is_some_and(|other| other != place) {
                let message =
                    format!("Column '{}' in {} is ambiguous", path.written(), clause.name());
                return Err(SqlError::new(1052, message));
            }
            found = Some(place);
            Ok(())
        };
        if path.table.is_none() {
            for place in &self.shown {
                if same_name(&self.column(*place).name, path.column) {
                    consider(*place)?;
                }
            }
            return Ok(found);
        }
        for (number, table) in self.tables.iter().enumerate() {
            if !self.table_matches(table, path) {
                continue;
            }
            let column =
                table.columns.iter().position(|column| same_name(&column.name, path.column));
            if let Some(column) = column {
                consider(ShownColumn { table: number, column })?;
            }
        }
        Ok(found)
    }

    /// A column of a table of this scope.
    #[must_use]
    pub(crate) fn column(&self, place: ShownColumn) -> &ScopeColumn {
        &self.tables[place.table].columns[place.column]
    }

    /// The metadata of a column that is selected directly.
    #[must_use]
    pub(crate) fn origin_of(&self, place: ShownColumn) -> Option<ColumnOrigin> {
        let table = &self.tables[place.table];
        let column = &table.columns[place.column];
        if let Some(reported) = &column.reported {
            let mut origin = reported.origin.clone();
            if table.nullable {
                origin.flags &= !flag::NOT_NULL;
                if let Some(reported) = &mut origin.reported {
                    reported.flags &= !flag::NOT_NULL;
                }
            }
            return Some(origin);
        }
        let model = table.model.as_ref();
        // The type of a group's value does not say it.
        let is_null = column.ty.nullable || table.nullable;
        let not_null = if is_null { 0 } else { flag::NOT_NULL };
        Some(ColumnOrigin {
            schema: table.schema.clone().unwrap_or_default(),
            table: table.alias.clone(),
            original_table: table.original.clone(),
            original_name: column.name.clone(),
            flags: model.map_or(0, |model| flags(model, &column.source)) | not_null,
            reported: None,
        })
    }

    /// The place of a table by its name or alias.
    #[must_use]
    pub(crate) fn table_named(&self, schema: Option<&str>, name: &str) -> Option<usize> {
        let path = ColumnPath { schema, table: Some(name), column: "" };
        self.tables.iter().position(|table| self.table_matches(table, &path))
    }
}

/// The value of a column of a scope.
///
/// # Errors
/// 1041 if it is an expression too large to be copied again.
pub(crate) fn column_value(
    binder: &mut Binder<'_>,
    scope: usize,
    place: ShownColumn,
) -> Result<Expression> {
    let table = &binder.names.scopes[scope].tables[place.table];
    let column = &table.columns[place.column];
    let nullable = table.nullable || column.ty.nullable;
    let (named, name) = (table.named, column.name.clone());
    let mut ty = column.ty.clone();
    ty.nullable = nullable;
    let source = column.source.clone();
    binder.uses.note_read(named, &name);
    match source {
        ColumnSource::Relation(relation, number) => {
            let slot = binder.typing.frame.relation_slot(relation, number);
            note_display(binder, slot, scope, place, number);
            Ok(Expression { kind: ExpressionKind::Slot(slot), ty })
        }
        ColumnSource::Expression(mut expression) => {
            binder.typing.hold(&expression)?;
            expression.ty.nullable |= nullable;
            Ok(expression)
        }
    }
}

/// Remembers what clients see of a column's values, if its type does not say it.
fn note_display(
    binder: &mut Binder<'_>,
    slot: Slot,
    scope: usize,
    place: ShownColumn,
    number: u16,
) {
    let table = &binder.names.scopes[scope].tables[place.table];
    let display = match (&table.columns[place.column].reported, &table.model) {
        (Some(reported), _) => reported.display,
        (None, Some(model)) => model.by_ordinal(number).and_then(super::display::of_model),
        (None, None) => None,
    };
    let is_optional = table.nullable;
    if let Some(mut display) = display {
        // Rows of an outer join may lack it, whatever the table says.
        display.nullable = display.nullable.filter(|_| !is_optional);
        binder.typing.displays.set_slot(slot, display);
    }
}

/// The value of a column name.
///
/// # Errors
/// 1052, 1054.
pub(crate) fn resolve_column(binder: &mut Binder<'_>, path: &ColumnPath<'_>) -> Result<Expression> {
    for number in (0..binder.names.scopes.len()).rev() {
        if binder.names.scopes[number].is_hidden {
            continue;
        }
        let is_innermost = number + 1 == binder.names.scopes.len();
        if let Some(value) = resolve_in(binder, number, is_innermost, path)? {
            return Ok(value);
        }
    }
    Err(unknown_column(&binder.names, path))
}

fn unknown_column(names: &Names, path: &ColumnPath<'_>) -> SqlError {
    match &names.check {
        Some(check) => SqlError::unknown_column_of_check(&path.written(), check),
        None => SqlError::unknown_column(&path.written(), names.clause.name()),
    }
}

fn resolve_in(
    binder: &mut Binder<'_>,
    number: usize,
    is_innermost: bool,
    path: &ColumnPath<'_>,
) -> Result<Option<Expression>> {
    let clause = binder.names.clause;
    let in_aggregate = binder.names.scopes[number].in_aggregate;
    let prefers_alias = is_innermost && clause == Clause::Having && !in_aggregate;
    if prefers_alias
        && path.table.is_none()
        && let Some(value) = having_name(binder, number, path)?
    {
        return Ok(Some(value));
    }
    if let Some(place) = binder.names.scopes[number].find(path, clause)? {
        return column_value(binder, number, place).map(Some);
    }
    let takes_alias = matches!(clause, Clause::Having | Clause::OrderBy | Clause::GroupBy);
    if path.table.is_none() && (takes_alias || !is_innermost) {
        let value = alias_value(&mut binder.names, number, path.column, clause)?;
        if let Some(value) = &value
            && !is_innermost
            && reads_aggregate(&binder.names, number, value)
        {
            let name = path.column;
            let message = format!("Reference '{name}' not supported (reference to group function)");
            return Err(SqlError::new(1247, message));
        }
        return Ok(value);
    }
    Ok(None)
}

/// Whether a value uses an aggregate of a scope.
fn reads_aggregate(names: &Names, scope: usize, value: &Expression) -> bool {
    let read = firn_sql_logical::expression::visit::reads(value);
    names.scopes[scope].aggregates.iter().any(|call| read.contains(call.output))
}

/// In `HAVING`, a grouping column comes before an alias, and an alias before other columns.
fn having_name(
    binder: &mut Binder<'_>,
    number: usize,
    path: &ColumnPath<'_>,
) -> Result<Option<Expression>> {
    if let Ok(Some(place)) = binder.names.scopes[number].find(path, Clause::Having) {
        let value = column_value(binder, number, place)?;
        let groups = &binder.names.scopes[number].groups;
        if groups.iter().any(|(_, group)| {
            firn_sql_logical::expression::equivalence::same_expression(group, &value)
        }) {
            return Ok(Some(value));
        }
    }
    alias_value(&mut binder.names, number, path.column, Clause::Having)
}

/// The value of a select list's alias.
///
/// # Errors
/// 1052 if two different values have the name.
pub(crate) fn alias_value(
    names: &mut Names,
    scope: usize,
    name: &str,
    clause: Clause,
) -> Result<Option<Expression>> {
    let aliases = &names.scopes[scope].aliases;
    let mut matching = aliases.iter().filter(|(alias, _)| same_name(alias, name));
    let Some((_, first)) = matching.next() else { return Ok(None) };
    if matching
        .any(|(_, other)| !firn_sql_logical::expression::equivalence::same_expression(first, other))
    {
        let message = format!("Column '{name}' in {} is ambiguous", clause.name());
        return Err(SqlError::new(1052, message));
    }
    Ok(Some(first.clone()))
}

/// Whether a schema's tables are virtual: the case of its name then does not matter.
fn is_made_up(schema: &str) -> bool {
    matches!(schema, "information_schema" | "performance_schema")
}
