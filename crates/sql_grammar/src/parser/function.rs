//! Function calls, including those with their own grammar, and the types of `CAST`.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    Arguments, CastType, Digits, Expr, Function, Interval, NullTreatment, SearchMode, TrimSide,
    Window, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
};
use super::super::build::{function, text};
use super::super::lexer::Kind;
use super::super::words;
use super::Parser;

impl Parser<'_> {
    /// Whether the word here may be a function's name.
    pub(super) fn is_function(&self) -> bool {
        let word = self.text_of(self.token(0));
        !words::is_reserved(word) || words::is_reserved_function(word) || self.is("CONVERT")
    }

    /// A word and the contents of its parentheses.
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
            _ => self.arguments_of(None, written),
        }
    }

    /// `CURRENT_TIMESTAMP` and others that need no parentheses.
    pub(super) fn bare_function(&mut self) -> Result<Expr> {
        let name = self.name_of_current();
        Ok(function(&name, Vec::new()))
    }

    /// `(…)` after a function's name, and what may follow.
    #[inline(never)]
    pub(super) fn arguments_of(&mut self, schema: Option<String>, name: String) -> Result<Expr> {
        let mut function = self.parens(|p| p.argument_list(schema, name))?;
        self.accept_all(&["FROM", "FIRST"]);
        function.null_treatment = self.null_treatment()?;
        if self.accept("OVER") {
            function.over = Some(Box::new(match self.kind() {
                Kind::LeftParen => Window::Spec(self.window_specification()?),
                _ => Window::Named(self.ident()?),
            }));
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

    fn argument_list(&mut self, schema: Option<String>, name: String) -> Result<Function> {
        let distinct = self.accept_any(&["DISTINCT", "ALL"]) == Some("DISTINCT");
        let arguments = if self.kind() == Kind::Star && self.kind_at(1) == Kind::RightParen {
            self.at += 1;
            Arguments::Wildcard
        } else if self.kind() != Kind::RightParen {
            Arguments::List(self.list(Self::expression)?)
        } else {
            Arguments::List(Vec::new())
        };
        let mut function = Function { schema, distinct, ..Function::plain(name, arguments) };
        self.argument_clauses(&mut function)?;
        Ok(function)
    }

    #[inline(never)]
    fn argument_clauses(&mut self, function: &mut Function) -> Result<()> {
        if self.is("ORDER") {
            function.order_by = self.order_by()?;
        }
        if self.accept("SEPARATOR") {
            function.separator = Some(self.string()?);
        }
        if self.accept("RETURNING") {
            function.returning = Some(self.cast_type()?.0);
        }
        self.accept_all(&["NULL", "ON", "EMPTY"]);
        self.accept_all(&["NULL", "ON", "ERROR"]);
        Ok(())
    }

    #[inline(never)]
    fn cast_arguments(&mut self) -> Result<Expr> {
        let mut expr = self.expression()?;
        if self.accept_all(&["AT", "TIME", "ZONE"]) {
            self.accept("INTERVAL");
            expr = Expr::AtTimeZone { expr: Box::new(expr), zone: self.string()? };
        }
        self.expect("AS")?;
        let (to, charset) = self.cast_type()?;
        let array = self.accept("ARRAY");
        Ok(Expr::Cast { is_binary_prefix: false, expr: Box::new(expr), to, charset, array })
    }

    #[inline(never)]
    fn convert_arguments(&mut self) -> Result<Expr> {
        let expr = self.expression()?;
        if self.accept("USING") {
            return self.converted_to_charset(expr);
        }
        self.need(Kind::Comma)?;
        let (to, charset) = self.cast_type()?;
        Ok(cast(expr, to, charset))
    }

    fn converted_to_charset(&mut self, expr: Expr) -> Result<Expr> {
        let charset = self.word_or_text()?.to_ascii_lowercase();
        Ok(Expr::Convert { expr: Box::new(expr), charset })
    }

    /// A type of `CAST`, and the character set of its text.
    #[inline(never)]
    pub(super) fn cast_type(&mut self) -> Result<(CastType, Option<String>)> {
        let word = self.upper();
        if self.kind() != Kind::Word {
            return self.error();
        }
        self.at += 1;
        let plain = |data_type| Ok((data_type, None));
        match word.as_str() {
            "SIGNED" | "UNSIGNED" => {
                let _ = self.accept_any(&["INTEGER", "INT"]);
                plain(if word == "SIGNED" { CastType::Signed } else { CastType::Unsigned })
            }
            "BINARY" => plain(CastType::Binary(self.length()?)),
            "CHAR" | "CHARACTER" | "NCHAR" => self.cast_text_type(&word),
            "NATIONAL" => {
                self.expect_any(&["CHAR", "CHARACTER"])?;
                self.cast_text_type("NCHAR")
            }
            "DATE" => plain(CastType::Date),
            "DATETIME" => plain(CastType::Datetime(self.length()?)),
            "TIME" => plain(CastType::Time(self.length()?)),
            "YEAR" => plain(CastType::Year),
            "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
            | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" => plain(CastType::Geometry(word)),
            "DECIMAL" | "DEC" => plain(CastType::Decimal(self.digits()?)),
            "FLOAT" => plain(CastType::Float(self.digits()?)),
            "DOUBLE" => {
                self.accept("PRECISION");
                plain(CastType::Double)
            }
            "REAL" => plain(CastType::Double),
            "JSON" => plain(CastType::Json),
            _ => {
                self.at -= 1;
                self.error()
            }
        }
    }

    fn cast_text_type(&mut self, word: &str) -> Result<(CastType, Option<String>)> {
        let length = self.length()?;
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
            true => CastType::NationalChar(length),
            false => CastType::Char(length),
        };
        Ok((data_type, charset))
    }

    /// `(n)`, if present.
    fn length(&mut self) -> Result<Option<u64>> {
        if self.kind() != Kind::LeftParen {
            return Ok(None);
        }
        self.parens(Self::integer).map(Some)
    }

    fn digits(&mut self) -> Result<Digits> {
        if self.kind() != Kind::LeftParen {
            return Ok(Digits::Default);
        }
        self.parens(|p| {
            let precision = p.integer()?;
            match p.take(Kind::Comma) {
                true => Ok(Digits::PrecisionAndScale(precision, p.integer()?)),
                false => Ok(Digits::Precision(precision)),
            }
        })
    }

    #[inline(never)]
    fn extract_arguments(&mut self) -> Result<Expr> {
        let unit = self.unit()?;
        self.expect("FROM")?;
        Ok(Expr::Extract { unit, expr: Box::new(self.expression()?) })
    }

    #[inline(never)]
    fn trim_arguments(&mut self) -> Result<Expr> {
        let side = self.accept_any(&["BOTH", "LEADING", "TRAILING"]).map(|word| match word {
            "BOTH" => TrimSide::Both,
            "LEADING" => TrimSide::Leading,
            _ => TrimSide::Trailing,
        });
        let mut what = None;
        let mut from = side.is_some() && self.accept("FROM");
        let mut expr = self.expression()?;
        if !from && self.accept("FROM") {
            from = true;
            what = Some(Box::new(std::mem::replace(&mut expr, Expr::Tuple(Vec::new()))));
            expr = self.expression()?;
        }
        if side.is_some() && !from {
            return self.error();
        }
        Ok(Expr::Trim { side, what, expr: Box::new(expr) })
    }

    /// Also `SUBSTRING(x FROM y FOR z)`, which has the same meaning as with commas.
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

    /// `POSITION(a IN b)` is `LOCATE(a, b)`. The needle contains no `IN` outside parentheses.
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
        let unit = Expr::Unit(self.unit()?);
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
            let (to, charset) = self.cast_type()?;
            expr = cast(expr, to, charset);
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
        let Expr::Value(value) = self.in_tree(Self::bit_expression)? else {
            return Err(SqlError::not_supported("AGAINST an expression"));
        };
        let mode = self.search_modifier()?;
        self.need(Kind::RightParen)?;
        Ok(Expr::MatchAgainst { columns, value, mode })
    }

    fn column_reference(&mut self) -> Result<Vec<String>> {
        let mut parts = vec![self.ident()?];
        while self.take(Kind::Dot) {
            parts.push(self.any_ident()?);
        }
        Ok(parts)
    }

    fn search_modifier(&mut self) -> Result<Option<SearchMode>> {
        if self.accept_all(&["IN", "NATURAL", "LANGUAGE", "MODE"]) {
            return Ok(Some(match self.accept_all(&["WITH", "QUERY", "EXPANSION"]) {
                true => SearchMode::NaturalLanguageWithExpansion,
                false => SearchMode::NaturalLanguage,
            }));
        }
        if self.accept_all(&["IN", "BOOLEAN", "MODE"]) {
            return Ok(Some(SearchMode::Boolean));
        }
        let expansion = self.accept_all(&["WITH", "QUERY", "EXPANSION"]);
        Ok(expansion.then_some(SearchMode::WithExpansion))
    }

    /// `(… PARTITION BY … ORDER BY … ROWS …)`.
    #[inline(never)]
    pub(super) fn window_specification(&mut self) -> Result<WindowSpec> {
        self.parens(|p| {
            let named = p.is_ident_at(0) && !p.are(&["PARTITION", "BY"]);
            let name = if named { Some(p.ident()?) } else { None };
            let partition_by = match p.accept_all(&["PARTITION", "BY"]) {
                true => p.list(Self::expression)?,
                false => Vec::new(),
            };
            let order_by = if p.is("ORDER") { p.order_by()? } else { Vec::new() };
            let frame = p.window_frame()?;
            Ok(WindowSpec { name, partition_by, order_by, frame })
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
        let start = self.window_bound()?;
        let end = if between {
            self.expect("AND")?;
            Some(self.window_bound()?)
        } else {
            None
        };
        Ok(Some(WindowFrame { units, start, end }))
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

fn interval(value: Expr, unit: &'static str) -> Expr {
    Expr::Interval(Interval { value: Box::new(value), unit })
}

/// `BINARY x`
pub(super) fn binary_prefix(expr: Expr) -> Expr {
    let to = CastType::Binary(None);
    let expr = Box::new(expr);
    Expr::Cast { is_binary_prefix: true, expr, to, charset: None, array: false }
}

fn cast(expr: Expr, to: CastType, charset: Option<String>) -> Expr {
    Expr::Cast { is_binary_prefix: false, expr: Box::new(expr), to, charset, array: false }
}
