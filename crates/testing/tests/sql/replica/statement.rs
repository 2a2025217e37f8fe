//! What a text of a script is, by its words: the mirrored sessions need no grammar.

/// What a replica's session does with a text that the writer's session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Returns rows, or may: the answers are compared.
    Query,
    /// Changes the session and nothing else: the replica's session runs it too.
    Setting,
    Begin,
    /// Ends one: `COMMIT`, or `ROLLBACK` of the whole.
    End,
    /// Sets, releases, or goes back to a savepoint.
    Savepoint,
    /// Commits the open transaction first, as definitions do.
    Commits,
    /// Writes, or is of no interest to a replica.
    Other,
}

/// A text and its words in capitals, without quoted parts.
pub(super) struct Statement<'t> {
    pub(super) text: &'t str,
    words: Vec<String>,
}

/// Assignments that reach beyond the session, or choose what the mirrored sessions choose.
const OF_OTHERS: &[&str] = &["GLOBAL", "PERSIST", "PERSIST_ONLY", "PASSWORD", "FIRN_EXECUTOR"];

impl<'t> Statement<'t> {
    pub(super) fn new(text: &'t str) -> Statement<'t> {
        Statement { text, words: words(text) }
    }

    /// The first three words.
    pub(super) fn first(&self) -> Vec<&str> {
        self.words.iter().take(3).map(String::as_str).collect()
    }

    pub(super) fn has(&self, some: &[&str]) -> bool {
        self.words.iter().any(|word| some.contains(&word.as_str()))
    }

    pub(super) fn kind(&self) -> Kind {
        match self.first()[..] {
            ["USE" | "PREPARE" | "DEALLOCATE" | "UNLOCK", ..] | ["DROP", "PREPARE", ..] => {
                Kind::Setting
            }
            ["LOCK", ..] if !self.has(&["WRITE"]) => Kind::Setting,
            ["SET", "DEFAULT", ..] => Kind::Other,
            ["SET", ..] if !self.has(OF_OTHERS) => Kind::Setting,
            ["HANDLER", ..] if !self.has(&["READ"]) => Kind::Setting,
            ["BEGIN", ..] | ["START", "TRANSACTION", ..] => Kind::Begin,
            ["SAVEPOINT" | "RELEASE", ..] | ["ROLLBACK", "TO", ..] | ["ROLLBACK", "WORK", "TO"] => {
                Kind::Savepoint
            }
            ["COMMIT" | "ROLLBACK", ..] => Kind::End,
            ["CREATE", "TEMPORARY", ..] | ["DROP", "TEMPORARY", ..] => Kind::Other,
            ["ALTER" | "CREATE" | "DROP" | "TRUNCATE" | "RENAME" | "GRANT" | "REVOKE", ..] => {
                Kind::Commits
            }
            [
                "CHECK" | "DESC" | "DESCRIBE" | "DO" | "EXECUTE" | "EXPLAIN" | "HANDLER" | "HELP"
                | "SELECT" | "SHOW" | "TABLE" | "VALUES" | "WITH",
                ..,
            ] => Kind::Query,
            _ => Kind::Other,
        }
    }

    /// Whether it may ask for definitions of all schemas.
    pub(super) fn is_about_definitions(&self) -> bool {
        self.has(&["SHOW", "INFORMATION_SCHEMA"])
    }

    /// Whether it orders its rows.
    pub(super) fn is_ordered(&self) -> bool {
        self.has(&["ORDER"])
    }

    /// Whether it shows a plan, which depends on the choice of the executor.
    pub(super) fn shows_a_plan(&self) -> bool {
        matches!(self.first()[..], ["EXPLAIN", ..])
    }

    /// Whether it lists all variables or counters.
    pub(super) fn lists_all(&self) -> bool {
        self.begins_with(&["SHOW"]) && self.has(&["GLOBAL"]) && !self.has(&["LIKE", "WHERE"])
    }

    /// Whether it asks how the statement before it went.
    pub(super) fn asks_of_the_one_before(&self) -> bool {
        self.has(&["WARNINGS", "ERRORS", "WARNING_COUNT", "ERROR_COUNT", "ROW_COUNT", "FOUND_ROWS"])
    }

    /// Whether it locks rows, or writes a file.
    pub(super) fn locks_or_writes(&self) -> bool {
        const PAIRS: [(&str, &str); 5] = [
            ("FOR", "UPDATE"),
            ("FOR", "SHARE"),
            ("SHARE", "MODE"),
            ("INTO", "OUTFILE"),
            ("INTO", "DUMPFILE"),
        ];
        PAIRS.iter().any(|(one, other)| self.has_pair(one, other))
    }

    /// Whether the two words follow each other.
    pub(super) fn has_pair(&self, one: &str, other: &str) -> bool {
        self.words.windows(2).any(|pair| pair[0] == *one && pair[1] == *other)
    }

    /// The names of user variables in it.
    pub(super) fn variables(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut rest = self.text;
        while let Some(at) = rest.find('@') {
            let is_of_the_system = rest[at + 1..].starts_with('@');
            rest = &rest[at + 1 + usize::from(is_of_the_system)..];
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            let length = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
            if !is_of_the_system && length > 0 {
                names.push(rest[..length].to_lowercase());
            }
        }
        names
    }

    /// Whether it sets a user variable.
    pub(super) fn assigns(&self) -> bool {
        self.text.contains(":=") || self.has(&["INTO", "DIAGNOSTICS"]) && self.text.contains('@')
    }

    /// The table that it makes for its session alone.
    pub(super) fn temporary_table(&self) -> Option<&str> {
        let at = self.words.iter().position(|word| word == "TEMPORARY")?;
        let mut names = self.words[at..].iter().map(String::as_str);
        names.find(|word| !["TEMPORARY", "TABLE", "IF", "NOT", "EXISTS"].contains(word))
    }

    /// The value of `SET variable = value`.
    pub(super) fn value_of(&self, variable: &str) -> Option<&str> {
        match self.first()[..] {
            ["SET", name, value] if name == variable => Some(value),
            _ => None,
        }
    }

    /// The first words are these.
    pub(super) fn begins_with(&self, words: &[&str]) -> bool {
        self.words.iter().map(String::as_str).take(words.len()).eq(words.iter().copied())
    }
}

/// The words of a text in capitals, without quoted parts.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for letter in text.chars().chain([' ']) {
        if quote.is_some() {
            quote = quote.filter(|open| *open != letter);
        } else if letter.is_alphanumeric() || letter == '_' {
            word.extend(letter.to_uppercase());
        } else {
            quote = Some(letter).filter(|letter| ['\'', '"'].contains(letter));
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        }
    }
    words
}
