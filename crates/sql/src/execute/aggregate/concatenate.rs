//! `GROUP_CONCAT`: texts side by side, in an order of their own, up to the session's longest result.

use crate::error::Result;
use crate::expression::AggregateCall;
use crate::types::{Datum, EvaluationContext, write_sort_key};

use super::super::memory::Reservation;
use super::super::values;

/// Texts that are to be joined.
#[derive(Clone, Default)]
pub(super) struct Concatenation {
    /// With their keys, if there is an order.
    parts: Vec<(Vec<u8>, Vec<u8>)>,
    /// All parts so far, if there is none.
    joined: Option<Vec<u8>>,
    rows: u64,
    cut_at: Option<u64>,
}

impl Concatenation {
    /// Adds a row.
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
        held.require(text.len() + key.len() + 64)?;
        self.parts.push((key, text));
        Ok(())
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
        let longest = usize::try_from(context.group_concat_max_length_bytes).unwrap_or(usize::MAX);
        if joined.len() > longest {
            joined.truncate(whole_characters(joined, longest));
            self.cut_at = Some(self.rows);
        }
    }

    /// The text; NULL of no rows.
    pub(super) fn finish(mut self, call: &AggregateCall, context: &EvaluationContext) -> Datum {
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_by(|(one, _), (other, _)| one.cmp(other));
        if !parts.is_empty() {
            self.rows = 0;
        }
        for (_, text) in parts {
            self.rows += 1;
            self.join(&text, call, context);
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

/// The most bytes up to `longest` that end with a whole character.
fn whole_characters(text: &[u8], longest: usize) -> usize {
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (0..=longest).rev().take(4).find(|at| !is_inside(*at)).unwrap_or(longest)
}
