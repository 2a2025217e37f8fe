//! Columns: their types and attributes.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    ColumnDefault, ColumnDefinition, ColumnType, Expr, Generated, IntegerSize, LobSize,
    NumberAttributes, TextAttributes,
};
use super::super::lexer::Kind;
use super::Parser;

impl Parser<'_> {
    /// A column's name, type and attributes.
    pub(super) fn column_definition(&mut self) -> Result<ColumnDefinition> {
        let name = self.column_name()?.column;
        self.column_definition_of(name)
    }

    /// The same after its name.
    pub(super) fn column_definition_of(&mut self, name: String) -> Result<ColumnDefinition> {
        let serial = self.is("SERIAL");
        let column_type = self.column_type()?;
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
        };
        if self.accept_all(&["GENERATED", "ALWAYS"]) || self.is("AS") {
            self.generated(&mut column)?;
        }
        while self.column_attribute(&mut column)? {}
        Ok(column)
    }

    fn generated(&mut self, column: &mut ColumnDefinition) -> Result<()> {
        self.expect("AS")?;
        let expression = self.parens(Self::expression)?;
        let stored = self.accept_any(&["VIRTUAL", "STORED"]) == Some("STORED");
        column.generated = Some(Generated { expression, stored });
        Ok(())
    }

    /// An attribute; false if none follows.
    fn column_attribute(&mut self, column: &mut ColumnDefinition) -> Result<bool> {
        match self.upper().as_str() {
            "NOT" if self.is_at(1, "NULL") => {
                self.at += 2;
                column.nullable = Some(false);
            }
            "NOT" if self.is_at(1, "SECONDARY") => self.at += 2,
            "NULL" => {
                self.at += 1;
                column.nullable = Some(true);
            }
            "DEFAULT" => {
                self.at += 1;
                column.default = Some(self.column_default()?);
            }
            "ON" => {
                self.expect_all(&["ON", "UPDATE"])?;
                let Some(digits) = self.now()? else { return self.error() };
                column.on_update_now = Some(digits);
            }
            "AUTO_INCREMENT" => {
                self.at += 1;
                column.auto_increment = true;
            }
            "SERIAL" => {
                self.expect_all(&["SERIAL", "DEFAULT", "VALUE"])?;
                (column.auto_increment, column.unique) = (true, true);
                column.nullable = Some(false);
            }
            "PRIMARY" | "KEY" => {
                self.accept("PRIMARY");
                self.expect("KEY")?;
                column.primary_key = true;
            }
            "UNIQUE" => {
                self.at += 1;
                self.accept("KEY");
                column.unique = true;
            }
            "COMMENT" => {
                self.at += 1;
                column.comment = Some(self.string()?);
            }
            "COLLATE" => {
                self.at += 1;
                let collation = self.word_or_text()?;
                self.collate(column, collation)?;
            }
            _ => return self.rare_column_attribute(column),
        }
        Ok(true)
    }

    fn rare_column_attribute(&mut self, column: &mut ColumnDefinition) -> Result<bool> {
        match self.upper().as_str() {
            "VISIBLE" | "INVISIBLE" => {
                column.visible = Some(self.is("VISIBLE"));
                self.at += 1;
            }
            "CHECK" | "CONSTRAINT" => {
                let check = self.check()?;
                column.checks.push(check);
            }
            "REFERENCES" => column.references = Some(self.references()?),
            "SRID" => {
                self.at += 1;
                column.srid = Some(self.integer()?);
            }
            word @ ("COLUMN_FORMAT"
            | "STORAGE"
            | "ENGINE_ATTRIBUTE"
            | "SECONDARY_ENGINE_ATTRIBUTE") => {
                self.at += 1;
                self.take(Kind::Equal);
                let value = self.word_or_text()?;
                column.ignored.push((word.to_owned(), value));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `COLLATE` as an attribute belongs to the type whose text it sorts.
    fn collate(&self, column: &mut ColumnDefinition, collation: String) -> Result<()> {
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
    pub(super) fn column_default(&mut self) -> Result<ColumnDefault> {
        if let Some(digits) = self.now()? {
            return Ok(ColumnDefault::Now(digits));
        }
        if self.kind() == Kind::LeftParen {
            return self.parens(Self::expression).map(ColumnDefault::Expression);
        }
        let expr = self.default_literal()?;
        Ok(ColumnDefault::Literal(expr))
    }

    fn default_literal(&mut self) -> Result<Expr> {
        let sign = matches!(self.kind(), Kind::Minus | Kind::Plus);
        let first = if sign { self.kind_at(1) } else { self.kind() };
        let number = matches!(first, Kind::Integer | Kind::Decimal | Kind::Float);
        let literal = matches!(first, Kind::Text | Kind::NationalText | Kind::Hex | Kind::Bits);
        let word = first == Kind::Word
            && (self.is_any(&["NULL", "TRUE", "FALSE"])
                || matches!(self.kind_at(1), Kind::Text | Kind::Hex | Kind::Bits));
        if number || (!sign && (literal || word)) { self.literal() } else { self.error() }
    }

    /// `CURRENT_TIMESTAMP`, `NOW()`, `LOCALTIME`, `LOCALTIMESTAMP`, with their digits.
    fn now(&mut self) -> Result<Option<u8>> {
        let called = self.kind_at(1) == Kind::LeftParen;
        if !(self.is_any(&["CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"])
            || (self.is("NOW") && called))
        {
            return Ok(None);
        }
        self.at += 1;
        let digits = match called {
            true => self.parens(|p| if p.kind() == Kind::Integer { p.integer() } else { Ok(0) })?,
            false => 0,
        };
        Ok(Some(digits))
    }

    /// A column's type, with the attributes that belong to it.
    pub(super) fn column_type(&mut self) -> Result<ColumnType> {
        if self.kind() != Kind::Word {
            return self.error();
        }
        let word = self.upper();
        if let Some(integer) = self.integer_type(&word)? {
            return Ok(integer);
        }
        if let Some(text) = self.text_type(&word)? {
            return Ok(text);
        }
        self.at += 1;
        Ok(match word.as_str() {
            "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => {
                let (precision, scale) = self.precision_and_scale()?;
                ColumnType::Decimal(precision, scale, self.number_attributes())
            }
            "FLOAT" | "FLOAT4" => self.float_type()?,
            "DOUBLE" | "REAL" | "FLOAT8" => {
                self.accept("PRECISION");
                let digits = match self.precision_and_scale()? {
                    (Some(precision), Some(scale)) => Some((precision, scale)),
                    (None, _) => None,
                    _ => return self.error(),
                };
                ColumnType::Double(digits, self.number_attributes())
            }
            "BIT" => ColumnType::Bit(self.type_length()?),
            "BINARY" => ColumnType::Binary(self.type_length()?),
            "VARBINARY" => match self.type_length()? {
                Some(length) => ColumnType::Varbinary(length),
                None => return self.error(),
            },
            "TINYBLOB" => ColumnType::Blob(LobSize::Tiny, None),
            "BLOB" => ColumnType::Blob(LobSize::Normal, self.type_length()?),
            "MEDIUMBLOB" => ColumnType::Blob(LobSize::Medium, None),
            "LONGBLOB" => ColumnType::Blob(LobSize::Long, None),
            "DATE" => ColumnType::Date,
            "TIME" => ColumnType::Time(self.second_digits()?),
            "DATETIME" => ColumnType::Datetime(self.second_digits()?),
            "TIMESTAMP" => ColumnType::Timestamp(self.second_digits()?),
            "YEAR" => {
                if self.type_length()?.is_some_and(|width: u32| width != 4) {
                    let message = "Invalid display width. Use YEAR instead.";
                    return Err(SqlError::new(1818, message));
                }
                self.number_attributes();
                ColumnType::Year
            }
            "JSON" => ColumnType::Json,
            "VECTOR" => ColumnType::Vector(self.type_length()?),
            "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
            | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" | "GEOMCOLLECTION" => {
                ColumnType::Geometry(word)
            }
            _ => {
                self.at -= 1;
                return self.error();
            }
        })
    }

    fn integer_type(&mut self, word: &str) -> Result<Option<ColumnType>> {
        let size = match word {
            "TINYINT" | "INT1" => IntegerSize::Tiny,
            "SMALLINT" | "INT2" => IntegerSize::Small,
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => IntegerSize::Medium,
            "INT" | "INTEGER" | "INT4" => IntegerSize::Int,
            "BIGINT" | "INT8" => IntegerSize::Big,
            "BOOL" | "BOOLEAN" => {
                self.at += 1;
                let attributes = NumberAttributes::default();
                return Ok(Some(ColumnType::Integer(IntegerSize::Tiny, Some(1), attributes)));
            }
            "SERIAL" => {
                self.at += 1;
                let attributes = NumberAttributes { unsigned: true, zerofill: false };
                return Ok(Some(ColumnType::Integer(IntegerSize::Big, None, attributes)));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        let width = self.type_length()?;
        Ok(Some(ColumnType::Integer(size, width, self.number_attributes())))
    }

    fn number_attributes(&mut self) -> NumberAttributes {
        let mut attributes = NumberAttributes::default();
        while let Some(word) = self.accept_any(&["SIGNED", "UNSIGNED", "ZEROFILL"]) {
            attributes.unsigned |= word != "SIGNED";
            attributes.zerofill |= word == "ZEROFILL";
        }
        attributes
    }

    /// `FLOAT(p)` with more bits than a float has is a double.
    fn float_type(&mut self) -> Result<ColumnType> {
        let (precision, scale) = self.precision_and_scale()?;
        let attributes = self.number_attributes();
        Ok(match (precision, scale) {
            (Some(precision), Some(scale)) => {
                ColumnType::Float(Some((precision, scale)), attributes)
            }
            (Some(25..=53), None) => ColumnType::Double(None, attributes),
            (Some(54..), None) => {
                return Err(SqlError::new(1063, "Incorrect column specifier for column"));
            }
            _ => ColumnType::Float(None, attributes),
        })
    }

    fn precision_and_scale(&mut self) -> Result<(Option<u32>, Option<u32>)> {
        if self.kind() != Kind::LeftParen {
            return Ok((None, None));
        }
        self.parens(|p| {
            let precision = p.integer()?;
            let scale = if p.take(Kind::Comma) { Some(p.integer()?) } else { None };
            Ok((Some(precision), scale))
        })
    }

    fn type_length<T: std::str::FromStr>(&mut self) -> Result<Option<T>> {
        if self.kind() != Kind::LeftParen {
            return Ok(None);
        }
        self.parens(Self::integer).map(Some)
    }

    fn second_digits(&mut self) -> Result<u8> {
        Ok(self.type_length()?.unwrap_or(0))
    }

    fn text_type(&mut self, word: &str) -> Result<Option<ColumnType>> {
        let first = self.at;
        self.at += 1;
        let mut attributes = TextAttributes::default();
        let national = matches!(word, "NATIONAL" | "NCHAR" | "NVARCHAR");
        if national {
            attributes.charset = Some("utf8mb3".to_owned());
        }
        let column_type = match word {
            "NATIONAL" => return self.national_type(attributes).map(Some),
            "CHAR" | "CHARACTER" | "NCHAR" => {
                if self.accept("VARYING") || (word == "NCHAR" && self.accept("VARCHAR")) {
                    self.varchar(attributes)?
                } else {
                    ColumnType::Char(self.type_length()?, attributes)
                }
            }
            "VARCHAR" | "VARCHARACTER" | "NVARCHAR" => self.varchar(attributes)?,
            "TINYTEXT" => ColumnType::Text(LobSize::Tiny, None, attributes),
            "TEXT" => ColumnType::Text(LobSize::Normal, self.type_length()?, attributes),
            "MEDIUMTEXT" => ColumnType::Text(LobSize::Medium, None, attributes),
            "LONGTEXT" => ColumnType::Text(LobSize::Long, None, attributes),
            "LONG" if self.accept("VARBINARY") => {
                return Ok(Some(ColumnType::Blob(LobSize::Medium, None)));
            }
            "LONG" => {
                self.accept_any(&["VARCHAR", "VARCHARACTER"]);
                ColumnType::Text(LobSize::Medium, None, attributes)
            }
            "ENUM" => ColumnType::Enum(self.parens_list(Self::enum_value)?, attributes),
            "SET" => ColumnType::Set(self.parens_list(Self::enum_value)?, attributes),
            _ => {
                self.at = first;
                return Ok(None);
            }
        };
        self.with_text_attributes(column_type).map(Some)
    }

    /// `NATIONAL CHAR`, `NATIONAL VARCHAR` and longer spellings.
    fn national_type(&mut self, attributes: TextAttributes) -> Result<ColumnType> {
        let column_type = match self.expect_any(&["CHAR", "CHARACTER", "VARCHAR"])? {
            "VARCHAR" => self.varchar(attributes)?,
            _ if self.accept("VARYING") => self.varchar(attributes)?,
            _ => ColumnType::Char(self.type_length()?, attributes),
        };
        self.with_text_attributes(column_type)
    }

    fn varchar(&mut self, attributes: TextAttributes) -> Result<ColumnType> {
        match self.type_length()? {
            Some(length) => Ok(ColumnType::Varchar(length, attributes)),
            None => self.error(),
        }
    }

    fn enum_value(&mut self) -> Result<String> {
        match self.kind() {
            Kind::Text => self.string(),
            Kind::Hex | Kind::Bits => {
                let bytes = self.byte_string()?;
                String::from_utf8(bytes).or_else(|_| self.error())
            }
            _ => self.error(),
        }
    }

    /// `CHARACTER SET`, `BINARY` and other words after a text's type.
    fn with_text_attributes(&mut self, mut column_type: ColumnType) -> Result<ColumnType> {
        let Some(attributes) = text_attributes(&mut column_type) else { return Ok(column_type) };
        loop {
            if self.charset_words() {
                attributes.charset = Some(self.word_or_text()?);
            } else if self.accept("BINARY") {
                attributes.binary = true;
            } else if self.accept("ASCII") {
                attributes.charset = Some("latin1".to_owned());
            } else if self.accept("UNICODE") {
                attributes.charset = Some("ucs2".to_owned());
            } else if self.accept("BYTE") {
                attributes.charset = Some("binary".to_owned());
            } else if self.accept("COLLATE") {
                attributes.collation = Some(self.word_or_text()?);
            } else {
                return Ok(column_type);
            }
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
