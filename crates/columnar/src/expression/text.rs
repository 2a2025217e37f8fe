//! Tests of text against constants, and the weights that order text.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, RecordBatch};
use firn_format::value::CollationId;
use firn_sql::collation::{self, Collation, LikePattern};
use firn_sql::expression::CompareOperator;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Kernel;
use super::compare::test_rows;
use crate::stop_reason::Result;

/// Values of one batch whose results are remembered.
const REMEMBERED: usize = 256;

/// Results for repeated texts of a batch. If texts do not repeat, it stops looking.
struct Memory<'t, T> {
    answers: FxHashMap<&'t [u8], T>,
    found: usize,
}

impl<T> Default for Memory<'_, T> {
    fn default() -> Self {
        Memory { answers: FxHashMap::default(), found: 0 }
    }
}

impl<'t, T> Memory<'t, T> {
    fn find(&mut self, text: &[u8]) -> Option<&T> {
        if self.answers.len() == REMEMBERED && self.found < REMEMBERED {
            return None;
        }
        let answer = self.answers.get(text)?;
        self.found += 1;
        Some(answer)
    }

    fn keep(&mut self, text: &'t [u8], answer: impl FnOnce() -> T) {
        if self.answers.len() < REMEMBERED {
            self.answers.insert(text, answer());
        }
    }
}

/// A test of a text.
pub(crate) enum Question {
    /// How it compares with a constant.
    Compare(CompareOperator, &'static Collation, Box<[u8]>),
    /// Whether its sort key is one of these; and whether NULL is in the list.
    OneOf(&'static Collation, FxHashSet<Box<[u8]>>, bool),
    /// Whether it has a pattern.
    Like(LikePattern),
}

pub(crate) struct TextTest {
    pub(crate) operand: Kernel,
    pub(crate) question: Question,
    pub(crate) negated: bool,
}

impl std::fmt::Debug for TextTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TextTest({:?})", self.operand)
    }
}

impl TextTest {
    pub(super) fn truth(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let array = self.operand.evaluate(batch)?;
        let texts = array.as_binary::<i32>();
        let mut answers: Memory<'_, bool> = Memory::default();
        let mut key = Vec::new();
        let mut ask = |text: &[u8]| {
            let answer = match &self.question {
                Question::Compare(operator, collation, other) => {
                    operator.holds(collation.compare(text, other))
                }
                Question::OneOf(collation, keys, _) => {
                    key.clear();
                    collation.write_sort_key(text, &mut key);
                    keys.contains(&*key)
                }
                Question::Like(pattern) => pattern.matches(text),
            };
            answer != self.negated
        };
        let truth = test_rows(&array, |row| {
            if texts.is_null(row) {
                return false;
            }
            let text = texts.value(row);
            if let Some(answer) = answers.find(text) {
                return *answer;
            }
            let answer = ask(text);
            answers.keep(text, || answer);
            answer
        });
        match self.question {
            // If the list has a NULL, a text that is not found gives NULL.
            Question::OneOf(_, _, true) => {
                let found = !self.negated;
                let known = |row: usize| truth.is_valid(row) && truth.value(row) == found;
                let rows = (0..truth.len()).map(|row| known(row).then_some(found));
                Ok(rows.collect())
            }
            _ => Ok(truth),
        }
    }
}

/// Columns whose bytes compare as the texts do. Binary texts are their own weights.
pub(crate) fn weights(array: &ArrayRef, collation: CollationId) -> ArrayRef {
    if collation == CollationId::BINARY {
        return array.clone();
    }
    let collation = collation::get(collation);
    let texts = array.as_binary::<i32>();
    let mut keys: Memory<'_, Box<[u8]>> = Memory::default();
    let mut out = BinaryBuilder::with_capacity(texts.len(), texts.len() * 16);
    let mut key = Vec::new();
    for text in texts {
        let Some(text) = text else {
            out.append_null();
            continue;
        };
        if let Some(key) = keys.find(text) {
            out.append_value(key);
            continue;
        }
        key.clear();
        collation.write_sort_key(text, &mut key);
        out.append_value(&key);
        keys.keep(text, || key.as_slice().into());
    }
    Arc::new(out.finish())
}
