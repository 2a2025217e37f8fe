//! Texts of clients: one statement or several, parsed and run one after the other.

use std::borrow::Cow;

use firn_sql::collation::Charset;
use firn_sql::error::{ErrorKind, Result, SqlError};
use firn_sql::grammar;
use firn_wire::{Query, Replies, WireError};

use super::execution::{Arguments, LiftedText};
use super::rows::RowStatements;
use super::{SqlSession, binary_text, wire_error};

/// Buffers larger than this are not kept.
const KEPT_TEXT_BYTES: usize = 64 << 10;

impl SqlSession {
    /// Runs a text. See [`firn_wire::Session::query`].
    pub(crate) fn run_query(
        &mut self,
        query: Query<'_>,
        replies: &mut Replies<'_>,
    ) -> std::result::Result<(), WireError> {
        let text = self.decode(query.text).map_err(wire_error)?;
        let mode = self.grammar_mode();
        if !query.multi_statements {
            return self.run_text(&text, replies);
        }
        let mut rest = grammar::split(&text, mode).peekable();
        if rest.peek().is_none() {
            return Err(wire_error(SqlError::new(1065, "Query was empty")));
        }
        while let Some(statement) = rest.next() {
            replies.set_more_results(rest.peek().is_some());
            self.run_text(statement, replies)?;
        }
        Ok(())
    }

    /// A text of the client's character set as UTF-8.
    ///
    /// # Errors
    /// 1300 if it is invalid in that character set.
    pub(super) fn decode<'t>(&self, text: &'t [u8]) -> Result<Cow<'t, str>> {
        let charset = self.settings.client_charset;
        let invalid = || {
            let name = charset.name();
            SqlError::new(1300, format!("Invalid {name} character string"))
        };
        match charset {
            Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Ascii => match std::str::from_utf8(text)
            {
                Ok(text) => Ok(Cow::Borrowed(text)),
                // Bytes inside string literals may be meant for binary columns.
                Err(_) => {
                    let escapes = !self.grammar_mode().no_backslash_escapes;
                    binary_text::with_hexadecimal(text, escapes).map(Cow::Owned).ok_or_else(invalid)
                }
            },
            other => match other.decode(text).ok_or_else(invalid)? {
                Cow::Borrowed(text) => {
                    std::str::from_utf8(text).map(Cow::Borrowed).map_err(|_| invalid())
                }
                Cow::Owned(text) => String::from_utf8(text).map(Cow::Owned).map_err(|_| invalid()),
            },
        }
    }

    /// Whether bytes are valid text in the client's character set.
    pub(super) fn is_client_text(&self, bytes: &[u8]) -> bool {
        let charset = self.settings.client_charset;
        match charset.is_utf8() || charset == Charset::Ascii {
            true => std::str::from_utf8(bytes).is_ok(),
            false => charset.decode(bytes).is_some(),
        }
    }

    /// Runs one statement, counts and times it.
    pub(super) fn run_text(
        &mut self,
        text: &str,
        replies: &mut Replies<'_>,
    ) -> std::result::Result<(), WireError> {
        let began = self.statement_begins(text, None);
        if let Err(error) = self.rights.count_use() {
            let done = Err(wire_error(error));
            self.statement_ends(began, text, None, &done);
            return done;
        }
        let done = loop {
            self.plan_is_stale = false;
            let done = RowStatements { session: self }.try_rows(text, replies);
            let done = done.unwrap_or_else(|| self.run_statement_text(text, replies));
            if done.is_ok() || !self.plan_is_stale || self.facts.is_cancelled() {
                break done;
            }
        };
        self.statement_ends(began, text, None, &done);
        if text.len() > KEPT_TEXT_BYTES {
            self.forget_buffers();
        }
        done
    }

    /// Frees what a long text left in the buffers that the next statement would reuse.
    fn forget_buffers(&mut self) {
        self.buffers.normalised = grammar::Normalised::default();
        self.buffers.literal_rows = grammar::LiteralRows::default();
        self.buffers.arguments = Default::default();
        self.buffers.key = Vec::new();
    }

    /// Parses the statement and executes it. `literals`: those that were lifted out of the text.
    pub(super) fn parse_and_run(
        &mut self,
        text: &str,
        literals: Option<Arguments>,
        replies: &mut Replies<'_>,
    ) -> std::result::Result<(), WireError> {
        let parsed = match self.parse(text, literals.is_some()) {
            Ok(parsed) => parsed,
            Err(error) if error.kind == ErrorKind::EmptyQuery && is_comment(text) => {
                return self.answer_ok(replies);
            }
            Err(error) => {
                self.evaluation.take_conditions();
                self.conditions.clear();
                self.keep_error(&error);
                return Err(wire_error(error));
            }
        };
        let parameter_count = parsed.parameter_count as usize;
        // The grammar has left all of them in the tree if it needs one there.
        let literals = literals.filter(|literals| literals.values.len() == parameter_count);
        if parameter_count > 0 && literals.is_none() {
            let error = SqlError::syntax("?", 1);
            self.conditions.clear();
            self.keep_error(&error);
            return Err(wire_error(error));
        }
        let names_show_literals = parsed.names_show_parameters;
        let lifted = literals.map(|arguments| LiftedText { text, arguments, names_show_literals });
        self.run_parsed(parsed, lifted, replies)
    }

    /// Executes a statement that was just parsed, and sends the answer.
    pub(super) fn run_parsed(
        &mut self,
        parsed: grammar::Parsed,
        lifted: Option<LiftedText<'_>>,
        replies: &mut Replies<'_>,
    ) -> std::result::Result<(), WireError> {
        let outer = std::mem::replace(&mut self.buffers.long_texts, parsed.long_texts);
        let done = self.run_statement(&parsed.statement, lifted, replies);
        self.buffers.long_texts = outer;
        done
    }
}

/// Whether a text without a statement has at least a comment.
fn is_comment(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty() && !text.starts_with(';')
}
