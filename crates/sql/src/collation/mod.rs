//! Character sets and collations: which there are, and how they compare, fold and match text.
