//! `sql_mode`: session switches that change the meaning of SQL.

/// The modes that are on. Combined by `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlMode(pub u64);

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident = $bit:expr;)*) => {
        impl SqlMode {
            $($(#[$doc])* pub const $name: SqlMode = SqlMode(1 << $bit);)*

            /// Every mode by its name, in the order of MySQL's bits, in which the variable shows
            /// them.
            pub const NAMES: &'static [(&'static str, SqlMode)] =
                &[$((stringify!($name), SqlMode::$name)),*];
            pub const ALL: SqlMode = SqlMode($(SqlMode::$name.0)|*);
        }
    };
}

modes! {
    /// REAL is FLOAT.
    REAL_AS_FLOAT = 0;
    /// `||` concatenates.
    PIPES_AS_CONCAT = 1;
    /// `"` quotes identifiers.
    ANSI_QUOTES = 2;
    /// Allows spaces between a function's name and its parenthesis.
    IGNORE_SPACE = 3;
    /// Refuses columns that `GROUP BY` does not determine.
    ONLY_FULL_GROUP_BY = 5;
    /// The result of subtraction is signed.
    NO_UNSIGNED_SUBTRACTION = 6;
    /// Has no effect in Firn.
    NO_DIR_IN_CREATE = 7;
    /// The modes of standard SQL.
    ANSI = 18;
    /// Only NULL generates an AUTO_INCREMENT value, 0 does not.
    NO_AUTO_VALUE_ON_ZERO = 19;
    /// `\` is an ordinary character.
    NO_BACKSLASH_ESCAPES = 20;
    /// Refuses bad values for transactional tables.
    STRICT_TRANS_TABLES = 21;
    /// Refuses bad values for all tables.
    STRICT_ALL_TABLES = 22;
    /// Refuses dates with month or day 0, when strict.
    NO_ZERO_IN_DATE = 23;
    /// Refuses '0000-00-00', when strict.
    NO_ZERO_DATE = 24;
    /// Accepts any day up to 31 in any month.
    ALLOW_INVALID_DATES = 25;
    /// Division by zero is an error when strict.
    ERROR_FOR_DIVISION_BY_ZERO = 26;
    /// A synonym for many modes.
    TRADITIONAL = 27;
    /// `NOT a BETWEEN b AND c` binds as in old versions.
    HIGH_NOT_PRECEDENCE = 29;
    /// No silent choice of another storage engine.
    NO_ENGINE_SUBSTITUTION = 30;
    /// CHAR values are read with their padding.
    PAD_CHAR_TO_FULL_LENGTH = 31;
    /// Fractions of seconds are cut, not rounded.
    TIME_TRUNCATE_FRACTIONAL = 32;
}

impl SqlMode {
    /// MySQL 8's default.
    pub const DEFAULT: SqlMode = SqlMode(
        SqlMode::ONLY_FULL_GROUP_BY.0
            | SqlMode::STRICT_TRANS_TABLES.0
            | SqlMode::NO_ZERO_IN_DATE.0
            | SqlMode::NO_ZERO_DATE.0
            | SqlMode::ERROR_FOR_DIVISION_BY_ZERO.0
            | SqlMode::NO_ENGINE_SUBSTITUTION.0,
    );
    pub const NONE: SqlMode = SqlMode(0);
    const ANSI_ALL: SqlMode = SqlMode(
        SqlMode::REAL_AS_FLOAT.0
            | SqlMode::PIPES_AS_CONCAT.0
            | SqlMode::ANSI_QUOTES.0
            | SqlMode::IGNORE_SPACE.0
            | SqlMode::ONLY_FULL_GROUP_BY.0
            | SqlMode::ANSI.0,
    );
    const TRADITIONAL_ALL: SqlMode = SqlMode(
        SqlMode::STRICT_TRANS_TABLES.0
            | SqlMode::STRICT_ALL_TABLES.0
            | SqlMode::NO_ZERO_IN_DATE.0
            | SqlMode::NO_ZERO_DATE.0
            | SqlMode::ERROR_FOR_DIVISION_BY_ZERO.0
            | SqlMode::NO_ENGINE_SUBSTITUTION.0
            | SqlMode::TRADITIONAL.0,
    );

    /// Whether all of `modes` are on.
    #[must_use]
    pub const fn contains(self, modes: SqlMode) -> bool {
        self.0 & modes.0 == modes.0
    }

    /// Whether bad values are refused.
    #[must_use]
    pub const fn is_strict(self) -> bool {
        self.0 & (SqlMode::STRICT_TRANS_TABLES.0 | SqlMode::STRICT_ALL_TABLES.0) != 0
    }

    /// Modes by their names, separated by commas. `Err` is the unknown name.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn parse(text: &str) -> Result<SqlMode, String> {
        let mut modes = SqlMode::NONE;
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let known = |(known, _): &&(&str, SqlMode)| known.eq_ignore_ascii_case(name);
            let (_, mode) = SqlMode::NAMES.iter().find(known).ok_or(name)?;
            modes = modes | mode.expanded();
        }
        Ok(modes)
    }

    fn expanded(self) -> SqlMode {
        match self {
            SqlMode::ANSI => SqlMode::ANSI_ALL,
            SqlMode::TRADITIONAL => SqlMode::TRADITIONAL_ALL,
            mode => mode,
        }
    }
}

impl std::ops::BitOr for SqlMode {
    type Output = SqlMode;

    fn bitor(self, other: SqlMode) -> SqlMode {
        SqlMode(self.0 | other.0)
    }
}

impl std::fmt::Display for SqlMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let on = SqlMode::NAMES.iter().filter(|(_, mode)| self.contains(*mode));
        f.write_str(&on.map(|(name, _)| *name).collect::<Vec<_>>().join(","))
    }
}
