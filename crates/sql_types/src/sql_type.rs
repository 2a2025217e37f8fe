//! The static type of a column or an expression.

use std::sync::Arc;

use firn_format::value::CollationId;
pub use firn_format::value::IntWidth;
use firn_sql_collation::{self as collation, Charset};

use super::decimal::{MAX_LITERAL_SCALE, MAX_PRECISION, MAX_SCALE};
use super::display::Display;

/// Type, nullability and, for text, the coercibility of its collation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SqlType {
    /// The set of values.
    pub kind: TypeKind,
    /// Whether NULL is one of them.
    pub nullable: bool,
    /// Whose collation is used when texts are combined; no meaning for other types.
    pub coercibility: Coercibility,
    /// What it was before the planner evaluated it, if this is the type of such a constant.
    pub before: Before,
}

/// The display of an expression before it became a constant: clients see that display, not the one
/// of the computed value. Types that differ only in it are equal.
#[derive(Clone, Debug, Default)]
pub struct Before(Option<Arc<WorkedOut>>);

/// See [`Before`].
#[derive(Debug)]
pub struct WorkedOut {
    /// The values that it could have had.
    pub shown: Display,
    /// Whether it could have been NULL.
    pub nullable: bool,
    /// The operand, if the constant is an operand that was cast to what an operation wants.
    pub operand: (SqlType, Display),
    /// The operand as it was written, before any cast.
    pub written: (SqlType, Display),
    /// How it was written, if it is a literal of bytes, which is a number beside numbers.
    pub bytes: Option<WrittenBytes>,
    /// Whether it is the text of a function, whose number warns of nothing.
    pub is_quiet: bool,
}

/// A literal of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenBytes {
    /// `x'4A'`: an unsigned number.
    Hexadecimal,
    /// `b'01'`: a signed one in arithmetic.
    Bits,
}

impl Before {
    /// What a constant was.
    #[must_use]
    pub fn of(worked_out: WorkedOut) -> Before {
        Before(Some(Arc::new(worked_out)))
    }

    /// What the constant was before it was evaluated, if it was.
    #[must_use]
    pub fn get(&self) -> Option<&WorkedOut> {
        self.0.as_deref()
    }
}

impl PartialEq for Before {
    fn eq(&self, _: &Before) -> bool {
        true
    }
}

impl Eq for Before {}

impl std::hash::Hash for Before {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// MySQL's coercibility of collations: of two different ones, the stronger (smaller) rank decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Coercibility {
    /// `COLLATE` was written.
    Explicit = 0,
    /// A column, or a stored variable.
    Implicit = 2,
    /// `USER()`, `VERSION()` and the like.
    SystemConstant = 3,
    /// A literal, a parameter, a user variable.
    Coercible = 4,
    /// Text made from a number or a date.
    Numeric = 5,
    /// NULL.
    Ignorable = 6,
    /// Two different collations met, and neither was stronger.
    None = 7,
}

impl Coercibility {
    /// MySQL's number; the smaller one is stronger.
    #[must_use]
    pub const fn rank(self) -> u8 {
        self as u8
    }

    /// The number in messages and in the state of sessions.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Coercibility::None => 1,
            other => other.rank(),
        }
    }

    /// The coercibility of this code; `None` if there is no such code.
    #[must_use]
    pub const fn of_code(code: u8) -> Option<Coercibility> {
        Some(match code {
            0 => Coercibility::Explicit,
            1 => Coercibility::None,
            2 => Coercibility::Implicit,
            3 => Coercibility::SystemConstant,
            4 => Coercibility::Coercible,
            5 => Coercibility::Numeric,
            6 => Coercibility::Ignorable,
            _ => return None,
        })
    }
}

/// The names of an `ENUM` or `SET`, in order of definition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Members(Box<[Box<str>]>);

impl Members {
    /// Members of these names.
    #[must_use]
    pub fn new<T: Into<Box<str>>>(names: impl IntoIterator<Item = T>) -> Members {
        Members(names.into_iter().map(Into::into).collect())
    }

    /// The names; the first is ordinal 1 of an enum and bit 0 of a set.
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.0
    }

    /// The name for an enum's ordinal (from 1); `""` for the error value 0.
    #[must_use]
    pub fn name_of(&self, ordinal: u64) -> &str {
        let index = usize::try_from(ordinal).ok().and_then(|ordinal| ordinal.checked_sub(1));
        index.and_then(|index| self.0.get(index)).map_or("", |name| name)
    }

    /// The names of a set's bits, joined by commas.
    #[must_use]
    pub fn names_of(&self, bits: u64) -> String {
        let chosen = self.0.iter().take(64).enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
        chosen.map(|(_, name)| &**name).collect::<Vec<_>>().join(",")
    }
}

/// The set of values of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// The literal NULL.
    Null,
    /// `TINYINT` to `BIGINT`.
    Integer {
        /// Bytes stored.
        width: IntWidth,
        /// Whether negative numbers are out of range.
        unsigned: bool,
    },
    /// `BIT(bits)`
    Bit {
        /// 1 to 64.
        bits: u8,
    },
    Year,
    /// `DECIMAL(precision, scale)`
    Decimal {
        /// All digits, 1 to 65.
        precision: u8,
        /// Digits after the point, 0 to 30.
        scale: u8,
        /// Whether negative numbers are out of range.
        unsigned: bool,
    },
    Float,
    Double,
    /// `CHAR(max_chars)`
    Char {
        /// Longest value in characters.
        max_chars: u32,
        collation: CollationId,
    },
    /// `VARCHAR(max_chars)`, and the type of text expressions.
    Varchar {
        /// Longest value in characters.
        max_chars: u32,
        collation: CollationId,
    },
    /// `TINYTEXT` to `LONGTEXT`
    Text {
        /// Longest value in bytes.
        max_bytes: u32,
        collation: CollationId,
    },
    /// `BINARY(max_bytes)`
    Binary {
        /// The length of every value in bytes.
        max_bytes: u32,
    },
    /// `VARBINARY(max_bytes)`, and the type of binary expressions.
    Varbinary {
        /// Longest value in bytes.
        max_bytes: u32,
    },
    /// `TINYBLOB` to `LONGBLOB`
    Blob {
        /// Longest value in bytes.
        max_bytes: u32,
    },
    Date,
    /// `TIME(fsp)`
    Time {
        /// Digits of the fraction of a second.
        fsp: u8,
    },
    /// `DATETIME(fsp)`
    DateTime {
        /// Digits of the fraction of a second.
        fsp: u8,
    },
    /// `TIMESTAMP(fsp)`
    Timestamp {
        /// Digits of the fraction of a second.
        fsp: u8,
    },
    Enum {
        members: Arc<Members>,
        /// The collation of the names.
        collation: CollationId,
    },
    Set {
        members: Arc<Members>,
        /// The collation of the names.
        collation: CollationId,
    },
    Json,
    /// `GEOMETRY` and the like.
    Geometry,
}

impl SqlType {
    /// A type whose values may be NULL, with the usual coercibility of its kind in an expression.
    #[must_use]
    pub fn new(kind: TypeKind) -> SqlType {
        let coercibility = kind.expression_coercibility();
        SqlType { kind, nullable: true, coercibility, before: Before::default() }
    }

    /// The type of the literal NULL.
    #[must_use]
    pub fn null() -> SqlType {
        SqlType::new(TypeKind::Null)
    }

    #[must_use]
    pub fn bigint() -> SqlType {
        SqlType::new(TypeKind::Integer { width: IntWidth::Eight, unsigned: false })
    }

    #[must_use]
    pub fn bigint_unsigned() -> SqlType {
        SqlType::new(TypeKind::Integer { width: IntWidth::Eight, unsigned: true })
    }

    /// The type of comparisons and truth values: a `BIGINT` that is 0, 1 or NULL.
    #[must_use]
    pub fn boolean() -> SqlType {
        SqlType::bigint()
    }

    #[must_use]
    pub fn double() -> SqlType {
        SqlType::new(TypeKind::Double)
    }

    /// `DECIMAL(precision, scale)`, limited to what MySQL allows. More digits after the point than
    /// a column has are those of an expression, whose precision is not limited.
    #[must_use]
    pub fn decimal(precision: u8, scale: u8) -> SqlType {
        let scale = scale.min(MAX_LITERAL_SCALE);
        let most = if scale > MAX_SCALE { u8::MAX } else { MAX_PRECISION };
        let precision = precision.clamp(scale.max(1), most);
        SqlType::new(TypeKind::Decimal { precision, scale, unsigned: false })
    }

    /// Any exact number with this many digits after the point.
    #[must_use]
    pub fn decimal_of_scale(scale: u8) -> SqlType {
        let before = MAX_PRECISION - MAX_SCALE;
        SqlType::decimal(MAX_PRECISION.max(scale.saturating_add(before)), scale)
    }

    /// The type of a column that takes the values, as of a derived table or a union: an exact
    /// number keeps at most 30 digits after the point.
    #[must_use]
    pub fn as_column(mut self) -> SqlType {
        if let TypeKind::Decimal { precision, scale, .. } = &mut self.kind
            && *scale > MAX_SCALE
        {
            *precision = (*precision - (*scale - MAX_SCALE)).min(MAX_PRECISION);
            *scale = MAX_SCALE;
        }
        self
    }

    /// Text of at most this many characters.
    #[must_use]
    pub fn varchar(max_chars: u32, collation: CollationId) -> SqlType {
        SqlType::new(TypeKind::Varchar { max_chars, collation })
    }

    /// At most this many bytes.
    #[must_use]
    pub fn varbinary(max_bytes: u32) -> SqlType {
        SqlType::new(TypeKind::Varbinary { max_bytes })
    }

    /// The same, without NULL.
    #[must_use]
    pub fn not_null(self) -> SqlType {
        SqlType { nullable: false, ..self }
    }

    /// The same, with NULL or without.
    #[must_use]
    pub fn with_nullable(self, nullable: bool) -> SqlType {
        SqlType { nullable, ..self }
    }

    /// The same with another coercibility.
    #[must_use]
    pub fn with_coercibility(self, coercibility: Coercibility) -> SqlType {
        SqlType { coercibility, ..self }
    }

    /// The collation of its text form: that of text, enum and set; `binary` for binary strings.
    /// `None` for numbers, dates, JSON and NULL, whose text form has the connection's collation.
    #[must_use]
    pub fn collation(&self) -> Option<CollationId> {
        self.kind.collation()
    }

    /// The character set of that collation.
    #[must_use]
    pub fn charset(&self) -> Option<Charset> {
        self.kind.charset()
    }
}

impl TypeKind {
    fn expression_coercibility(&self) -> Coercibility {
        match self {
            TypeKind::Null => Coercibility::Ignorable,
            kind if kind.is_string() || kind.is_enum_or_set() => Coercibility::Coercible,
            TypeKind::Json | TypeKind::Geometry => Coercibility::Implicit,
            _ => Coercibility::Numeric,
        }
    }

    /// See [`SqlType::charset`].
    #[must_use]
    pub fn charset(&self) -> Option<Charset> {
        self.collation().map(|id| collation::get(id).charset)
    }

    /// See [`SqlType::collation`].
    #[must_use]
    pub fn collation(&self) -> Option<CollationId> {
        match self {
            TypeKind::Char { collation, .. }
            | TypeKind::Varchar { collation, .. }
            | TypeKind::Text { collation, .. }
            | TypeKind::Enum { collation, .. }
            | TypeKind::Set { collation, .. } => Some(*collation),
            TypeKind::Binary { .. }
            | TypeKind::Varbinary { .. }
            | TypeKind::Blob { .. }
            | TypeKind::Geometry => Some(CollationId::BINARY),
            _ => None,
        }
    }

    /// `CHAR`, `VARCHAR` or `TEXT`.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self, TypeKind::Char { .. } | TypeKind::Varchar { .. } | TypeKind::Text { .. })
    }

    /// `BINARY`, `VARBINARY` or `BLOB`.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        matches!(self, TypeKind::Binary { .. } | TypeKind::Varbinary { .. } | TypeKind::Blob { .. })
    }

    /// Text or binary.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.is_text() || self.is_binary()
    }

    /// `ENUM` or `SET`.
    #[must_use]
    pub fn is_enum_or_set(&self) -> bool {
        matches!(self, TypeKind::Enum { .. } | TypeKind::Set { .. })
    }

    /// An integer, a bit field or a year.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(self, TypeKind::Integer { .. } | TypeKind::Bit { .. } | TypeKind::Year)
    }

    /// An integer, decimal, float or double.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        self.is_integer()
            || matches!(self, TypeKind::Decimal { .. } | TypeKind::Float | TypeKind::Double)
    }

    /// A date, time, datetime or timestamp.
    #[must_use]
    pub fn is_temporal(&self) -> bool {
        self.has_date() || matches!(self, TypeKind::Time { .. })
    }

    /// A date, datetime or timestamp.
    #[must_use]
    pub fn has_date(&self) -> bool {
        matches!(self, TypeKind::Date | TypeKind::DateTime { .. } | TypeKind::Timestamp { .. })
    }

    /// Whether numbers of the type are never negative.
    #[must_use]
    pub fn is_unsigned(&self) -> bool {
        match self {
            TypeKind::Integer { unsigned, .. } | TypeKind::Decimal { unsigned, .. } => *unsigned,
            TypeKind::Bit { .. } | TypeKind::Year => true,
            _ => self.is_enum_or_set(),
        }
    }

    /// Fractional second digits of values of the type.
    #[must_use]
    pub fn fsp(&self) -> u8 {
        match self {
            TypeKind::Time { fsp } | TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
                *fsp
            }
            _ => 0,
        }
    }
}
