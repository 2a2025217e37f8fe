//! Parsed patterns of `LIKE`, kept for an execution.
//!
//! The address of the pattern's expression says where to look, but not what is there. The text, the
//! collation and the escape character are compared, so if another expression has taken over the
//! place, the pattern is just parsed again.

use firn_format::value::CollationId;
use firn_sql_collation::LikePattern;
use firn_sql_logical::expression::Expression;
use firn_sql_types::ByteString;
use rustc_hash::FxHashMap;

/// What a pattern is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) text: &'s ByteString,
    pub(crate) collation: CollationId,
    /// `None`: no escapes.
    pub(crate) escape: Option<char>,
}

/// A pattern and what it was made from.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) text: ByteString,
    pub(crate) collation: CollationId,
    pub(crate) escape: Option<char>,
    pub(crate) pattern: LikePattern,
}

/// The patterns of one execution.
#[derive(Debug, Default)]
pub struct KnownPatterns {
    by_place: FxHashMap<usize, Known>,
}

impl KnownPatterns {
    /// Where the pattern of an expression is kept.
    pub(crate) fn place(expression: &Expression) -> usize {
        std::ptr::from_ref(expression) as usize
    }

    /// The pattern made from `source`, if it is the one kept there.
    pub(crate) fn get(&self, place: usize, source: Source<'_>) -> Option<&LikePattern> {
        let known = self.by_place.get(&place)?;
        let is_same = known.text == *source.text
            && known.collation == source.collation
            && known.escape == source.escape;
        is_same.then_some(&known.pattern)
    }

    /// Keeps a pattern there.
    pub(crate) fn learn(&mut self, place: usize, known: Known) {
        self.by_place.insert(place, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_sql_collation as collation;
    use firn_sql_logical::expression::ExpressionKind;
    use firn_sql_types::{Datum, SqlType};

    #[test]
    fn a_place_that_another_expression_takes_over_is_noticed() {
        let expression =
            Expression { kind: ExpressionKind::Literal(Datum::Null), ty: SqlType::null() };
        let place = KnownPatterns::place(&expression);
        let (first, second) = (ByteString::from(&b"A|_"[..]), ByteString::from(&b"B|_"[..]));
        let mut patterns = KnownPatterns::default();
        let known = |escape| Known {
            text: first.clone(),
            collation: CollationId(45),
            escape,
            pattern: LikePattern::new(collation::get(CollationId(45)), &first, escape),
        };
        patterns.learn(place, known(None));
        let source = Source { text: &first, collation: CollationId(45), escape: None };
        assert!(patterns.get(place, source).unwrap().matches(b"a|x"));
        let others = [
            Source { text: &second, ..source },
            Source { collation: CollationId(46), ..source },
            Source { escape: Some('|'), ..source },
        ];
        assert!(others.iter().all(|other| patterns.get(place, *other).is_none()));
        patterns.learn(place, known(Some('|')));
        let escaped = patterns.get(place, others[2]).unwrap();
        assert!(escaped.matches(b"a_") && !escaped.matches(b"a|x"));
    }
}
