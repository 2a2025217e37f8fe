//! Index hints and optimizer hints.
//!
//! ```text
//!   t FORCE INDEX (a)                   only index a, no full scan
//!   /*+ NO_INDEX(t a) JOIN_ORDER(u, t) */   not index a of t; u is joined before t
//! ```

use firn_sql_catalog::model::TableModel;
use firn_sql_grammar::ast::{IndexHint, IndexHintKind, IndexHintScope};
use firn_sql_logical::{Executor, IndexHints, PlanContext};
use firn_sql_types::error::{Condition, Level, Result, SqlError};

use super::{Binder, BlockContext};

/// Optimizer hints of a block.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockHints {
    hints: Vec<(String, Vec<String>)>,
    /// Tables are joined in the order of `FROM`.
    pub(crate) straight: bool,
    /// Derived tables and views are evaluated by themselves.
    pub(crate) no_merge: bool,
}

const KNOWN: &[&str] = &[
    "BKA",
    "NO_BKA",
    "BNL",
    "NO_BNL",
    "HASH_JOIN",
    "NO_HASH_JOIN",
    "JOIN_PREFIX",
    "JOIN_SUFFIX",
    "INDEX_MERGE",
    "NO_INDEX_MERGE",
    "MRR",
    "NO_MRR",
    "NO_ICP",
    "NO_RANGE_OPTIMIZATION",
    "SKIP_SCAN",
    "NO_SKIP_SCAN",
    "SEMIJOIN",
    "NO_SEMIJOIN",
    "SUBQUERY",
    "RESOURCE_GROUP",
    "SET_VAR",
    "QB_NAME",
    "MERGE",
    "DERIVED_CONDITION_PUSHDOWN",
    "NO_DERIVED_CONDITION_PUSHDOWN",
    "JOIN_INDEX",
    "GROUP_INDEX",
    "ORDER_INDEX",
    "NO_JOIN_INDEX",
    "NO_GROUP_INDEX",
    "NO_ORDER_INDEX",
    "READ_FROM_STORAGE",
    "ROUTE",
];

impl BlockHints {
    /// The hints for one table's indexes, in addition to those written beside the table.
    fn apply(&self, alias: &str, table: &TableModel, into: &mut IndexHints) {
        for (name, arguments) in &self.hints {
            let Some((of, names)) = arguments.split_first() else { continue };
            if !of.eq_ignore_ascii_case(alias) {
                continue;
            }
            let numbers = names.iter().filter_map(|name| Some(table.index(name)?.number));
            match name.as_str() {
                "INDEX" => into.only = Some(numbers.collect()),
                "NO_INDEX" if names.is_empty() => into.only = Some(Vec::new()),
                "NO_INDEX" => into.ignored.extend(numbers),
                _ => {}
            }
        }
    }
}

/// The hints of a block, from the texts of its comments; unknown hints cause warnings.
pub(crate) fn block_hints(binder: &mut Binder<'_>, texts: &[String]) -> BlockHints {
    let mut found = BlockHints::default();
    for text in texts {
        for (name, arguments) in calls(text) {
            match name.as_str() {
                "JOIN_FIXED_ORDER" | "JOIN_ORDER" => found.straight = true,
                "NO_MERGE" => found.no_merge = true,
                "EXECUTOR" => executor_hint(binder.typing.context, &arguments),
                "INDEX" | "NO_INDEX" => found.hints.push((name, arguments)),
                "MAX_EXECUTION_TIME" => limit_time(binder, &arguments),
                known if KNOWN.contains(&known) => {}
                unknown => warn_of_hint(binder.typing.context, unknown),
            }
        }
    }
    found
}

/// `MAX_EXECUTION_TIME(n)`: only the statement as a whole can have a limit.
fn limit_time(binder: &mut Binder<'_>, arguments: &[String]) {
    let limit = arguments.first().and_then(|limit| limit.parse::<u64>().ok());
    let is_outermost = binder.nesting.is_outermost()
        && binder.names.scopes.is_empty()
        && !binder.typing.writing.writes;
    match limit.filter(|_| is_outermost) {
        Some(limit) => binder.typing.facts.max_execution_time_ms = Some(limit),
        None => {
            let message = "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT \
                           statements only";
            let condition =
                Condition { level: Level::Warning, code: 3125, message: message.to_owned() };
            binder.typing.context.conditions.borrow_mut().push(condition);
        }
    }
}

/// `EXECUTOR(ROW)`, `EXECUTOR(VECTORISED)`
fn executor_hint(context: &PlanContext<'_>, arguments: &[String]) {
    let named = |name: &str| matches!(arguments, [one] if one.eq_ignore_ascii_case(name));
    match (named("ROW"), named("VECTORISED")) {
        (true, _) => context.executor.set(Some(Executor::Row)),
        (_, true) => context.executor.set(Some(Executor::Vectorised)),
        _ => warn_of_hint(context, "EXECUTOR"),
    }
}

fn warn_of_hint(context: &PlanContext<'_>, name: &str) {
    let message = format!("Optimizer hint syntax error near '{name}'");
    let condition = Condition { level: Level::Warning, code: 1064, message };
    context.conditions.borrow_mut().push(condition);
}

/// What hints say about a table's indexes.
///
/// # Errors
/// 1176 for an index that does not exist.
pub(crate) fn index_hints(
    block: &BlockContext,
    table: &TableModel,
    alias: &str,
    written: &[IndexHint],
) -> Result<IndexHints> {
    let mut hints = IndexHints::default();
    for hint in written {
        let numbers = numbers(table, alias, hint)?;
        let is_for_all = matches!(hint.scope, None | Some(IndexHintScope::Join));
        match hint.kind {
            IndexHintKind::Ignore if is_for_all => hints.ignored.extend(numbers),
            IndexHintKind::Use | IndexHintKind::Force if is_for_all => {
                hints.only.get_or_insert_default().extend(numbers);
                hints.force |= hint.kind == IndexHintKind::Force;
            }
            _ => {}
        }
    }
    block.hints.apply(alias, table, &mut hints);
    Ok(hints)
}

fn numbers(table: &TableModel, alias: &str, hint: &IndexHint) -> Result<Vec<usize>> {
    let numbers = hint.indexes.iter().map(|name| {
        let index = table.index(name);
        index.map(|index| index.number).ok_or_else(|| {
            SqlError::new(1176, format!("Key '{name}' doesn't exist in table '{alias}'"))
        })
    });
    numbers.collect()
}

/// The calls in a hint comment: names in capitals, and the contents of their parentheses.
fn calls(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('(') {
        let name = rest[..open].trim().rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next();
        let name = name.unwrap_or_default().to_ascii_uppercase();
        let Some(length) = rest[open..].find(')') else { break };
        let inside = &rest[open + 1..open + length];
        let separators = |c: char| c == ',' || c.is_whitespace();
        let arguments =
            inside.split(separators).filter(|part| !part.is_empty() && !part.starts_with('@'));
        found.push((name, arguments.map(|part| part.trim_matches('`').to_owned()).collect()));
        rest = &rest[open + length + 1..];
    }
    found
}
