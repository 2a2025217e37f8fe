//! `CHECK`s of a draft, and rules for a draft as a whole.

use std::sync::Arc;

use firn_sql_grammar::ast;
use firn_sql_types::TypeKind;
use firn_sql_types::error::{Result, SqlError};

use super::super::model::{CheckModel, TableModel, same_name};
use super::table_builder::TableDraft;
use super::{DdlContext, check_identifier, expression_text, foreign_key, index, row_size};

const MAX_COLUMNS: usize = 1017;

/// Adds a `CHECK` to the draft; `column` is the column in whose definition it is written.
///
/// # Errors
/// 3822 if its name already exists.
pub(super) fn add(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    check: &ast::Check,
    column: Option<&str>,
) -> Result<()> {
    let name = match &check.name {
        Some(name) => {
            check_identifier(name)?;
            check_name_is_free(context, draft, name)?;
            name.as_str().into()
        }
        None => free_name(draft),
    };
    let text = expression_text(&check.expression).into();
    if let Some(column) = column {
        draft.column_checks.push((Arc::clone(&name), column.into()));
    }
    draft.checks.push(CheckModel { name, text, enforced: check.enforced });
    Ok(())
}

/// `t_chk_1` with the next number.
fn free_name(draft: &TableDraft) -> Arc<str> {
    let prefix = format!("{}_chk_", draft.name);
    let numbers = draft.checks.iter().filter_map(|check| {
        check.name.strip_prefix(prefix.as_str()).and_then(|number| number.parse::<u32>().ok())
    });
    format!("{prefix}{}", numbers.max().unwrap_or(0) + 1).into()
}

fn check_name_is_free(context: &DdlContext<'_>, draft: &TableDraft, name: &str) -> Result<()> {
    let in_table = draft.checks.iter().any(|check| same_name(&check.name, name));
    let in_schema = || {
        let tables = context.catalog.shared().tables_of(&draft.schema).unwrap_or_default();
        let others = |table: &&Arc<TableModel>| table.name != draft.name;
        tables
            .iter()
            .filter(others)
            .flat_map(|table| &table.checks)
            .any(|check| same_name(&check.name, name))
    };
    if in_table || (!draft.temporary && in_schema()) {
        let message = format!("Duplicate check constraint name '{name}'.");
        return Err(SqlError::new(3822, message));
    }
    Ok(())
}

/// Rules for every table.
///
/// # Errors
/// What MySQL refuses: no columns or too many, an `AUTO_INCREMENT` column that does not begin a key
/// or is not the only one, rows that are too large, primary keys that may be NULL, missing parents.
pub(super) fn whole(
    context: &DdlContext<'_>,
    draft: &TableDraft,
    first_new_foreign_key: usize,
) -> Result<()> {
    if draft.shown_length() == 0 {
        return Err(SqlError::new(1113, "A table must have at least 1 column"));
    }
    if !draft.columns.iter().any(|column| !column.invisible) {
        return Err(SqlError::new(4028, "A table must have at least one visible column."));
    }
    if draft.columns.len() > MAX_COLUMNS {
        return Err(SqlError::new(1117, "Too many columns"));
    }
    if context.require_primary_key && draft.primary_key().is_none() && !draft.temporary {
        let message = "Unable to create or change a table without a primary key, when the system variable \
                       'sql_require_primary_key' is set. Add a primary key to the table or unset this \
                       variable to avoid this message. Note that tables without a primary key can cause \
                       performance problems in row-based replication, so please consult your DBA before \
                       changing this setting.";
        return Err(SqlError::new(3750, message));
    }
    auto_increment(draft)?;
    row_size::check_declared(draft)?;
    index::check_all_lengths(draft)?;
    let generated = expressions(context, draft)?;
    foreign_key::check_parents(context, draft, first_new_foreign_key)?;
    match generated {
        FollowsActions::No => Ok(()),
        FollowsActions::Yes => Err(SqlError::new(1215, "Cannot add foreign key constraint")),
    }
}

/// Whether a stored generated column depends on a column that an action of a foreign key changes.
enum FollowsActions {
    No,
    Yes,
}

fn auto_increment(draft: &TableDraft) -> Result<()> {
    let mut counted = draft.columns.iter().filter(|column| column.auto_increment);
    let Some(column) = counted.next() else { return Ok(()) };
    let begins_key = draft
        .indexes
        .iter()
        .any(|index| index.parts.first().is_some_and(|part| part.ordinal == column.ordinal));
    if counted.next().is_some() || !begins_key {
        let message = "Incorrect table definition; there can be only one auto column and it must be \
                       defined as a key";
        return Err(SqlError::new(1075, message));
    }
    Ok(())
}

/// Binds every expression of the draft, so that no invalid one is stored.
fn expressions(context: &DdlContext<'_>, draft: &TableDraft) -> Result<FollowsActions> {
    let has_expressions = !draft.checks.is_empty()
        || draft.columns.iter().any(|column| {
            column.generated.is_some()
                || matches!(column.default, super::super::model::DefaultValue::Expression(_))
        });
    if !has_expressions {
        return Ok(FollowsActions::No);
    }
    let draft = &draft.renumbered();
    let model = context.draft_model(draft)?;
    let mut follows = FollowsActions::No;
    // The columns that each generated column reads, directly or through earlier generated columns.
    let mut reads: Vec<(u16, Vec<u16>)> = Vec::new();
    for column in &draft.columns {
        if let Some(generated) = &column.generated {
            let bound = context.expressions.bind(&model, &generated.text)?;
            refuse_volatile(column, &*bound)?;
            check_reads(draft, column, bound.columns())?;
            let mut bases = bound.columns().to_vec();
            let through = reads.iter().filter(|(number, _)| bound.columns().contains(number));
            bases.extend(through.flat_map(|(_, bases)| bases));
            if generated.stored && draft.foreign_keys.iter().any(|key| key.changes(&bases)) {
                follows = FollowsActions::Yes;
            }
            reads.push((column.ordinal, bases));
        }
        if let super::super::model::DefaultValue::Expression(text) = &column.default {
            context.expressions.bind(&model, text)?;
        }
    }
    let mut read_by_checks = Vec::new();
    for check in &draft.checks {
        let bound = context.expressions.bind_check(&model, check)?;
        check_own_column(draft, check, bound.columns())?;
        read_by_checks.push((&check.name, bound.columns().to_vec()));
        if let Some(function) = bound.volatile_function() {
            let message = format!(
                "An expression of a check constraint '{}' contains disallowed function: {}.",
                check.name,
                function.to_lowercase()
            );
            return Err(SqlError::new(3814, message));
        }
        let counts = |number: &u16| draft.numbered(*number).is_some_and(|own| own.auto_increment);
        if bound.columns().iter().any(counts) {
            let message = format!(
                "Check constraint '{}' cannot refer to an auto-increment column.",
                check.name
            );
            return Err(SqlError::new(3818, message));
        }
        let ty = &bound.ty().kind;
        if matches!(ty, TypeKind::Json | TypeKind::Geometry) {
            let message = format!(
                "An expression of non-boolean type specified to a check constraint '{}'.",
                check.name
            );
            return Err(SqlError::new(3812, message));
        }
    }
    check_set_columns(draft, &read_by_checks)?;
    Ok(follows)
}

/// The `CHECK` of a column may only read that column.
fn check_own_column(draft: &TableDraft, check: &CheckModel, reads: &[u16]) -> Result<()> {
    let name = &check.name;
    let own = draft.column_checks.iter().find(|(of, _)| of == name);
    let Some((_, own)) = own else { return Ok(()) };
    if reads.iter().filter_map(|number| draft.numbered(*number)).any(|read| read.name != *own) {
        let message = format!("Column check constraint '{name}' references other column.");
        return Err(SqlError::new(3813, message));
    }
    Ok(())
}

/// No `CHECK` may read a column that an action of a foreign key sets, since it would not be
/// evaluated.
fn check_set_columns(draft: &TableDraft, checks: &[(&Arc<str>, Vec<u16>)]) -> Result<()> {
    let keys = draft.foreign_keys.iter().filter(|key| key.sets_columns());
    for (key, number) in keys.flat_map(|key| key.columns.iter().map(move |number| (key, number))) {
        let check = checks.iter().find(|(_, reads)| reads.contains(number));
        if let Some(((name, _), column)) = check.zip(draft.numbered(*number)) {
            let message = format!(
                "Column '{}' cannot be used in a check constraint '{name}': needed in a foreign key \
                 constraint '{}' referential action.",
                column.name, key.name
            );
            return Err(SqlError::new(3823, message));
        }
    }
    Ok(())
}

/// What is stored with a row must be determined by the row.
fn refuse_volatile(
    column: &super::super::model::ColumnModel,
    bound: &dyn super::RowExpression,
) -> Result<()> {
    let Some(function) = bound.volatile_function() else { return Ok(()) };
    let function = function.to_lowercase();
    let index = column.hidden.then(|| column.name.split('!').nth(2)).flatten();
    Err(match index {
        Some(index) => SqlError::new(
            3758,
            format!("Expression of functional index '{index}' contains a disallowed function."),
        ),
        None => SqlError::new(
            3763,
            format!(
                "Expression of generated column '{}' contains a disallowed function: {function}.",
                column.name
            ),
        ),
    })
}

/// A generated column may read only earlier generated columns, and not the counter.
fn check_reads(
    draft: &TableDraft,
    column: &super::super::model::ColumnModel,
    reads: &[u16],
) -> Result<()> {
    let place = |number: u16| draft.columns.iter().position(|other| other.ordinal == number);
    for read in reads.iter().filter_map(|number| draft.numbered(*number)) {
        if read.auto_increment {
            let message = format!(
                "Generated column '{}' cannot refer to auto-increment column.",
                column.name
            );
            return Err(SqlError::new(3109, message));
        }
        if read.generated.is_some() && place(read.ordinal) >= place(column.ordinal) {
            let message =
                "Generated column can refer only to generated columns defined prior to it.";
            return Err(SqlError::new(3107, message));
        }
    }
    Ok(())
}
