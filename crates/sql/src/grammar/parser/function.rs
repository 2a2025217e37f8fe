//! Function calls, those with a grammar of their own included, and the types of `CAST`.

use super::super::build::{argument, function, object, text, with_arguments};
use super::super::lexer::Kind;
use super::super::words;
use super::Parser;
use super::expression::unit_argument;
use crate::error::{Result, SqlError};
use sqlparser::ast::{
    CastKind, CharacterLength, DataType, DateTimeField, DuplicateTreatment, ExactNumberInfo, Expr,
    ExtractSyntax, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    JsonReturningClause, NullTreatment, ObjectName, SearchModifier, TimezoneInfo, TrimWhereField,
    Value, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

impl Parser<'_> {
    /// Whether the word here may be a function's name.
    pub(super) fn is_function(&self) -> bool {
        let word = self.text_of(self.token(0));
        !words::is_reserved(word) || words::is_reserved_function(word) || self.is("CONVERT")
    }

    /// A word and what is in its parentheses.
    #[inline(never)]
    pub(super) fn function_call(&mut self) -> Result<Expr> {
        let name = self.upper();
        let written = self.name_of_current();
        match name.as_str() {
            "CAST" => self.parens(Self::cast_arguments),
            "CONVERT" => self.parens(Self::convert_arguments),
            "EXTRACT" => self.parens(Self::extract_arguments),
            "TRIM" => self.parens(Self::trim_arguments),
            "SUBSTRING" | "SUBSTR" | "MID" => self.parens(|p| p.substring_arguments(&written)),
            "POSITION" => self.parens(Self::position_arguments),
            "DATE_ADD" | "ADDDATE" | "DATE_SUB" | "SUBDATE" => {
                self.parens(|p| p.date_arguments(&name))
            }
            "TIMESTAMPADD" => self.parens(Self::timestamp_add_arguments),
            "TIMESTAMPDIFF" => self.parens(|p| p.timestamp_difference_arguments(&written)),
            "GET_FORMAT" => self.parens(|p| p.get_format_arguments(&written)),
            "CHAR" => self.parens(|p| p.char_arguments(&written)),
            "WEIGHT_STRING" => self.parens(|p| p.weight_string_arguments(&written)),
            _ => self.arguments_of(object([written])),
        }
    }

    /// `CURRENT_TIMESTAMP` and others that need no parentheses.
    pub(super) fn bare_function(&mut self) -> Result<Expr> {
        let name = self.name_of_current();
        Ok(function(&name, Vec::new()))
    }

    /// `(…)` after a function's name, and what may follow.
    #[inline(never)]
    pub(super) fn arguments_of(&mut self, name: ObjectName) -> Result<Expr> {
        let arguments = self.parens(Self::argument_list)?;
        let mut function = with_arguments(name, arguments);
        self.accept_all(&["FROM", "FIRST"]);
        function.null_treatment = self.null_treatment()?;
        if self.accept("OVER") {
            function.over = Some(match self.kind() {
                Kind::LeftParen => WindowType::WindowSpec(self.window_specification()?),
                _ => WindowType::NamedWindow(super::super::build::ident(self.ident()?)),
            });
        }
        Ok(Expr::Function(function))
    }

    fn null_treatment(&mut self) -> Result<Option<NullTreatment>> {
        if self.accept_all(&["RESPECT", "NULLS"]) {
            Ok(Some(NullTreatment::RespectNulls))
        } else if self.accept_all(&["IGNORE", "NULLS"]) {
            Ok(Some(NullTreatment::IgnoreNulls))
        } else {
            Ok(None)
        }
    }

    fn argument_list(&mut self) -> Result<FunctionArgumentList> {
        let duplicate_treatment = match self.accept_any(&["DISTINCT", "ALL"]) {
            Some("DISTINCT") => Some(DuplicateTreatment::Distinct),
            _ => None,
        };
        let mut args = Vec::new();
        if self.kind() == Kind::Star && self.kind_at(1) == Kind::RightParen {
            self.at += 1;
            args.push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
        } else if self.kind() != Kind::RightParen {
            args = self.list(|p| p.expression().map(argument))?;
        }
        let clauses = self.argument_clauses()?;
        Ok(FunctionArgumentList { duplicate_treatment, args, clauses })
    }

    #[inline(never)]
    fn argument_clauses(&mut self) -> Result<Vec<FunctionArgumentClause>> {
        let mut clauses = Vec::new();
        if self.is("ORDER") {
            clauses.push(FunctionArgumentClause::OrderBy(self.order_by()?));
        }
        if self.accept("SEPARATOR") {
            let separator = Value::SingleQuotedString(self.string()?);
            clauses.push(FunctionArgumentClause::Separator(separator.with_empty_span()));
        }
        if self.accept("RETURNING") {
            let (data_type, _) = self.cast_type()?;
            let returning = JsonReturningClause { data_type };
            clauses.push(FunctionArgumentClause::JsonReturningClause(returning));
        }
        self.accept_all(&["NULL", "ON", "EMPTY"]);
        self.accept_all(&["NULL", "ON", "ERROR"]);
        Ok(clauses)
    }

    #[inline(never)]
    fn cast_arguments(&mut self) -> Result<Expr> {
        let mut expr = self.expression()?;
        if self.accept_all(&["AT", "TIME", "ZONE"]) {
            self.accept("INTERVAL");
            let time_zone = Box::new(text(self.string()?));
            expr = Expr::AtTimeZone { timestamp: Box::new(expr), time_zone };
        }
        self.expect("AS")?;
        let (data_type, charset) = self.cast_type()?;
        let is_array = self.accept("ARRAY");
        let mut expr = cast(expr, data_type, charset);
        if let Expr::Cast { array, .. } = &mut expr {
            *array = is_array;
        }
        Ok(expr)
    }

    #[inline(never)]
    fn convert_arguments(&mut self) -> Result<Expr> {
        let expr = self.expression()?;
        if self.accept("USING") {
            return self.converted_to_charset(expr);
        }
        self.need(Kind::Comma)?;
        let (data_type, charset) = self.cast_type()?;
        Ok(cast(expr, data_type, charset))
    }

    fn converted_to_charset(&mut self, expr: Expr) -> Result<Expr> {
        let charset = self.word_or_text()?.to_ascii_lowercase();
        Ok(convert(expr, None, charset))
    }

    /// A type of `CAST`, and the character set of its text.
    #[inline(never)]
    pub(super) fn cast_type(&mut self) -> Result<(DataType, Option<String>)> {
        let word = self.upper();
        if self.kind() != Kind::Word {
            return self.error();
        }
        self.at += 1;
        let plain = |data_type| Ok((data_type, None));
        match word.as_str() {
            "SIGNED" | "UNSIGNED" => {
                let _ = self.accept_any(&["INTEGER", "INT"]);
                plain(if word == "SIGNED" { DataType::Signed } else { DataType::Unsigned })
            }
            "BINARY" => plain(DataType::Binary(self.length()?)),
            "CHAR" | "CHARACTER" | "NCHAR" => self.cast_text_type(&word),
            "NATIONAL" => {
                self.expect_any(&["CHAR", "CHARACTER"])?;
                self.cast_text_type("NCHAR")
            }
            "DATE" => plain(DataType::Date),
            "DATETIME" => plain(DataType::Datetime(self.length()?)),
            "TIME" => plain(DataType::Time(self.length()?, TimezoneInfo::None)),
            "YEAR" | "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
            | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" => {
                plain(DataType::Custom(object([word]), Vec::new()))
            }
            "DECIMAL" | "DEC" => plain(DataType::Decimal(self.digits()?)),
            "FLOAT" => plain(DataType::Float(self.digits()?)),
            "DOUBLE" => {
                self.accept("PRECISION");
                plain(DataType::Double(ExactNumberInfo::None))
            }
            "REAL" => plain(DataType::Double(ExactNumberInfo::None)),
            "JSON" => plain(DataType::JSON),
            _ => {
                self.at -= 1;
                self.error()
            }
        }
    }

    fn cast_text_type(&mut self, word: &str) -> Result<(DataType, Option<String>)> {
        let length = self.length()?;
        let length = length.map(|length| CharacterLength::IntegerLength { length, unit: None });
        let national = word == "NCHAR";
        let mut charset = national.then(|| "utf8mb3".to_owned());
        if self.charset_words() {
            charset = Some(self.word_or_text()?.to_ascii_lowercase());
        } else if self.accept("ASCII") {
            charset = Some("latin1".to_owned());
        } else if self.accept("UNICODE") {
            charset = Some("ucs2".to_owned());
        } else if self.accept("BYTE") {
            charset = Some("binary".to_owned());
        }
        self.accept("BINARY");
        let data_type = match national {
            true => DataType::Nvarchar(length),
            false => DataType::Char(length),
        };
        Ok((data_type, charset))
    }

    /// `(n)`, if it is there.
    fn length(&mut self) -> Result<Option<u64>> {
        if self.kind() != Kind::LeftParen {
            return Ok(None);
        }
        self.parens(Self::integer).map(Some)
    }

    fn digits(&mut self) -> Result<ExactNumberInfo> {
        if self.kind() != Kind::LeftParen {
            return Ok(ExactNumberInfo::None);
        }
        self.parens(|p| {
            let precision = p.integer()?;
            match p.take(Kind::Comma) {
                true => Ok(ExactNumberInfo::PrecisionAndScale(precision, p.integer()?)),
                false => Ok(ExactNumberInfo::Precision(precision)),
            }
        })
    }

    #[inline(never)]
    fn extract_arguments(&mut self) -> Result<Expr> {
        let field = field(self.unit()?);
        self.expect("FROM")?;
        let expr = Box::new(self.expression()?);
        Ok(Expr::Extract { field, syntax: ExtractSyntax::From, expr })
    }

    #[inline(never)]
    fn trim_arguments(&mut self) -> Result<Expr> {
        let trim_where = self.accept_any(&["BOTH", "LEADING", "TRAILING"]).map(|word| match word {
            "BOTH" => TrimWhereField::Both,
            "LEADING" => TrimWhereField::Leading,
            _ => TrimWhereField::Trailing,
        });
        let mut trim_what = None;
        let mut from = trim_where.is_some() && self.accept("FROM");
        let mut expr = self.expression()?;
        if !from && self.accept("FROM") {
            from = true;
            trim_what = Some(Box::new(std::mem::replace(&mut expr, Expr::Tuple(Vec::new()))));
            expr = self.expression()?;
        }
        if trim_where.is_some() && !from {
            return self.error();
        }
        Ok(Expr::Trim { trim_where, trim_what, expr: Box::new(expr), trim_characters: None })
    }

    /// Also `SUBSTRING(x FROM y FOR z)`, which means the same as with commas.
    #[inline(never)]
    fn substring_arguments(&mut self, name: &str) -> Result<Expr> {
        let mut arguments = vec![self.expression()?];
        if self.accept("FROM") {
            arguments.push(self.expression()?);
            if self.accept("FOR") {
                arguments.push(self.expression()?);
            }
        }
        while self.take(Kind::Comma) {
            arguments.push(self.expression()?);
        }
        Ok(function(name, arguments))
    }

    /// `POSITION(a IN b)` is `LOCATE(a, b)`. The needle holds no `IN` outside parentheses.
    #[inline(never)]
    fn position_arguments(&mut self) -> Result<Expr> {
        let needle = self.bit_expression()?;
        self.expect("IN")?;
        Ok(function("locate", vec![needle, self.expression()?]))
    }

    /// A date and an interval, or a number of days.
    #[inline(never)]
    fn date_arguments(&mut self, name: &str) -> Result<Expr> {
        let date = self.expression()?;
        self.need(Kind::Comma)?;
        let is_days = matches!(name, "ADDDATE" | "SUBDATE") && !self.is_interval();
        let interval = if is_days { interval(self.expression()?, "DAY") } else { self.interval()? };
        let name = if name.contains("ADD") { "date_add" } else { "date_sub" };
        Ok(function(name, vec![date, interval]))
    }

    /// `TIMESTAMPADD(unit, n, x)` is `DATE_ADD(x, INTERVAL n unit)`.
    #[inline(never)]
    fn timestamp_add_arguments(&mut self) -> Result<Expr> {
        let unit = self.unit()?;
        self.need(Kind::Comma)?;
        let count = self.expression()?;
        self.need(Kind::Comma)?;
        Ok(function("date_add", vec![self.expression()?, interval(count, unit)]))
    }

    #[inline(never)]
    fn timestamp_difference_arguments(&mut self, name: &str) -> Result<Expr> {
        let unit = unit_argument(self.unit()?);
        self.need(Kind::Comma)?;
        let from = self.expression()?;
        self.need(Kind::Comma)?;
        Ok(function(name, vec![unit, from, self.expression()?]))
    }

    #[inline(never)]
    fn get_format_arguments(&mut self, name: &str) -> Result<Expr> {
        let kind = match self.kind() {
            // As it is rendered.
            Kind::Text => self.string()?,
            _ => match self.expect_any(&["DATE", "TIME", "DATETIME", "TIMESTAMP"])? {
                "TIMESTAMP" => "DATETIME".to_owned(),
                kind => kind.to_owned(),
            },
        };
        self.need(Kind::Comma)?;
        Ok(function(name, vec![text(kind), self.expression()?]))
    }

    #[inline(never)]
    fn char_arguments(&mut self, name: &str) -> Result<Expr> {
        let codes = function(name, self.list(Self::expression)?);
        if self.accept("USING") { self.converted_to_charset(codes) } else { Ok(codes) }
    }

    #[inline(never)]
    fn weight_string_arguments(&mut self, name: &str) -> Result<Expr> {
        let mut expr = self.expression()?;
        if self.accept("AS") {
            let (data_type, charset) = self.cast_type()?;
            expr = cast(expr, data_type, charset);
        }
        Ok(function(name, vec![expr]))
    }

    #[inline(never)]
    pub(super) fn match_against(&mut self) -> Result<Expr> {
        let columns = match self.kind() {
            Kind::LeftParen => self.parens_list(Self::column_reference)?,
            _ => self.list(Self::column_reference)?,
        };
        self.expect("AGAINST")?;
        self.need(Kind::LeftParen)?;
        let Expr::Value(match_value) = self.in_tree(Self::bit_expression)? else {
            return Err(SqlError::not_supported("AGAINST an expression"));
        };
        let opt_search_modifier = self.search_modifier()?;
        self.need(Kind::RightParen)?;
        Ok(Expr::MatchAgainst { columns, match_value, opt_search_modifier })
    }

    fn column_reference(&mut self) -> Result<ObjectName> {
        let mut parts = vec![self.ident()?];
        while self.take(Kind::Dot) {
            parts.push(self.any_ident()?);
        }
        Ok(object(parts))
    }

    fn search_modifier(&mut self) -> Result<Option<SearchModifier>> {
        if self.accept_all(&["IN", "NATURAL", "LANGUAGE", "MODE"]) {
            return Ok(Some(match self.accept_all(&["WITH", "QUERY", "EXPANSION"]) {
                true => SearchModifier::InNaturalLanguageModeWithQueryExpansion,
                false => SearchModifier::InNaturalLanguageMode,
            }));
        }
        if self.accept_all(&["IN", "BOOLEAN", "MODE"]) {
            return Ok(Some(SearchModifier::InBooleanMode));
        }
        let expansion = self.accept_all(&["WITH", "QUERY", "EXPANSION"]);
        Ok(expansion.then_some(SearchModifier::WithQueryExpansion))
    }

    /// `(… PARTITION BY … ORDER BY … ROWS …)`.
    #[inline(never)]
    pub(super) fn window_specification(&mut self) -> Result<WindowSpec> {
        self.parens(|p| {
            let named = p.is_ident_at(0) && !p.are(&["PARTITION", "BY"]);
            let window_name =
                if named { Some(super::super::build::ident(p.ident()?)) } else { None };
            let partition_by = match p.accept_all(&["PARTITION", "BY"]) {
                true => p.list(Self::expression)?,
                false => Vec::new(),
            };
            let order_by = if p.is("ORDER") { p.order_by()? } else { Vec::new() };
            let window_frame = p.window_frame()?;
            Ok(WindowSpec { window_name, partition_by, order_by, window_frame })
        })
    }

    fn window_frame(&mut self) -> Result<Option<WindowFrame>> {
        let units = match self.accept_any(&["ROWS", "RANGE", "GROUPS"]) {
            Some("ROWS") => WindowFrameUnits::Rows,
            Some("RANGE") => WindowFrameUnits::Range,
            Some(_) => WindowFrameUnits::Groups,
            None => return Ok(None),
        };
        let between = self.accept("BETWEEN");
        let start_bound = self.window_bound()?;
        let end_bound = if between {
            self.expect("AND")?;
            Some(self.window_bound()?)
        } else {
            None
        };
        Ok(Some(WindowFrame { units, start_bound, end_bound }))
    }

    fn window_bound(&mut self) -> Result<WindowFrameBound> {
        if self.accept_all(&["CURRENT", "ROW"]) {
            return Ok(WindowFrameBound::CurrentRow);
        }
        let distance = if self.accept("UNBOUNDED") {
            None
        } else if self.is_interval() {
            Some(Box::new(self.interval()?))
        } else {
            Some(Box::new(self.bit_expression()?))
        };
        Ok(match self.expect_any(&["PRECEDING", "FOLLOWING"])? {
            "PRECEDING" => WindowFrameBound::Preceding(distance),
            _ => WindowFrameBound::Following(distance),
        })
    }
}

fn interval(value: Expr, unit: &str) -> Expr {
    Expr::Interval(sqlparser::ast::Interval {
        value: Box::new(value),
        leading_field: Some(field(unit)),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })
}

/// `CAST` to a type; with a character set it is a `Convert` that has both.
/// `BINARY x`: a cast that is told from `CAST(x AS BINARY)` by its kind, for it is deprecated.
pub(super) fn binary_prefix(expr: Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(expr),
        data_type: DataType::Binary(None),
        array: false,
        format: None,
    }
}

pub(super) fn cast(expr: Expr, data_type: DataType, charset: Option<String>) -> Expr {
    match charset {
        Some(charset) => convert(expr, Some(data_type), charset),
        None => Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(expr),
            data_type,
            array: false,
            format: None,
        },
    }
}

fn convert(expr: Expr, data_type: Option<DataType>, charset: String) -> Expr {
    Expr::Convert {
        is_try: false,
        expr: Box::new(expr),
        data_type,
        charset: Some(object([charset])),
        target_before_value: false,
        styles: Vec::new(),
    }
}

/// A unit of time as `sqlparser` has it; those of two fields are `Custom`.
pub(super) fn field(unit: &str) -> DateTimeField {
    match unit {
        "MICROSECOND" => DateTimeField::Microsecond,
        "SECOND" => DateTimeField::Second,
        "MINUTE" => DateTimeField::Minute,
        "HOUR" => DateTimeField::Hour,
        "DAY" => DateTimeField::Day,
        "WEEK" => DateTimeField::Week(None),
        "MONTH" => DateTimeField::Month,
        "QUARTER" => DateTimeField::Quarter,
        "YEAR" => DateTimeField::Year,
        _ => DateTimeField::Custom(super::super::build::ident(unit)),
    }
}
