//! `GROUP_CONCAT`: concatenated texts in their own order, up to the session's longest result.
//!
//! ```text
//!   longest 9, separator ','  kept: 'ant', 'bee', 'elk'  'cat' comes: 'elk' is dropped
//! ```
//!
//! With an order, the first texts in that order are kept, and no more than the longest result
//! holds.

use std::collections::BinaryHeap;

use crate::error::Result;
use crate::expression::AggregateCall;
use crate::types::{Datum, EvaluationContext, write_sort_key};

use super::super::memory::Reservation;
use super::super::sort::Keyed;
use super::super::values;

#[derive(Clone, Default)]
pub(super) struct Concatenation {
    /// The first texts, if there is an order.
    parts: BinaryHeap<Part>,
    /// Their size in the result, each with a separator.
    parts_bytes: usize,
    /// All texts so far, if there is no order.
    joined: Option<Vec<u8>>,
    rows: u64,
    cut_at: Option<u64>,
}

/// A row's text, and its position.
type Part = Keyed<Vec<u8>>;

fn memory_bytes(part: &Part) -> usize {
    part.key.len() + part.kept.len() + size_of::<Part>()
}

impl Concatenation {
    pub(super) fn add(
        &mut self,
        call: &AggregateCall,
        arguments: &[Datum],
        order: &[Datum],
        held: &mut Reservation,
        context: &EvaluationContext,
    ) -> Result<()> {
        self.rows += 1;
        let mut text = Vec::new();
        for (value, argument) in arguments.iter().zip(&call.arguments) {
            match value.as_bytes() {
                Some(bytes) => text.extend_from_slice(bytes),
                None => text.extend_from_slice(&values::text(value, &argument.ty, context)?),
            }
        }
        if call.order.is_empty() {
            if self.cut_at.is_none() {
                held.require(text.len())?;
                self.join(&text, call, context);
            }
            return Ok(());
        }
        let mut key = Vec::new();
        for (value, by) in order.iter().zip(&call.order) {
            write_sort_key(value, &by.expression.ty, by.descending, &mut key);
        }
        let part = Keyed { key: key.into(), number: self.rows, kept: text };
        held.require(memory_bytes(&part))?;
        self.parts_bytes += part.kept.len() + call.separator.len();
        self.parts.push(part);
        self.drop_parts(call, held, longest(context));
        Ok(())
    }

    /// Drops what exceeds the longest result even without a last separator.
    fn drop_parts(&mut self, call: &AggregateCall, held: &mut Reservation, longest: usize) {
        let separator_bytes = call.separator.len();
        while let Some(last) = self.parts.peek() {
            let before_bytes = self.parts_bytes - last.kept.len() - separator_bytes;
            if before_bytes.saturating_sub(separator_bytes) <= longest {
                return;
            }
            held.shrink(memory_bytes(last));
            self.parts_bytes = before_bytes;
            self.parts.pop();
        }
    }

    fn join(&mut self, text: &[u8], call: &AggregateCall, context: &EvaluationContext) {
        let joined = match &mut self.joined {
            Some(joined) => {
                joined.extend_from_slice(&call.separator);
                joined
            }
            None => self.joined.insert(Vec::new()),
        };
        joined.extend_from_slice(text);
        let longest = longest(context);
        if joined.len() > longest {
            joined.truncate(whole_characters(joined, longest));
            self.cut_at = Some(self.rows);
        }
    }

    /// The text; NULL if there were no rows.
    pub(super) fn finish(mut self, call: &AggregateCall, context: &EvaluationContext) -> Datum {
        let parts = std::mem::take(&mut self.parts).into_sorted_vec();
        if !parts.is_empty() {
            self.rows = 0;
        }
        for part in parts {
            self.rows += 1;
            self.join(&part.kept, call, context);
            if self.cut_at.is_some() {
                break;
            }
        }
        if let Some(row) = self.cut_at {
            context.warn(1260, || format!("Row {row} was cut by GROUP_CONCAT()"));
        }
        self.joined.map_or(Datum::Null, Datum::text)
    }
}

fn longest(context: &EvaluationContext) -> usize {
    usize::try_from(context.group_concat_max_length_bytes).unwrap_or(usize::MAX)
}

/// The most bytes up to `longest` that end with a whole character.
fn whole_characters(text: &[u8], longest: usize) -> usize {
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (0..=longest).rev().take(4).find(|at| !is_inside(*at)).unwrap_or(longest)
}
