//! The parser: a cursor over tokens, and the names and lists that every statement has.
//!
//! It reads one token at a time and never goes back over tokens that it has used, so it fails at
//! the token that MySQL would name. Where two forms begin alike, it looks ahead in the tokens and
//! then decides.
//!
//! The stack is bounded: expressions, queries and parentheses around tables nest through `deeper`,
//! which refuses once a certain part of the stack is used. The height of a tree (`height`) is
//! bounded too, because a long chain of operators makes a tall tree without nesting, and traversing
//! or dropping a tree also uses the stack.

mod account;
mod admin;
mod alter;
mod column;
mod deprecated;
mod dml;
mod expression;
mod from;
mod function;
mod logical;
mod parentheses;
mod partition;
mod query;
mod schema;
mod session;
mod show;
mod statement;
mod table;
mod transaction;

use std::borrow::Cow;

use firn_base::memory;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::watch::{Recursion, Watch, nest};

use super::ast::{Into, TableName, Value};
use super::lexer::{Kind, Lexer, Token, unquote, unquoted};
use super::{LONG_TEXT_BYTES, Literal, LongTexts, Mode, keywords};

pub(crate) use statement::{whole_column_type, whole_expression, whole_statement};

/// The most tokens for which memory is reserved at first. A long text may be a single literal, and
/// then it has few tokens.
const MOST_TOKENS_AT_FIRST: usize = 4096;

/// A parser over the tokens of a statement.
pub(crate) struct Parser<'a> {
    text: &'a str,
    mode: Mode,
    tokens: Vec<Token>,
    at: usize,
    watch: &'a Watch<'a>,
    height: u32,
    query_depth: u32,
    /// The token that closes each opening parenthesis; empty until it is first needed.
    closing: Vec<u32>,
    /// Whether parentheses only group: they enclose neither a row nor a query.
    grouping: Vec<bool>,
    into_allowed: bool,
    into: Option<Into>,
    parameters: u32,
    names_show_parameters: bool,
    /// Long string literals are stored apart from the tree.
    apart: bool,
    long_texts: LongTexts,
}

impl<'a> Parser<'a> {
    /// # Errors
    /// 1317 or 3024 if the statement must end.
    pub(crate) fn new(text: &'a str, mode: Mode, watch: &'a Watch<'a>) -> Result<Parser<'a>> {
        let mut lexer = Lexer::new(text, mode);
        let mut tokens = Vec::with_capacity((text.len() / 4 + 4).min(MOST_TOKENS_AT_FIRST));
        loop {
            watch.step()?;
            let token = lexer.next();
            tokens.push(token);
            if token.kind == Kind::End {
                break;
            }
        }
        Ok(Parser {
            text,
            mode,
            tokens,
            at: 0,
            watch,
            height: 0,
            query_depth: 0,
            closing: Vec::new(),
            grouping: Vec::new(),
            into_allowed: false,
            into: None,
            parameters: 0,
            names_show_parameters: false,
            apart: false,
            long_texts: LongTexts::new(),
        })
    }

    /// The same, but long string literals are stored apart from the tree.
    pub(super) fn with_long_texts_apart(mut self) -> Parser<'a> {
        self.apart = true;
        self
    }

    /// The same, but these literals of the text, in its order, are read as parameters.
    pub(super) fn with_parameters(mut self, literals: &[Literal]) -> Parser<'a> {
        let mut tokens = self.tokens.iter_mut();
        for literal in literals {
            let start = literal.range().start;
            if let Some(token) = tokens.find(|token| token.start as usize == start) {
                token.kind = Kind::Parameter;
            }
        }
        self
    }

    /// Parses a part whose literals must be in the tree.
    fn in_tree<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let apart = std::mem::take(&mut self.apart);
        let parsed = parse(self);
        self.apart = apart;
        parsed
    }

    /// The literals that were stored apart.
    pub(super) fn take_long_texts(&mut self) -> LongTexts {
        std::mem::take(&mut self.long_texts)
    }

    /// How many `?` were read.
    pub(crate) fn parameter_count(&self) -> u32 {
        self.parameters
    }

    /// Whether the text of a `?` is part of a column's name.
    pub(crate) fn names_show_parameters(&self) -> bool {
        self.names_show_parameters
    }

    /// The token some tokens ahead.
    fn token(&self, ahead: usize) -> Token {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> Kind {
        self.token(0).kind
    }

    fn kind_at(&self, ahead: usize) -> Kind {
        self.token(ahead).kind
    }

    fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// The text from one token up to the current one.
    fn text_since(&self, from: usize) -> &'a str {
        let start = self.tokens[from].start as usize;
        let end = if self.at > from { self.tokens[self.at - 1].end as usize } else { start };
        &self.text[start..end]
    }

    fn advance(&mut self) -> Token {
        let token = self.token(0);
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    /// Whether the token some tokens ahead is this word, unquoted. Words are given in upper case.
    fn is_at(&self, ahead: usize, word: &str) -> bool {
        let token = self.token(ahead);
        token.kind == Kind::Word && self.text_of(token).eq_ignore_ascii_case(word)
    }

    fn is(&self, word: &str) -> bool {
        self.is_at(0, word)
    }

    fn is_any(&self, list: &[&str]) -> bool {
        list.iter().any(|word| self.is(word))
    }

    /// Whether these words follow one another from here.
    fn are(&self, list: &[&str]) -> bool {
        list.iter().enumerate().all(|(ahead, word)| self.is_at(ahead, word))
    }

    /// The current word in upper case; empty if it is not an unquoted word.
    fn upper(&self) -> String {
        self.upper_at(0)
    }

    fn upper_at(&self, ahead: usize) -> String {
        let token = self.token(ahead);
        match token.kind {
            Kind::Word => self.text_of(token).to_ascii_uppercase(),
            _ => String::new(),
        }
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    /// Takes one of several words.
    fn accept_any(&mut self, list: &[&'static str]) -> Option<&'static str> {
        let found = list.iter().find(|word| self.is(word)).copied();
        self.at += usize::from(found.is_some());
        found
    }

    /// Takes all of these words, or none.
    fn accept_all(&mut self, list: &[&str]) -> bool {
        let found = self.are(list);
        self.at += if found { list.len() } else { 0 };
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.accept(word) { Ok(()) } else { self.error() }
    }

    fn expect_any(&mut self, list: &[&'static str]) -> Result<&'static str> {
        self.accept_any(list).map_or_else(|| self.error(), Ok)
    }

    /// Expects these words one after another.
    fn expect_all(&mut self, list: &[&str]) -> Result<()> {
        list.iter().try_for_each(|word| self.expect(word))
    }

    fn take(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        self.at += usize::from(found && kind != Kind::End);
        found
    }

    fn need(&mut self, kind: Kind) -> Result<()> {
        if self.take(kind) { Ok(()) } else { self.error() }
    }

    /// MySQL's error for a text that is wrong at the current token.
    fn error<T>(&self) -> Result<T> {
        let (near, line) = self.near();
        Err(SqlError::syntax(near, line))
    }

    fn near(&self) -> (&'a str, u64) {
        let start = self.token(0).start as usize;
        let line = self.text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
        (&self.text[start..], line as u64 + 1)
    }

    /// Nests one deeper, or refuses.
    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        nest(Recursion::Parse)?;
        self.watch.step()?;
        f(self)
    }

    /// One or more, separated by commas.
    fn list<T>(&mut self, mut f: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![f(self)?];
        while self.take(Kind::Comma) {
            items.push(f(self)?);
        }
        Ok(items)
    }

    fn parens<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.need(Kind::LeftParen)?;
        let inner = f(self)?;
        self.need(Kind::RightParen)?;
        Ok(inner)
    }

    fn parens_list<T>(&mut self, f: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.parens(|parser| parser.list(f))
    }

    /// A list in parentheses that may be empty.
    fn parens_maybe_empty<T>(&mut self, f: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.parens(
            |parser| {
                if parser.kind() == Kind::RightParen { Ok(Vec::new()) } else { parser.list(f) }
            },
        )
    }

    /// Whether the token some tokens ahead is a name that is not reserved.
    fn is_ident_at(&self, ahead: usize) -> bool {
        let token = self.token(ahead);
        match token.kind {
            Kind::Quoted => true,
            Kind::Word => !keywords::is_reserved(self.text_of(token)),
            _ => false,
        }
    }

    /// A name that is not reserved, or quoted.
    fn ident(&mut self) -> Result<String> {
        if !self.is_ident_at(0) {
            return self.error();
        }
        Ok(self.name_of_current())
    }

    /// The name of a word or quoted name.
    fn name_of_current(&mut self) -> String {
        let token = self.advance();
        let text = self.text_of(token);
        if token.kind == Kind::Quoted { unquote(text, false) } else { text.to_owned() }
    }

    /// A name after a point, where reserved words are names too.
    fn any_ident(&mut self) -> Result<String> {
        match self.kind() {
            Kind::Word | Kind::Quoted => Ok(self.name_of_current()),
            _ => self.error(),
        }
    }

    /// A name or a string.
    fn ident_or_text(&mut self) -> Result<String> {
        if self.kind() == Kind::Text { self.string() } else { self.ident() }
    }

    /// Any word, or a string: the names of character sets, engines and the like.
    fn word_or_text(&mut self) -> Result<String> {
        if self.kind() == Kind::Text { self.string() } else { self.any_ident() }
    }

    /// A string in the place of an expression.
    fn text_operand(&mut self) -> Result<Value> {
        let token = self.token(0);
        let is_long = token.end - token.start >= LONG_TEXT_BYTES as u32;
        if !(self.apart && is_long) || self.kind_at(1) == Kind::Text {
            return self.string().map(Value::Text);
        }
        let token = self.advance();
        let written = self.text_of(token);
        let _promise = memory::ask(written.len())?;
        self.long_texts.push(match unquoted(written, !self.mode.no_backslash_escapes) {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        });
        Ok(Value::LongText(self.long_texts.len() as u32 - 1))
    }

    /// A string, joined with the strings directly after it.
    fn string(&mut self) -> Result<String> {
        if self.kind() != Kind::Text {
            return self.error();
        }
        let escapes = !self.mode.no_backslash_escapes;
        let token = self.advance();
        let mut text = unquote(self.text_of(token), escapes);
        while self.kind() == Kind::Text {
            let token = self.advance();
            text.push_str(&unquote(self.text_of(token), escapes));
        }
        Ok(text)
    }

    /// A whole number in the text.
    fn integer<T: std::str::FromStr>(&mut self) -> Result<T> {
        if self.kind() != Kind::Integer {
            return self.error();
        }
        let token = self.token(0);
        match self.text_of(token).parse() {
            Ok(number) => {
                self.at += 1;
                Ok(number)
            }
            Err(_) => self.error(),
        }
    }

    /// A table's name, optionally with its database's before a point.
    fn table_name(&mut self) -> Result<TableName> {
        if self.take(Kind::Dot) {
            return Ok(TableName { schema: None, name: self.any_ident()? });
        }
        let first = self.ident()?;
        if self.kind() == Kind::Dot && self.kind_at(1) != Kind::Star {
            self.at += 1;
            return Ok(TableName { schema: Some(first), name: self.any_ident()? });
        }
        Ok(TableName { schema: None, name: first })
    }

    /// A user variable's name.
    fn variable(&mut self) -> Result<String> {
        if self.kind() != Kind::UserVariable {
            return self.error();
        }
        let token = self.advance();
        Ok(self.after_at(token))
    }

    /// The text after the `@` of a token.
    fn after_at(&self, token: Token) -> String {
        let name = &self.text_of(token)[1..];
        match name.as_bytes().first() {
            Some(b'`') => unquote(name, false),
            Some(b'\'' | b'"') => unquote(name, !self.mode.no_backslash_escapes),
            _ => name.to_owned(),
        }
    }

    fn if_exists(&mut self) -> bool {
        self.accept_all(&["IF", "EXISTS"])
    }

    fn if_not_exists(&mut self) -> bool {
        self.accept_all(&["IF", "NOT", "EXISTS"])
    }

    /// `CHARACTER SET`, `CHAR SET` or `CHARSET`.
    fn charset_words(&mut self) -> bool {
        self.accept("CHARSET")
            || self.accept_all(&["CHARACTER", "SET"])
            || self.accept_all(&["CHAR", "SET"])
    }

    /// The texts of the hints here.
    fn hints(&mut self) -> Vec<String> {
        let mut hints = Vec::new();
        while self.kind() == Kind::Hint {
            let token = self.advance();
            let text = self.text_of(token);
            hints.push(text[3..text.len() - 2].trim().to_owned());
        }
        hints
    }
}
