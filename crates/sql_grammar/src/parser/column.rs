//! Columns: their types and attributes.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    ColumnDefault, ColumnDefinition, ColumnType, Expr, Generated, IntegerSize, LobSize,
    NumberAttributes, TextAttributes,
};
use super::super::lexer::Kind;
use super::{Parser, deprecated, dml, expression, table, transaction};

/// A column's name, type and attributes.
pub(super) fn column_definition(parser: &mut Parser<'_>) -> Result<ColumnDefinition> {
    let name = dml::column_name(parser)?.column;
    column_definition_of(parser, name)
}

/// The same after its name.
pub(super) fn column_definition_of(
    parser: &mut Parser<'_>,
    name: String,
) -> Result<ColumnDefinition> {
    let serial = parser.is("SERIAL");
    let from = parser.at;
    let column_type = column_type(parser)?;
    let to = parser.at;
    let mut column = ColumnDefinition {
        name,
        column_type,
        nullable: serial.then_some(false),
        default: None,
        on_update_now: None,
        auto_increment: serial,
        primary_key: false,
        unique: serial,
        generated: None,
        visible: None,
        comment: None,
        checks: Vec::new(),
        references: None,
        srid: None,
        ignored: Vec::new(),
        deprecated: Vec::new(),
    };
    if parser.accept_all(&["GENERATED", "ALWAYS"]) || parser.is("AS") {
        generated(parser, &mut column)?;
    }
    while column_attribute(parser, &mut column)? {}
    column.deprecated = deprecated::of_type(parser, from..to, &column.column_type);
    Ok(column)
}

fn generated(parser: &mut Parser<'_>, column: &mut ColumnDefinition) -> Result<()> {
    parser.expect("AS")?;
    let expression = parser.parens(expression::expression)?;
    let stored = parser.accept_any(&["VIRTUAL", "STORED"]) == Some("STORED");
    column.generated = Some(Generated { expression, stored });
    Ok(())
}

/// An attribute; false if none follows.
fn column_attribute(parser: &mut Parser<'_>, column: &mut ColumnDefinition) -> Result<bool> {
    match parser.upper().as_str() {
        "NOT" if parser.is_at(1, "NULL") => {
            parser.at += 2;
            column.nullable = Some(false);
        }
        "NOT" if parser.is_at(1, "SECONDARY") => parser.at += 2,
        "NULL" => {
            parser.at += 1;
            column.nullable = Some(true);
        }
        "DEFAULT" => {
            parser.at += 1;
            column.default = Some(column_default(parser)?);
        }
        "ON" => {
            parser.expect_all(&["ON", "UPDATE"])?;
            let Some(digits) = now(parser)? else { return parser.error() };
            column.on_update_now = Some(digits);
        }
        "AUTO_INCREMENT" => {
            parser.at += 1;
            column.auto_increment = true;
        }
        "SERIAL" => {
            parser.expect_all(&["SERIAL", "DEFAULT", "VALUE"])?;
            (column.auto_increment, column.unique) = (true, true);
            column.nullable = Some(false);
        }
        "PRIMARY" | "KEY" => {
            parser.accept("PRIMARY");
            parser.expect("KEY")?;
            column.primary_key = true;
        }
        "UNIQUE" => {
            parser.at += 1;
            parser.accept("KEY");
            column.unique = true;
        }
        "COMMENT" => {
            parser.at += 1;
            column.comment = Some(parser.string()?);
        }
        "COLLATE" => {
            parser.at += 1;
            let collation = parser.word_or_text()?;
            collate(column, collation)?;
        }
        _ => return rare_column_attribute(parser, column),
    }
    Ok(true)
}

fn rare_column_attribute(parser: &mut Parser<'_>, column: &mut ColumnDefinition) -> Result<bool> {
    match parser.upper().as_str() {
        "VISIBLE" | "INVISIBLE" => {
            column.visible = Some(parser.is("VISIBLE"));
            parser.at += 1;
        }
        "CHECK" | "CONSTRAINT" => {
            let check = table::check(parser)?;
            column.checks.push(check);
        }
        "REFERENCES" => column.references = Some(table::references(parser)?),
        "SRID" => {
            parser.at += 1;
            column.srid = Some(parser.integer()?);
        }
        word
        @ ("COLUMN_FORMAT" | "STORAGE" | "ENGINE_ATTRIBUTE" | "SECONDARY_ENGINE_ATTRIBUTE") => {
            parser.at += 1;
            parser.take(Kind::Equal);
            let value = parser.word_or_text()?;
            column.ignored.push((word.to_owned(), value));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// `COLLATE` as an attribute belongs to the type whose text it sorts.
fn collate(column: &mut ColumnDefinition, collation: String) -> Result<()> {
    match text_attributes(&mut column.column_type) {
        Some(attributes) => attributes.collation = Some(collation),
        None if collation.eq_ignore_ascii_case("binary") => {}
        None => {
            let what = format!("COLLATION '{collation}' is not valid for a number");
            return Err(SqlError::new(1253, what));
        }
    }
    Ok(())
}

/// The value after `DEFAULT`.
pub(super) fn column_default(parser: &mut Parser<'_>) -> Result<ColumnDefault> {
    if let Some(digits) = now(parser)? {
        return Ok(ColumnDefault::Now(digits));
    }
    if parser.kind() == Kind::LeftParen {
        return parser.parens(expression::expression).map(ColumnDefault::Expression);
    }
    let expr = default_literal(parser)?;
    Ok(ColumnDefault::Literal(expr))
}

fn default_literal(parser: &mut Parser<'_>) -> Result<Expr> {
    let sign = matches!(parser.kind(), Kind::Minus | Kind::Plus);
    let first = if sign { parser.kind_at(1) } else { parser.kind() };
    let number = matches!(first, Kind::Integer | Kind::Decimal | Kind::Float);
    let literal = matches!(first, Kind::Text | Kind::NationalText | Kind::Hex | Kind::Bits);
    let word = first == Kind::Word
        && (parser.is_any(&["NULL", "TRUE", "FALSE"])
            || matches!(parser.kind_at(1), Kind::Text | Kind::Hex | Kind::Bits));
    if number || (!sign && (literal || word)) {
        expression::literal(parser)
    } else {
        parser.error()
    }
}

/// `CURRENT_TIMESTAMP`, `NOW()`, `LOCALTIME`, `LOCALTIMESTAMP`, with their digits.
fn now(parser: &mut Parser<'_>) -> Result<Option<u8>> {
    let called = parser.kind_at(1) == Kind::LeftParen;
    if !(parser.is_any(&["CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"])
        || (parser.is("NOW") && called))
    {
        return Ok(None);
    }
    parser.at += 1;
    let digits =
        match called {
            true => parser.parens(|parser| {
                if parser.kind() == Kind::Integer { parser.integer() } else { Ok(0) }
            })?,
            false => 0,
        };
    Ok(Some(digits))
}

/// A column's type, with the attributes that belong to it.
pub(super) fn column_type(parser: &mut Parser<'_>) -> Result<ColumnType> {
    if parser.kind() != Kind::Word {
        return parser.error();
    }
    let word = parser.upper();
    if let Some(integer) = integer_type(parser, &word)? {
        return Ok(integer);
    }
    if let Some(text) = text_type(parser, &word)? {
        return Ok(text);
    }
    parser.at += 1;
    Ok(match word.as_str() {
        "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => {
            let (precision, scale) = precision_and_scale(parser)?;
            ColumnType::Decimal(precision, scale, number_attributes(parser))
        }
        "FLOAT" | "FLOAT4" => float_type(parser)?,
        "DOUBLE" | "REAL" | "FLOAT8" => {
            parser.accept("PRECISION");
            let digits = match precision_and_scale(parser)? {
                (Some(precision), Some(scale)) => Some((precision, scale)),
                (None, _) => None,
                _ => return parser.error(),
            };
            ColumnType::Double(digits, number_attributes(parser))
        }
        "BIT" => ColumnType::Bit(type_length(parser)?),
        "BINARY" => ColumnType::Binary(type_length(parser)?),
        "VARBINARY" => match type_length(parser)? {
            Some(length) => ColumnType::Varbinary(length),
            None => return parser.error(),
        },
        "TINYBLOB" => ColumnType::Blob(LobSize::Tiny, None),
        "BLOB" => ColumnType::Blob(LobSize::Normal, type_length(parser)?),
        "MEDIUMBLOB" => ColumnType::Blob(LobSize::Medium, None),
        "LONGBLOB" => ColumnType::Blob(LobSize::Long, None),
        "DATE" => ColumnType::Date,
        "TIME" => ColumnType::Time(second_digits(parser)?),
        "DATETIME" => ColumnType::Datetime(second_digits(parser)?),
        "TIMESTAMP" => ColumnType::Timestamp(second_digits(parser)?),
        "YEAR" => {
            if type_length(parser)?.is_some_and(|width: u32| width != 4) {
                let message = "Invalid display width. Use YEAR instead.";
                return Err(SqlError::new(1818, message));
            }
            number_attributes(parser);
            ColumnType::Year
        }
        "JSON" => ColumnType::Json,
        "VECTOR" => ColumnType::Vector(type_length(parser)?),
        "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
        | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" | "GEOMCOLLECTION" => ColumnType::Geometry(word),
        _ => {
            parser.at -= 1;
            return parser.error();
        }
    })
}

fn integer_type(parser: &mut Parser<'_>, word: &str) -> Result<Option<ColumnType>> {
    let size = match word {
        "TINYINT" | "INT1" => IntegerSize::Tiny,
        "SMALLINT" | "INT2" => IntegerSize::Small,
        "MEDIUMINT" | "INT3" | "MIDDLEINT" => IntegerSize::Medium,
        "INT" | "INTEGER" | "INT4" => IntegerSize::Int,
        "BIGINT" | "INT8" => IntegerSize::Big,
        "BOOL" | "BOOLEAN" => {
            parser.at += 1;
            let attributes = NumberAttributes::default();
            return Ok(Some(ColumnType::Integer(IntegerSize::Tiny, Some(1), attributes)));
        }
        "SERIAL" => {
            parser.at += 1;
            let attributes = NumberAttributes { unsigned: true, zerofill: false };
            return Ok(Some(ColumnType::Integer(IntegerSize::Big, None, attributes)));
        }
        _ => return Ok(None),
    };
    parser.at += 1;
    let width = type_length(parser)?;
    Ok(Some(ColumnType::Integer(size, width, number_attributes(parser))))
}

fn number_attributes(parser: &mut Parser<'_>) -> NumberAttributes {
    let mut attributes = NumberAttributes::default();
    while let Some(word) = parser.accept_any(&["SIGNED", "UNSIGNED", "ZEROFILL"]) {
        attributes.unsigned |= word != "SIGNED";
        attributes.zerofill |= word == "ZEROFILL";
    }
    attributes
}

/// `FLOAT(p)` with more bits than a float has is a double.
fn float_type(parser: &mut Parser<'_>) -> Result<ColumnType> {
    let (precision, scale) = precision_and_scale(parser)?;
    let attributes = number_attributes(parser);
    Ok(match (precision, scale) {
        (Some(precision), Some(scale)) => ColumnType::Float(Some((precision, scale)), attributes),
        (Some(25..=53), None) => ColumnType::Double(None, attributes),
        (Some(54..), None) => {
            return Err(SqlError::new(1063, "Incorrect column specifier for column"));
        }
        _ => ColumnType::Float(None, attributes),
    })
}

fn precision_and_scale(parser: &mut Parser<'_>) -> Result<(Option<u32>, Option<u32>)> {
    if parser.kind() != Kind::LeftParen {
        return Ok((None, None));
    }
    parser.parens(|parser| {
        let precision = parser.integer()?;
        let scale = if parser.take(Kind::Comma) { Some(parser.integer()?) } else { None };
        Ok((Some(precision), scale))
    })
}

fn type_length<T: std::str::FromStr>(parser: &mut Parser<'_>) -> Result<Option<T>> {
    if parser.kind() != Kind::LeftParen {
        return Ok(None);
    }
    parser.parens(Parser::integer).map(Some)
}

fn second_digits(parser: &mut Parser<'_>) -> Result<u8> {
    Ok(type_length(parser)?.unwrap_or(0))
}

fn text_type(parser: &mut Parser<'_>, word: &str) -> Result<Option<ColumnType>> {
    let first = parser.at;
    parser.at += 1;
    let mut attributes = TextAttributes::default();
    let national = matches!(word, "NATIONAL" | "NCHAR" | "NVARCHAR");
    if national {
        attributes.charset = Some("utf8mb3".to_owned());
    }
    let column_type = match word {
        "NATIONAL" => return national_type(parser, attributes).map(Some),
        "CHAR" | "CHARACTER" | "NCHAR" => {
            if parser.accept("VARYING") || (word == "NCHAR" && parser.accept("VARCHAR")) {
                varchar(parser, attributes)?
            } else {
                ColumnType::Char(type_length(parser)?, attributes)
            }
        }
        "VARCHAR" | "VARCHARACTER" | "NVARCHAR" => varchar(parser, attributes)?,
        "TINYTEXT" => ColumnType::Text(LobSize::Tiny, None, attributes),
        "TEXT" => ColumnType::Text(LobSize::Normal, type_length(parser)?, attributes),
        "MEDIUMTEXT" => ColumnType::Text(LobSize::Medium, None, attributes),
        "LONGTEXT" => ColumnType::Text(LobSize::Long, None, attributes),
        "LONG" if parser.accept("VARBINARY") => {
            return Ok(Some(ColumnType::Blob(LobSize::Medium, None)));
        }
        "LONG" => {
            parser.accept_any(&["VARCHAR", "VARCHARACTER"]);
            ColumnType::Text(LobSize::Medium, None, attributes)
        }
        "ENUM" => ColumnType::Enum(parser.parens_list(enum_value)?, attributes),
        "SET" => ColumnType::Set(parser.parens_list(enum_value)?, attributes),
        _ => {
            parser.at = first;
            return Ok(None);
        }
    };
    with_text_attributes(parser, column_type).map(Some)
}

/// `NATIONAL CHAR`, `NATIONAL VARCHAR` and longer spellings.
fn national_type(parser: &mut Parser<'_>, attributes: TextAttributes) -> Result<ColumnType> {
    let column_type = match parser.expect_any(&["CHAR", "CHARACTER", "VARCHAR"])? {
        "VARCHAR" => varchar(parser, attributes)?,
        _ if parser.accept("VARYING") => varchar(parser, attributes)?,
        _ => ColumnType::Char(type_length(parser)?, attributes),
    };
    with_text_attributes(parser, column_type)
}

fn varchar(parser: &mut Parser<'_>, attributes: TextAttributes) -> Result<ColumnType> {
    match type_length(parser)? {
        Some(length) => Ok(ColumnType::Varchar(length, attributes)),
        None => parser.error(),
    }
}

fn enum_value(parser: &mut Parser<'_>) -> Result<String> {
    match parser.kind() {
        Kind::Text => parser.string(),
        Kind::Hex | Kind::Bits => {
            let bytes = transaction::byte_string(parser)?;
            String::from_utf8(bytes).or_else(|_| parser.error())
        }
        _ => parser.error(),
    }
}

/// `CHARACTER SET`, `BINARY` and other words after a text's type.
fn with_text_attributes(
    parser: &mut Parser<'_>,
    mut column_type: ColumnType,
) -> Result<ColumnType> {
    let Some(attributes) = text_attributes(&mut column_type) else { return Ok(column_type) };
    loop {
        if parser.charset_words() {
            attributes.charset = Some(parser.word_or_text()?);
        } else if parser.accept("BINARY") {
            attributes.binary = true;
        } else if parser.accept("ASCII") {
            attributes.charset = Some("latin1".to_owned());
        } else if parser.accept("UNICODE") {
            attributes.charset = Some("ucs2".to_owned());
        } else if parser.accept("BYTE") {
            attributes.charset = Some("binary".to_owned());
        } else if parser.accept("COLLATE") {
            attributes.collation = Some(parser.word_or_text()?);
        } else {
            return Ok(column_type);
        }
    }
}

fn text_attributes(column_type: &mut ColumnType) -> Option<&mut TextAttributes> {
    match column_type {
        ColumnType::Char(_, attributes)
        | ColumnType::Varchar(_, attributes)
        | ColumnType::Text(_, _, attributes)
        | ColumnType::Enum(_, attributes)
        | ColumnType::Set(_, attributes) => Some(attributes),
        _ => None,
    }
}
