//! Conditions on parameters under which a plan is valid.
//!
//! ```text
//!   SELECT … WHERE date_column = ?  planned for 20240229, a date
//!                                   does not hold for 5, which is none and is compared as a number
//! ```

use firn_sql_types::{Datum, EvaluationContext, cast};

use super::PreparedPlan;

impl PreparedPlan {
    /// Whether the plan is valid for these values of its parameters.
    #[must_use]
    pub fn holds_for(&self, values: &[Datum], context: &EvaluationContext) -> bool {
        self.premises.iter().all(|premise| {
            let value = values.get(premise.parameter as usize);
            value.is_some_and(|value| {
                cast::held(value, &premise.ty, &premise.column, context).is_some()
            })
        })
    }
}
