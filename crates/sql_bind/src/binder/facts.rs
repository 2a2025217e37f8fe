//! What binding finds out about the plan as a whole: for which executions it holds.

use firn_sql_logical::Premise;

/// For which executions a plan holds, and how long one may take.
#[derive(Debug)]
pub(crate) struct PlanFacts {
    /// Whether the plan holds for other executions as well.
    pub(crate) is_cacheable: bool,
    /// Whether the statement has no effect that survives the rollback of its transaction.
    pub(crate) is_repeatable: bool,
    /// Conditions on parameters under which the plan holds.
    pub(crate) premises: Vec<Premise>,
    /// How long the query may run, from its hint.
    pub(crate) max_execution_time_ms: Option<u64>,
}

impl Default for PlanFacts {
    fn default() -> PlanFacts {
        PlanFacts {
            is_cacheable: true,
            is_repeatable: true,
            premises: Vec::new(),
            max_execution_time_ms: None,
        }
    }
}
