//! The state that `PROCESSLIST` shows for a statement without a named wait.
//!
//! MySQL names the stage of the server's code: `updating` for `UPDATE` and `DELETE` of one table,
//! `update` for `INSERT` and `REPLACE` of values, `executing` for everything else that reads
//! tables. A session that waits for a row lock stays in that stage. The list is rarely read, so the
//! state is derived from the statement's text.

/// The state of a running statement, by its text.
pub(crate) fn state_of(statement: &str) -> &'static str {
    let mut words = Words(statement);
    match words.next_in_capitals().as_str() {
        "UPDATE" if has_one_table(words, "SET") => "updating",
        "DELETE" if deletes_from_one_table(words) => "updating",
        "INSERT" | "REPLACE" if !words.any(|word| matches!(word, "SELECT" | "TABLE" | "WITH")) => {
            "update"
        }
        "SHOW" => "init",
        _ => "executing",
    }
}

/// Whether one table is named before the word `end`.
fn has_one_table(mut words: Words<'_>, end: &str) -> bool {
    loop {
        match words.next_in_capitals().as_str() {
            word if word == end || word.is_empty() => return true,
            "," | "JOIN" | "STRAIGHT_JOIN" => return false,
            _ => {}
        }
    }
}

/// `DELETE FROM t` and not `DELETE t FROM …` or `DELETE FROM t USING …`.
fn deletes_from_one_table(mut words: Words<'_>) -> bool {
    loop {
        match words.next_in_capitals().as_str() {
            "LOW_PRIORITY" | "QUICK" | "IGNORE" => {}
            "FROM" => return !words.any(|word| word == "USING") && has_one_table(words, "WHERE"),
            _ => return false,
        }
    }
}

/// Words and signs of a statement. Quoted text is one word, and comments are skipped.
#[derive(Clone, Copy)]
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    /// The next word; empty at the end.
    fn next(&mut self) -> &'a str {
        self.skip_blanks();
        let length = match self.0.chars().next() {
            None => 0,
            Some(quote @ ('\'' | '"' | '`')) => quoted_length(self.0, quote),
            Some(first) if is_of_word(first) => {
                self.0.find(|c| !is_of_word(c)).unwrap_or(self.0.len())
            }
            Some(sign) => sign.len_utf8(),
        };
        let (word, rest) = self.0.split_at(length);
        self.0 = rest;
        word
    }

    fn next_in_capitals(&mut self) -> String {
        self.next().to_ascii_uppercase()
    }

    /// Whether one of the following words passes a test.
    fn any(mut self, test: impl Fn(&str) -> bool) -> bool {
        loop {
            let word = self.next_in_capitals();
            if word.is_empty() || test(&word) {
                return !word.is_empty();
            }
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.0.trim_start();
            let end = if rest.starts_with("/*") {
                rest.find("*/").map(|at| at + 2)
            } else if rest.starts_with('#') || rest.starts_with("-- ") {
                rest.find('\n').map(|at| at + 1)
            } else {
                self.0 = rest;
                return;
            };
            self.0 = &rest[end.unwrap_or(rest.len())..];
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// The bytes of quoted text, including the quotes.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if quote != '`' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::state_of;

    /// As in MySQL 9.7, while the statement waits for a row.
    #[test]
    fn states_are_mysqls() {
        for (state, statements) in [
            (
                "updating",
                &["update w set v = 3 where id in (1, 2)", "DELETE FROM w WHERE id = 1"][..],
            ),
            ("updating", &["/* a */ UPDATE `a,b` SET v = ','", "delete quick from w"]),
            (
                "update",
                &[
                    "INSERT INTO w VALUES (1, 'select')",
                    "insert into w values (1, 5) on duplicate key update v = 7",
                    "REPLACE INTO w SET id = 1",
                ],
            ),
            (
                "executing",
                &[
                    "SELECT * FROM w FOR UPDATE",
                    "UPDATE w a JOIN w b ON a.id = b.id SET a.v = 5",
                    "UPDATE w a, w b SET a.v = 5",
                    "DELETE a FROM w a JOIN w b",
                    "DELETE FROM a USING w a JOIN w b",
                    "INSERT INTO w SELECT id, v FROM w FOR SHARE",
                    "CREATE TABLE w2 AS SELECT * FROM w FOR SHARE",
                    "",
                    "'",
                ],
            ),
            ("init", &["SHOW PROCESSLIST"]),
        ] {
            for statement in statements {
                assert_eq!(state_of(statement), state, "{statement}");
            }
        }
    }
}
