"""Random queries over the tables of `schema`: each has one answer, whatever plan is taken.

So that an answer is one: rows are compared as a bag; `LIMIT` comes with an order of all columns; windows that depend on
the order of equals, and `GROUP_CONCAT`, order by what tells rows apart; scalar subqueries give one row.
"""

from schema import COLUMNS, DATE, DECIMAL, DOUBLE, INTEGER, INTEGERS, MOMENT, TABLES, TEXT, TIME, WORDS
from schema import date, moment, time
from tree import Expression, Select, SetOperation, Source

TRUTH = "truth"
KINDS = [INTEGER, INTEGER, DECIMAL, DOUBLE, TEXT, TEXT, DATE, MOMENT, TIME]
NUMBERS = [INTEGER, INTEGER, DECIMAL, DOUBLE]

# What gives a value of a kind: a template and the kinds of its arguments. `#` stands for a small
# number.
FUNCTIONS = {
    INTEGER: [
        ("({} + {})", INTEGER, INTEGER), ("({} - CAST({} AS SIGNED))", "small", "small"), ("({} * #)", INTEGER), ("(- {})", "small"),
        ("({} DIV {})", INTEGER, INTEGER), ("({} % {})", INTEGER, INTEGER), ("ABS({})", INTEGER), ("SIGN({})", "number"),
        ("LENGTH({})", TEXT), ("CHAR_LENGTH({})", TEXT), ("LOCATE({}, {})", TEXT, TEXT), ("INSTR({}, {})", TEXT, TEXT),
        ("FIELD({}, {}, {})", TEXT, TEXT, TEXT), ("ASCII({})", TEXT), ("YEAR({})", DATE), ("MONTH({})", MOMENT),
        ("DAYOFMONTH({})", DATE), ("DAYOFWEEK({})", DATE), ("WEEKDAY({})", DATE), ("DAYOFYEAR({})", DATE),
        ("WEEK({}, 1)", DATE), ("WEEK({}, 0)", DATE), ("YEARWEEK({}, 3)", DATE), ("QUARTER({})", DATE), ("HOUR({})", MOMENT), ("HOUR({})", TIME),
        ("MINUTE({})", TIME), ("SECOND({})", MOMENT), ("MICROSECOND({})", MOMENT), ("DATEDIFF({}, {})", DATE, MOMENT),
        ("TO_DAYS({})", DATE), ("TIMESTAMPDIFF(DAY, {}, {})", MOMENT, MOMENT), ("TIMESTAMPDIFF(MONTH, {}, {})", DATE, DATE),
        ("TIMESTAMPDIFF(SECOND, {}, {})", MOMENT, DATE), ("TIME_TO_SEC({})", TIME), ("EXTRACT(YEAR_MONTH FROM {})", DATE),
        ("EXTRACT(HOUR_SECOND FROM {})", MOMENT), ("FLOOR({})", "decimal"), ("CEILING({})", "decimal"), ("ROUND({}, -1)", INTEGER),
        ("STRCMP({}, {})", TEXT, TEXT), ("BIT_COUNT({})", INTEGER), ("({} & {})", INTEGER, INTEGER), ("({} | {})", INTEGER, INTEGER),
        ("({} ^ {})", INTEGER, INTEGER), ("({} >> #)", INTEGER), ("(~ {})", INTEGER), ("CRC32({})", TEXT), ("FIND_IN_SET({}, {})", TEXT, TEXT),
        ("INTERVAL({}, 0, 5, 100)", INTEGER), ("CAST({} AS SIGNED)", DECIMAL), ("CAST({} AS SIGNED)", TEXT), ("ORD({})", TEXT),
        ("TO_SECONDS({})", MOMENT), ("PERIOD_DIFF(202402, EXTRACT(YEAR_MONTH FROM {}))", DATE), ("({} + 0)", TRUTH), ("{}", TRUTH),
        ("CAST({} AS SIGNED)", DATE), ("MOD({}, #)", INTEGER), ("UNIX_TIMESTAMP({})", DATE), ("BIT_LENGTH({})", TEXT),
        ("CAST({} AS UNSIGNED)", "positive"), ("TRUNCATE({}, -1)", "small"), ("UNCOMPRESSED_LENGTH(COMPRESS({}))", TEXT),
        ("ISNULL({})", TEXT),
    ],
    DECIMAL: [
        ("({} + {})", DECIMAL, DECIMAL), ("({} - {})", DECIMAL, INTEGER), ("({} * #)", DECIMAL), ("({} / #)", DECIMAL),
        ("({} / {})", INTEGER, INTEGER), ("ROUND({}, 2)", DECIMAL), ("ROUND({})", DECIMAL), ("TRUNCATE({}, 1)", DECIMAL),
        ("ABS({})", DECIMAL), ("(- {})", DECIMAL), ("({} % {})", DECIMAL, DECIMAL), ("CAST({} AS DECIMAL(20,3))", INTEGER),
        ("CAST({} AS DECIMAL(10,2))", TEXT), ("CAST({} AS DECIMAL(30,5))", DOUBLE), ("({} * 0.5)", INTEGER), ("({} DIV {})", DECIMAL, DECIMAL),
        ("CAST({} AS DECIMAL(20,3))", MOMENT), ("UNIX_TIMESTAMP({})", MOMENT), ("ROUND({}, -1)", DECIMAL), ("ROUND({}, 7)", DECIMAL),
    ],
    DOUBLE: [
        ("({} + {})", DOUBLE, "number"), ("({} - {})", DOUBLE, DOUBLE), ("({} * #)", DOUBLE), ("({} / {})", DOUBLE, "number"),
        ("SQRT(ABS({}))", "number"), ("LN({})", "number"), ("LOG10({})", "number"), ("LOG2({})", "number"), ("ATAN({})", DOUBLE),
        ("SIN({})", "small"), ("COS({})", "small"), ("POW({}, 2)", "small"), ("EXP({} % 5)", INTEGER), ("RADIANS({})", DOUBLE), ("DEGREES({})", "small"),
        ("ROUND({}, 2)", DOUBLE), ("FLOOR({})", DOUBLE), ("CEILING({})", DOUBLE), ("ABS({})", DOUBLE), ("({} + 0e0)", TEXT),
        ("(- {})", DOUBLE), ("TRUNCATE({}, 1)", DOUBLE), ("LOG(2, {})", "number"), ("COT(1 + ABS({}))", "small"), ("ATAN2({}, {})", DOUBLE, "small"),
        ("ACOS({} / 100)", "small"), ("({} % 3)", DOUBLE),
    ],
    TEXT: [
        ("CONCAT({}, {})", TEXT, TEXT), ("CONCAT({}, {})", TEXT, INTEGER), ("CONCAT_WS('-', {}, {}, {})", TEXT, TEXT, DATE), ("UPPER({})", TEXT),
        ("LOWER({})", TEXT), ("SUBSTRING({}, {}, 3)", TEXT, "small"), ("SUBSTRING({}, #)", TEXT), ("LEFT({}, #)", TEXT), ("RIGHT({}, #)", TEXT),
        ("TRIM({})", TEXT), ("TRIM(LEADING 'a' FROM {})", TEXT), ("TRIM(BOTH '0' FROM {})", TEXT), ("LPAD({}, #, 'xy')", TEXT),
        ("RPAD({}, #, '*')", TEXT), ("REPEAT({}, #)", TEXT), ("REVERSE({})", TEXT), ("REPLACE({}, 'a', {})", TEXT, TEXT),
        ("INSERT({}, 2, 1, {})", TEXT, TEXT), ("SUBSTRING_INDEX({}, 'b', #)", TEXT), ("HEX({})", TEXT), ("HEX({})", INTEGER), ("BIN({})", INTEGER),
        ("OCT({})", INTEGER), ("CONV({}, 10, 16)", INTEGER), ("CONV({}, 16, 10)", TEXT), ("FORMAT({}, 2)", DECIMAL), ("FORMAT({}, 0)", INTEGER),
        ("DATE_FORMAT({}, '%Y/%m/%d %H:%i:%s.%f')", MOMENT), ("DATE_FORMAT({}, '%a %b %e %j %U %u %V %v %W %x %X %y %p %r %T %D %c %k %l %M')", MOMENT),
        ("TIME_FORMAT({}, '%H:%i:%s %k %l %p')", TIME), ("DAYNAME({})", DATE), ("MONTHNAME({})", MOMENT), ("CAST({} AS CHAR)", INTEGER),
        ("CAST({} AS CHAR)", DECIMAL), ("CAST({} AS CHAR)", DATE), ("CAST({} AS CHAR)", MOMENT), ("CAST({} AS CHAR)", TIME), ("CAST({} AS CHAR(2))", TEXT),
        ("ELT(#, {}, {}, {})", TEXT, TEXT, TEXT), ("QUOTE({})", TEXT), ("SOUNDEX({})", "ascii"),
        ("TO_BASE64({})", TEXT), ("MAKE_SET({}, {}, {})", INTEGER, TEXT, TEXT), ("EXPORT_SET({}, 'y', 'n', ',', 5)", INTEGER), ("CONCAT({}, '')", DOUBLE),
        ("SHA2({}, 256)", TEXT), ("CONCAT({}, {})", DECIMAL, TIME), ("SPACE(#)",), ("UNHEX(HEX({}))", TEXT), ("INET_NTOA({})", INTEGER), ("(CHAR(IFNULL(ASCII({}), 65) USING utf8mb4) COLLATE utf8mb4_bin)", "ascii"),
        ("(CONVERT({} USING utf8mb4) COLLATE utf8mb4_bin)", TEXT), ("NULLIF({}, '')", TEXT), ("REGEXP_REPLACE({}, '[ab]', '.')", "ascii"),
    ],
    DATE: [
        ("DATE({})", MOMENT), ("DATE_ADD({}, INTERVAL {} DAY)", DATE, "small"), ("DATE_ADD({}, INTERVAL # MONTH)", DATE),
        ("DATE_SUB({}, INTERVAL # YEAR)", DATE), ("({} + INTERVAL {} WEEK)", DATE, "small"), ("LAST_DAY({})", DATE), ("MAKEDATE(2024, ABS({}) % 400)", INTEGER),
        ("FROM_DAYS(738000 + {})", "small"), ("CAST({} AS DATE)", MOMENT), ("STR_TO_DATE(DATE_FORMAT({}, '%d.%m.%Y'), '%d.%m.%Y')", DATE),
        ("({} - INTERVAL '1-2' YEAR_MONTH)", DATE), ("DATE_ADD({}, INTERVAL 1 QUARTER)", DATE),
    ],
    MOMENT: [
        ("DATE_ADD({}, INTERVAL {} HOUR)", MOMENT, "small"), ("DATE_SUB({}, INTERVAL # MINUTE)", MOMENT), ("DATE_ADD({}, INTERVAL # MONTH)", MOMENT),
        ("CAST({} AS DATETIME)", DATE), ("TIMESTAMP({}, '12:00:01')", DATE), ("ADDTIME({}, {})", MOMENT, TIME), ("FROM_UNIXTIME(1700000000 + {})", "small"),
        ("CAST({} AS DATETIME(1))", MOMENT), ("DATE_ADD({}, INTERVAL '1:30' MINUTE_SECOND)", MOMENT), ("DATE_ADD({}, INTERVAL '1 2' DAY_HOUR)", MOMENT),
        ("TIMESTAMPADD(SECOND, {}, {})", "small", MOMENT), ("SUBTIME({}, {})", MOMENT, TIME), ("CAST({} AS DATETIME(3))", MOMENT), ("TIMESTAMPADD(DAY, #, {})", MOMENT),
    ],
    TIME: [
        ("TIME({})", MOMENT), ("ADDTIME({}, {})", TIME, TIME), ("SUBTIME({}, {})", TIME, TIME), ("TIMEDIFF({}, {})", TIME, TIME),
        ("SEC_TO_TIME({})", "small"), ("MAKETIME(ABS({}) % 100, #, #)", INTEGER), ("CAST({} AS TIME)", MOMENT), ("TIMEDIFF({}, {})", MOMENT, MOMENT),
    ],
    TRUTH: [
        ("({} AND {})", TRUTH, TRUTH), ("({} OR {})", TRUTH, TRUTH), ("(NOT {})", TRUTH), ("({} XOR {})", TRUTH, TRUTH), ("({} IS NULL)", "any"),
        ("({} IS NOT NULL)", "any"), ("({} IS TRUE)", TRUTH), ("({} IS NOT FALSE)", TRUTH), ("({} IS UNKNOWN)", TRUTH),
        ("({} LIKE '%a%')", TEXT), ("({} LIKE '_b%')", TEXT), ("({} NOT LIKE {})", TEXT, TEXT), ("({} LIKE CONCAT('%', {}))", TEXT, TEXT),
        ("({} REGEXP '^[a-c]+$')", "ascii"), ("({} REGEXP 'o.*a|[0-9]')", "ascii"), ("({} LIKE '1%')", "number_text"),
    ],
}
# Forms that take their kind from what they are given.
ANY_KIND = [
    ("IF({}, {}, {})", TRUTH, "same", "same"), ("IFNULL({}, {})", "same", "same"), ("COALESCE({}, {}, {})", "same", "same", "same"),
    ("NULLIF({}, {})", "same", "same"), ("CASE WHEN {} THEN {} WHEN {} THEN {} ELSE {} END", TRUTH, "same", TRUTH, "same", "same"),
    ("CASE WHEN {} THEN {} END", TRUTH, "same"), ("CASE {} WHEN {} THEN {} ELSE {} END", INTEGER, INTEGER, "same", "same"),
    ("CASE {} WHEN {} THEN {} END", TEXT, TEXT, "same"), ("GREATEST({}, {})", "same", "same"), ("LEAST({}, {}, {})", "same", "same", "same"),
]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


class Generator:
    def __init__(self, random):
        self.random = random
        self.names = 0

    def name(self):
        self.names += 1
        return f"q{self.names}"

    def chance(self, of):
        return self.random.random() < of

    # Expressions. A scope is a list of (text, kind) that stand for columns, or for what a grouped
    # query may show.

    def constant(self, kind):
        pick = self.random.choice
        if self.chance(0.06):
            return Expression(kind, "NULL")
        if kind == INTEGER:
            return Expression(kind, str(pick(INTEGERS)))
        if kind == DECIMAL:
            return Expression(kind, pick(["0.5", "1.25", "-3.0", "100.001", "7.0"]))
        if kind == DOUBLE:
            return Expression(kind, pick(["0.5e0", "-1e0", "2.5e1", "0e0"]))
        if kind == TEXT:
            return Expression(kind, quoted(pick(WORDS)))
        if kind == DATE:
            return Expression(kind, f"DATE'{date(self.random)}'")
        if kind == MOMENT:
            return Expression(kind, f"TIMESTAMP'{moment(self.random)}'")
        if kind == TIME:
            return Expression(kind, f"TIME'{time(self.random)}'")
        return Expression(kind, pick(["TRUE", "FALSE"]))

    def leaf(self, kind, scope):
        fitting = [text for text, of in scope if of == kind]
        if fitting and not self.chance(0.2):
            return Expression(kind, self.random.choice(fitting))
        return self.constant(kind)

    def argument(self, kind, scope, depth, same):
        pick = self.random.choice
        if kind == "same":
            return self.expression(same, scope, depth)
        if kind == "any":
            return self.expression(pick(KINDS), scope, depth)
        if kind == "number":
            return self.expression(pick(NUMBERS), scope, depth)
        if kind in ("small", "positive"):
            fitting = [text for text, of in scope if of == INTEGER and text.split(".")[-1] in ("i", "s", "id")]
            if kind == "small" and fitting and not self.chance(0.3):
                return Expression(INTEGER, pick(fitting))
            return Expression(INTEGER, str(abs(pick(INTEGERS)) if kind == "positive" else pick(INTEGERS)))
        if kind == "number_text":
            return Expression(TEXT, "{}", [self.leaf(INTEGER, scope)])
        if kind == "ascii":
            fitting = [text for text, of in scope if of == TEXT and text.split(".")[-1] == "e"]
            return Expression(TEXT, pick(fitting) if fitting else quoted(pick(["abc", "ab", "cab", "Ohara1", ""])))
        return self.expression(kind, scope, depth)

    def expression(self, kind, scope, depth):
        if kind == TRUTH:
            return self.truth(scope, depth)
        if depth <= 0 or self.chance(0.25):
            return self.leaf(kind, scope)
        if self.chance(0.06):
            return self.scalar(kind, scope, depth)
        forms = ANY_KIND if self.chance(0.22) else FUNCTIONS[kind]
        template, *kinds = self.random.choice(forms)
        while "#" in template:
            template = template.replace("#", str(self.random.choice([1, 2, 3, 4, 5])), 1)
        return Expression(kind, template, [self.argument(of, scope, depth - 1, kind) for of in kinds])

    def truth(self, scope, depth):
        choice = self.random.random()
        if depth <= 0:
            kind = self.random.choice(KINDS)
            return self.compared(kind, kind, scope, 0)
        if choice < 0.40:
            kind = self.random.choice(KINDS)
            other = self.random.choice(NUMBERS) if kind in NUMBERS else kind
            if self.chance(0.07):
                kind, other = self.random.choice([(INTEGER, TEXT), (TEXT, DOUBLE), (DATE, "date_text"), (DATE, MOMENT)])
            return self.compared(kind, other, scope, depth - 1)
        if choice < 0.50:
            kind = self.random.choice(KINDS)
            three = [self.expression(kind, scope, depth - 1) for _ in range(3)]
            return Expression(TRUTH, self.random.choice(["({} BETWEEN {} AND {})", "({} NOT BETWEEN {} AND {})", "({} IN ({}, {}))", "({} NOT IN ({}, {}))"]), three)
        if choice < 0.62:
            return self.subquery(scope, depth)
        if choice < 0.66:
            four = [self.leaf(kind, scope) for kind in (INTEGER, TEXT) * 2]
            return Expression(TRUTH, "(({}, {}) " + self.random.choice(COMPARISONS) + " ({}, {}))", four)
        template, *kinds = self.random.choice(FUNCTIONS[TRUTH])
        return Expression(TRUTH, template, [self.argument(of, scope, depth - 1, TRUTH) for of in kinds])

    def compared(self, kind, other, scope, depth):
        # Dates are compared with texts that are dates: what others say, MySQL refuses in some
        # places (1525).
        if other == "date_text":
            right = Expression(TEXT, "CAST({} AS CHAR)", [self.leaf(DATE, scope)])
        else:
            right = self.expression(other, scope, depth)
        both = [self.expression(kind, scope, depth), right]
        return Expression(TRUTH, "({} " + self.random.choice(COMPARISONS) + " {})", both)

    def scalar(self, kind, scope, depth):
        """A subquery of one row: an aggregate without groups."""
        sources, inner = self.sources(1, [])
        seen = inner + (scope if self.chance(0.5) else [])
        function = "MAX" if kind not in NUMBERS else self.random.choice(["MAX", "MIN"])
        item = Expression(kind, function + "({})", [self.expression(kind, inner, 1)])
        if kind == INTEGER and self.chance(0.4):
            item = Expression(kind, "COUNT(*)")
        where = [self.truth(seen, 1)] if self.chance(0.8) else []
        return Expression(kind, "({})", [Select([item], sources, where)])

    def subquery(self, scope, depth):
        sources, inner = self.sources(self.random.choice([1, 1, 2]), [])
        seen = inner + (scope if self.chance(0.6) else [])
        where = [self.truth(seen, 1)] if self.chance(0.8) else []
        kind = self.random.choice(KINDS)
        grouped = self.chance(0.2)
        form = self.random.random()
        if form < 0.4:
            query = Select([self.leaf(kind, inner)], sources, where)
            return Expression(TRUTH, self.random.choice(["EXISTS ({})", "NOT EXISTS ({})"]), [query])
        if grouped:
            item = Expression(kind, "MAX({})", [self.leaf(kind, inner)])
            query = Select([item], sources, where, [self.leaf_column(INTEGER, inner)])
        else:
            query = Select([self.expression(kind, inner, 1)], sources, where)
        left = self.expression(kind, scope, depth - 1)
        if form < 0.8:
            return Expression(TRUTH, self.random.choice(["({} IN ({}))", "({} NOT IN ({}))"]), [left, query])
        if form < 0.9:
            comparison = self.random.choice(COMPARISONS[:-1])
            return Expression(TRUTH, "({} " + comparison + self.random.choice([" ANY", " ALL"]) + " ({}))", [left, query])
        item = self.leaf(INTEGER, inner)
        query.items.append(Expression(INTEGER, "MAX({})", [item]) if grouped else item)
        right = self.leaf(INTEGER, scope)
        return Expression(TRUTH, self.random.choice(["(({}, {}) IN ({}))", "(({}, {}) NOT IN ({}))"]), [left, right, query])

    def leaf_column(self, kind, scope):
        fitting = [text for text, of in scope if of == kind]
        return Expression(kind, self.random.choice(fitting) if fitting else "NULL")

    # FROM.

    def sources(self, number, ctes):
        sources, scope = [], []
        for at in range(number):
            alias = self.name()
            if ctes and self.chance(0.6):
                name, kinds = self.random.choice(ctes)
                what = Expression("table", name)
                columns = [(f"{alias}.c{place}", kind) for place, kind in enumerate(kinds)]
            elif self.chance(0.12):
                what, kinds = self.select(2, simple=True)
                columns = [(f"{alias}.c{place}", kind) for place, kind in enumerate(kinds)]
            else:
                weights = [10, 8, 8, 2, 1]
                table = self.random.choices(TABLES, weights)[0][0]
                what = Expression("table", table)
                columns = [(f"{alias}.{column}", kind) for column, _, kind in COLUMNS]
            join = self.random.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN"])
            scope = scope + columns
            on = []
            if at and join != "CROSS JOIN":
                on = [self.join_condition(scope, columns)]
            sources.append(Source(join, [what], alias, on))
        return sources, scope

    def join_condition(self, scope, columns):
        kind = self.random.choice([INTEGER, INTEGER, TEXT, DATE, DECIMAL])
        left = self.leaf_column(kind, scope[: -len(columns)])
        equal = Expression(TRUTH, "({} = {})", [left, self.leaf_column(kind, columns)])
        if self.chance(0.3):
            return Expression(TRUTH, "({} AND {})", [equal, self.truth(scope, 1)])
        return equal

    # SELECT.

    def aggregate(self, kind, scope):
        pick = self.random.choice
        if kind == INTEGER:
            form = pick(["COUNT(*)", "COUNT({})", "COUNT(DISTINCT {})", "MIN({})", "MAX({})", "BIT_OR({})", "BIT_XOR({})", "BIT_AND({})"])
            of = INTEGER if "BIT" in form or "M" in form[0] else pick(KINDS)
        elif kind == DECIMAL:
            form, of = pick(["SUM({})", "AVG({})", "MIN({})", "SUM(DISTINCT {})", "MAX({})", "AVG(DISTINCT {})"]), DECIMAL
            if form[0] in "SA" and self.chance(0.5):
                of = INTEGER
        elif kind == DOUBLE:
            form, of = pick(["SUM({})", "AVG({})", "MIN({})", "STDDEV_POP({})", "VAR_SAMP({})", "STD({})", "VARIANCE({})"]), DOUBLE
        elif kind == TEXT:
            form, of = pick(["MIN({})", "MAX({})", "GROUP_CONCAT({} ORDER BY {} SEPARATOR '|')", "GROUP_CONCAT(DISTINCT {} ORDER BY 1 DESC)"]), TEXT
            if form.startswith("GROUP"):
                inner = self.leaf_column(pick([INTEGER, DECIMAL, DATE, TEXT]), [one for one in scope if not one[0].endswith(".k")])
                if "DISTINCT" in form:
                    return Expression(kind, "GROUP_CONCAT(DISTINCT " + inner.template + " ORDER BY " + inner.template + " DESC)")
                return Expression(kind, "GROUP_CONCAT(" + inner.template + " ORDER BY " + inner.template + " SEPARATOR '|')")
        else:
            form, of = pick(["MIN({})", "MAX({})"]), kind
        arguments = [self.expression(of, scope, 1)] if "{}" in form else []
        return Expression(kind, form, arguments)

    def window(self, kind, scope, total):
        pick = self.random.choice
        partition = ""
        arguments = []
        if self.chance(0.5):
            partition = "PARTITION BY {} "
            arguments.append(self.leaf_column(pick([INTEGER, TEXT, DATE]), scope))
        order = "ORDER BY " + ", ".join(f"{text}{pick(['', ' DESC'])}" for text in total)
        if kind == INTEGER and self.chance(0.6):
            function = pick(["ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(3)", "COUNT(*)"])
            if "RANK" in function and self.chance(0.6):
                order = "ORDER BY {}"
                arguments.append(self.leaf_column(INTEGER, scope))
            return Expression(kind, f"{function} OVER ({partition}{order})", arguments)
        if kind == DOUBLE and self.chance(0.6):
            return Expression(kind, pick(["CUME_DIST()", "PERCENT_RANK()"]) + f" OVER ({partition}{order})", arguments)
        frame = pick(["", "", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                      " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS UNBOUNDED PRECEDING"])
        value = self.leaf_column(kind, scope)
        if kind in (INTEGER, DECIMAL) and self.chance(0.5):
            value = self.leaf_column(DECIMAL, scope)
            return Expression(kind if kind == DECIMAL else DECIMAL, pick(["SUM", "AVG", "MIN", "MAX"]) + f"({{}}) OVER ({partition}{order}{frame})", [value] + arguments)
        function = pick(["LAG({}, 1)", "LEAD({}, 2)", "LAG({})", "FIRST_VALUE({})", "LAST_VALUE({})", "NTH_VALUE({}, 2)", "MIN({})", "MAX({})"])
        if function.startswith("L") and "(" in function and "VALUE" not in function:
            frame = ""
        return Expression(kind, f"{function} OVER ({partition}{order}{frame})", [value] + arguments)

    def select(self, width, simple=False, kinds=None, ctes=()):
        """A query and the kinds of its columns."""
        kinds = kinds or [self.random.choice(KINDS) for _ in range(width)]
        depth = 1 if simple else self.random.choice([1, 2, 2, 3])
        number = 1 if simple else self.random.choice([1, 1, 1, 2, 2, 3])
        sources, scope = self.sources(number, list(ctes))
        where = [self.truth(scope, depth)] if self.chance(0.6) else []
        form = self.random.random()
        if form < 0.28:
            return self.grouped(kinds, sources, scope, where, depth), kinds
        # Rows are told apart by the keys of tables; a derived table's may be equal.
        if form < 0.40 and not simple and all(isinstance(source.what[0], Expression) and source.what[0].template.startswith("t") for source in sources):
            total = [text for text, _ in scope if text.endswith(".id") or text.split(".")[1][:1] == "c" and text.split(".")[1][1:].isdigit()]
            items = [self.window(kind, scope, total) if self.chance(0.6) else self.expression(kind, scope, 1) for kind in kinds]
            return Select(items, sources, where), kinds
        items = [self.expression(kind, scope, depth) for kind in kinds]
        return Select(items, sources, where, distinct=self.chance(0.12)), kinds

    def grouped(self, kinds, sources, scope, where, depth):
        groups = []
        for _ in range(self.random.choice([0, 1, 1, 2])):
            group = self.leaf_column(self.random.choice([INTEGER, TEXT, DATE, DECIMAL, MOMENT]), [one for one in scope if not one[0].endswith(".k")])
            if group.template != "NULL" and group.template not in [one.template for one in groups]:
                groups.append(group)
        shown = [(group.template, group.kind) for group in groups]
        rollup = bool(groups) and self.chance(0.12)

        def item(kind):
            fitting = [text for text, of in shown if of == kind]
            if fitting and self.chance(0.4):
                return Expression(kind, self.random.choice(fitting))
            inner = self.aggregate(kind, scope)
            if self.chance(0.25) and not rollup:
                template, *of = self.random.choice([form for form in ANY_KIND[1:4]])
                return Expression(kind, template, [inner] + [self.aggregate(kind, scope) for _ in of[1:]])
            return inner

        having = []
        if self.chance(0.3) and not rollup:
            kind = self.random.choice([INTEGER, DECIMAL, TEXT])
            having = [Expression(TRUTH, "({} " + self.random.choice(COMPARISONS) + " {})", [self.aggregate(kind, scope), self.constant(kind)])]
        return Select([item(kind) for kind in kinds], sources, where, groups, having, rollup=rollup)

    def ordered(self, query, width):
        """Adds an order of all columns, and often a limit."""
        places = list(range(1, width + 1))
        self.random.shuffle(places)
        query.order = [Expression("order", f"{place}{self.random.choice(['', ' DESC'])}") for place in places]
        if self.chance(0.7):
            query.limit = self.random.choice([" LIMIT 1", " LIMIT 3", " LIMIT 10", " LIMIT 2, 5", " LIMIT 5 OFFSET 3", " LIMIT 0"])
        return query

    def query(self):
        self.names = 0
        width = self.random.choice([1, 2, 3, 4])
        names, bodies, ctes = [], [], []
        if self.chance(0.12):
            for _ in range(self.random.choice([1, 2])):
                body, kinds = self.select(2, simple=True)
                names.append(f"x{len(names)}")
                bodies.append(body)
                ctes.append((names[-1], kinds))
        if not ctes and self.chance(0.12):
            first, kinds = self.select(width)
            parts = [first] + [self.select(width, kinds=kinds)[0] for _ in range(self.random.choice([1, 1, 2]))]
            operators = [self.random.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "UNION DISTINCT"]) for _ in parts[1:]]
            query = SetOperation(parts, operators, [])
        else:
            query, kinds = self.select(width, ctes=ctes)
            query.names, query.ctes = names, bodies
        if self.chance(0.35) and not getattr(query, "rollup", False):
            self.ordered(query, width)
        return query
