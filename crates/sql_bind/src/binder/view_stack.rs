//! The views that are being bound, and the conditions that rows written through them must meet.

use std::sync::Arc;

use firn_sql_catalog::model::{CheckOption, TableModel, ViewModel};
use firn_sql_logical::ViewUser;
use firn_sql_logical::expression::Expression;
use firn_sql_logical::expression::equivalence::same_expression;

/// The views that are being bound, outermost first.
#[derive(Default)]
pub(crate) struct ViewStack {
    /// The users whose rights count in them.
    users: Vec<Arc<ViewUser>>,
    /// For each view: conditions of the views within it.
    conditions_within: Vec<Vec<Expression>>,
    /// Conditions for rows that are written through the view that is being bound.
    conditions: Vec<Expression>,
    /// Conditions stay conditions, even if they could be joins.
    pub(crate) keeps_conditions: bool,
    /// The tables that are being bound will be written: views `WITH CHECK OPTION` keep their
    /// conditions.
    pub(crate) writes_through: bool,
}

/// What [`ViewStack::leave`] puts back.
pub(crate) struct ViewsAround {
    option: CheckOption,
    kept_conditions: bool,
    conditions: usize,
}

impl ViewStack {
    /// Begins a view.
    pub(crate) fn enter(&mut self, option: CheckOption) -> ViewsAround {
        let kept_conditions = self.keeps_conditions;
        self.keeps_conditions |= self.writes_through && option != CheckOption::None;
        self.conditions_within.push(Vec::new());
        ViewsAround { option, kept_conditions, conditions: self.conditions.len() }
    }

    /// Ends a view; returns the conditions of the views within it.
    pub(crate) fn leave(&mut self, around: &ViewsAround) -> Vec<Expression> {
        self.keeps_conditions = around.kept_conditions;
        self.conditions_within.pop().unwrap_or_default()
    }

    /// Adds the conditions of a view's `CHECK OPTION`: a cascaded one includes all conditions that
    /// were merged into the view; a local one includes only the view's own, beside those that inner
    /// views require themselves.
    pub(crate) fn note_conditions(
        &mut self,
        around: &ViewsAround,
        all: &[Expression],
        within: &[Expression],
    ) {
        match around.option {
            CheckOption::None => {}
            CheckOption::Cascaded => {
                self.conditions.truncate(around.conditions);
                self.conditions.extend_from_slice(all);
            }
            CheckOption::Local => {
                let mut own = all.to_vec();
                for other in within {
                    if let Some(at) = own.iter().position(|one| same_expression(one, other)) {
                        own.remove(at);
                    }
                }
                self.conditions.extend(own);
            }
        }
        if let Some(around) = self.conditions_within.last_mut() {
            around.extend_from_slice(all);
        }
    }

    /// The conditions for rows that are written through the view that was noted last, if no other
    /// view is around it.
    pub(crate) fn take_checks(&mut self) -> Vec<Expression> {
        match self.is_outermost() {
            true => std::mem::take(&mut self.conditions),
            false => Vec::new(),
        }
    }

    /// Whether no view is being bound.
    pub(crate) fn is_outermost(&self) -> bool {
        self.conditions_within.is_empty()
    }

    /// The user whose rights count here; `None` outside of views.
    pub(crate) fn user(&self) -> Option<&Arc<ViewUser>> {
        self.users.last()
    }

    /// From here on, the rights of a view's user count. A view with its invoker's rights, within
    /// another view, has that view's rights.
    pub(crate) fn push_user(&mut self, table: &TableModel, view: &ViewModel) {
        let around = self.users.last();
        let definer = match view.security_definer {
            true => Some(view.definer.clone()),
            false => around.and_then(|user| user.definer.clone()),
        };
        let user = ViewUser {
            schema: around.map_or_else(|| table.schema.clone(), |user| user.schema.clone()),
            view: around.map_or_else(|| table.name.clone(), |user| user.view.clone()),
            definer,
        };
        self.users.push(Arc::new(user));
    }

    /// The end of [`ViewStack::push_user`].
    pub(crate) fn pop_user(&mut self) {
        self.users.pop();
    }
}
