"""Random expressions over columns of all types: unlike types compared, casts, and functions' arguments at their edges."""

from all_types import COLUMNS, TABLE
from tree import Expression, Select, SetOperation, Source

ANY = "any"

CONSTANTS = {
    "number": ["0", "1", "-1", "2", "10", "64", "0.5", "-1.25", "1e0", "-2.5e1", "1e20", "9223372036854775807", "18446744073709551615", "20240229", "240229",
               "20240229123000", "0x41", "b'101'", "TRUE", "99999999999999999999.5", "0.000000000000000000000000000001"],
    "text": ["''", "'a'", "'A'", "'ab'", "'10'", "'10abc'", "'-3'", "'1e2'", "' 7'", "'2024-02-29'", "'24-2-29'", "'2024-02-30'", "'12:30'", "'x,y'", "'%'", "'_b'",
             "'漢字'", "'😀'", "_binary'ab'", "x'FF'", "_latin1'e'", "'2024-02-29 12:30:00.5'", "'-1 1:02:03.4'", "'0'", "'a\\\\b'", "'é'", "'null'", "'[1, 2]'"],
    "temporal": ["DATE'2024-02-29'", "DATE'1999-12-31'", "TIME'12:30:45'", "TIME'-01:02:03.5'", "TIMESTAMP'2024-02-29 12:30:00'", "TIMESTAMP'1970-01-01 00:00:00.125'",
                 "TIME'838:59:59'", "DATE'9999-12-31'"],
    "json": ["JSON_ARRAY(1, 'x', NULL)", "JSON_OBJECT('a', 1)", "CAST('{{\"a\": [1, 2]}}' AS JSON)", "CAST('1.5' AS JSON)", "CAST('\"a\"' AS JSON)", "JSON_ARRAY()"],
    "path": ["'$'", "'$.a'", "'$[0]'", "'$[last]'", "'$.*'", "'$**.a'", "'$.b[1]'"],
    "format": ["'%Y-%m-%d'", "'%d.%m.%y %H:%i'", "'%W %M %e'", "'%r %T %f'", "'%j %U %v %x'", "'%h:%s %p'", "'%b %D %c'", "'%k%%'", "''"],
    "place": ["0", "1", "-1", "2", "3", "5", "-4", "30", "NULL", "1.5", "'2'"],
}
# Templates and the classes of their arguments. ANY is of any type.
NUMBER, TEXT, TEMPORAL, JSON, PATH, FORMAT, PLACE = "number", "text", "temporal", "json", "path", "format", "place"
COMPARISONS = [(f"({{}} {sign} {{}})", ANY, ANY) for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")] + [
    ("({} BETWEEN {} AND {})", ANY, ANY, ANY), ("({} NOT BETWEEN {} AND {})", ANY, ANY, ANY), ("({} IN ({}, {}))", ANY, ANY, ANY), ("({} NOT IN ({}, {}))", ANY, ANY, ANY),
    ("({} LIKE {})", ANY, TEXT), ("(({}, {}) = ({}, {}))", ANY, ANY, ANY, ANY), ("(({}, {}) < ({}, {}))", ANY, ANY, ANY, ANY), ("({} IS NULL)", ANY), ("({} IS TRUE)", ANY),
    ("STRCMP({}, {})", ANY, ANY), ("(NOT {})", ANY), ("({} AND {})", ANY, ANY), ("({} OR {})", ANY, ANY), ("({} XOR {})", ANY, ANY), ("(! {})", ANY),
]
CASTS = [(f"CAST({{}} AS {kind})", ANY) for kind in (
    "SIGNED", "UNSIGNED", "CHAR", "CHAR(3)", "BINARY", "BINARY(3)", "DATE", "TIME", "TIME(3)", "DATETIME", "DATETIME(2)", "DECIMAL", "DECIMAL(10,2)", "DECIMAL(65,30)",
    "DOUBLE", "FLOAT", "REAL", "YEAR", "JSON", "NCHAR(2)", "CHAR CHARACTER SET latin1", "CHAR(2) CHARACTER SET utf8mb4")] + [
    ("CONVERT({}, SIGNED)", ANY), ("CONVERT({} USING latin1)", TEXT), ("CONVERT({} USING utf8mb4)", ANY), ("BINARY {}", TEXT), ("({} COLLATE utf8mb4_general_ci)", TEXT),
]
ARITHMETIC = [(f"({{}} {sign} {{}})", NUMBER, NUMBER) for sign in ("+", "-", "*", "/", "DIV", "%", "MOD")] + [
    (f"({{}} {sign} {{}})", ANY, ANY) for sign in ("+", "-", "*", "/", "DIV", "%", "&", "|", "^", "<<", ">>")] + [
    ("(- {})", ANY), ("(~ {})", ANY), ("({} & {})", TEXT, TEXT), ("({} / {} * {})", NUMBER, NUMBER, NUMBER),
]
NUMERIC_FUNCTIONS = [
    ("ABS({})", ANY), ("SIGN({})", ANY), ("FLOOR({})", ANY), ("CEILING({})", ANY), ("ROUND({})", ANY), ("ROUND({}, {})", NUMBER, PLACE), ("TRUNCATE({}, {})", NUMBER, PLACE),
    ("MOD({}, {})", NUMBER, NUMBER), ("POW({}, {})", NUMBER, PLACE), ("SQRT({})", ANY), ("EXP({})", PLACE), ("LN({})", NUMBER), ("LOG({}, {})", NUMBER, NUMBER), ("LOG2({})", NUMBER), ("LOG10({})", ANY),
    ("SIN({})", NUMBER), ("ACOS({})", NUMBER), ("ATAN({}, {})", NUMBER, NUMBER), ("COT({})", NUMBER), ("DEGREES({})", NUMBER), ("CONV({}, {}, {})", ANY, PLACE, PLACE), ("CONV({}, 10, 16)", ANY), ("CONV({}, 16, -10)", TEXT),
    ("BIN({})", ANY), ("OCT({})", ANY), ("HEX({})", ANY), ("CRC32({})", ANY), ("BIT_COUNT({})", ANY), ("FORMAT({}, {})", NUMBER, PLACE), ("INTERVAL({}, {}, {})", NUMBER, NUMBER, NUMBER),
    ("GREATEST({}, {})", ANY, ANY), ("LEAST({}, {})", ANY, ANY), ("GREATEST({}, {}, {})", NUMBER, NUMBER, NUMBER), ("INET_NTOA({})", NUMBER), ("INET_ATON({})", TEXT), ("PI()",), ("RADIANS({})", NUMBER),
    ("INET6_NTOA(INET6_ATON({}))", TEXT), ("FORMAT_BYTES({})", NUMBER), ("FORMAT_PICO_TIME({})", NUMBER),
]
TEXT_FUNCTIONS = [
    ("CONCAT({}, {})", ANY, ANY), ("CONCAT({})", ANY), ("CONCAT_WS({}, {}, {})", TEXT, ANY, ANY), ("LENGTH({})", ANY), ("CHAR_LENGTH({})", ANY), ("BIT_LENGTH({})", ANY), ("UPPER({})", ANY), ("LOWER({})", ANY),
    ("LPAD({}, {}, {})", ANY, PLACE, TEXT), ("RPAD({}, {}, {})", TEXT, PLACE, ANY), ("LEFT({}, {})", ANY, PLACE), ("RIGHT({}, {})", ANY, PLACE), ("SUBSTRING({}, {})", ANY, PLACE), ("SUBSTRING({}, {}, {})", ANY, PLACE, PLACE),
    ("SUBSTRING_INDEX({}, {}, {})", ANY, TEXT, PLACE), ("LOCATE({}, {})", ANY, ANY), ("LOCATE({}, {}, {})", TEXT, TEXT, PLACE), ("INSTR({}, {})", ANY, ANY), ("POSITION({} IN {})", TEXT, TEXT),
    ("REPLACE({}, {}, {})", ANY, TEXT, TEXT), ("REPEAT({}, {})", ANY, PLACE), ("REVERSE({})", ANY), ("INSERT({}, {}, {}, {})", ANY, PLACE, PLACE, TEXT), ("TRIM({})", ANY), ("LTRIM({})", ANY), ("RTRIM({})", ANY),
    ("TRIM(BOTH {} FROM {})", TEXT, ANY), ("TRIM(LEADING {} FROM {})", TEXT, ANY), ("ASCII({})", ANY), ("ORD({})", ANY), ("CHAR({}, {})", NUMBER, ANY), ("CHAR({} USING utf8mb4)", NUMBER), ("ELT({}, {}, {})", PLACE, ANY, ANY),
    ("FIELD({}, {}, {})", ANY, ANY, ANY), ("FIND_IN_SET({}, {})", ANY, ANY), ("MAKE_SET({}, {}, {})", ANY, ANY, ANY), ("EXPORT_SET({}, {}, {})", NUMBER, TEXT, TEXT), ("EXPORT_SET({}, 'y', 'n', {}, {})", NUMBER, TEXT, PLACE),
    ("QUOTE({})", ANY), ("SOUNDEX({})", TEXT), ("SPACE({})", PLACE), ("TO_BASE64({})", ANY), ("FROM_BASE64({})", ANY), ("UNHEX({})", ANY), ("SHA2({}, {})", ANY, PLACE),
    ("WEIGHT_STRING({})", TEXT), ("CHARSET({})", ANY), ("COLLATION({})", ANY), ("COERCIBILITY({})", ANY), ("HEX(WEIGHT_STRING({}))", TEXT), ("({} REGEXP {})", ANY, TEXT), ("REGEXP_LIKE({}, {}, 'i')", TEXT, TEXT),
    ("REGEXP_INSTR({}, {})", TEXT, TEXT), ("REGEXP_SUBSTR({}, {})", TEXT, TEXT), ("REGEXP_REPLACE({}, {}, {})", TEXT, TEXT, TEXT), ("({} NOT LIKE {} ESCAPE '|')", ANY, TEXT), ("UNCOMPRESS(COMPRESS({}))", ANY),
]
UNITS = ["MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "DAY_HOUR", "HOUR_MINUTE", "YEAR_MONTH", "DAY_MICROSECOND", "MINUTE_SECOND", "SECOND_MICROSECOND"]
TEMPORAL_FUNCTIONS = [(f"DATE_{way}({{}}, INTERVAL {{}} {unit})", TEMPORAL, ANY) for way in ("ADD", "SUB") for unit in UNITS] + [
    (f"EXTRACT({unit} FROM {{}})", TEMPORAL) for unit in UNITS] + [
    (f"TIMESTAMPDIFF({unit}, {{}}, {{}})", TEMPORAL, TEMPORAL) for unit in UNITS[:9]] + [
    (f"TIMESTAMPADD({unit}, {{}}, {{}})", NUMBER, TEMPORAL) for unit in UNITS[:9]] + [
    (f"{name}({{}})", TEMPORAL) for name in ("YEAR", "MONTH", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "WEEKDAY", "WEEKOFYEAR", "QUARTER", "DAYNAME", "MONTHNAME", "LAST_DAY", "DATE", "TIME", "HOUR", "MINUTE", "SECOND",
     "MICROSECOND", "TO_DAYS", "TO_SECONDS", "TIME_TO_SEC", "UNIX_TIMESTAMP", "TIMESTAMP", "YEARWEEK", "WEEK")] + [
    (f"{name}({{}})", ANY) for name in ("DATE", "TIME", "YEAR", "HOUR", "MICROSECOND", "LAST_DAY", "TO_DAYS", "UNIX_TIMESTAMP", "FROM_UNIXTIME", "FROM_DAYS", "SEC_TO_TIME", "TIME_TO_SEC", "DAYNAME", "TIMESTAMP")] + [
    ("DATEDIFF({}, {})", TEMPORAL, TEMPORAL), ("TIMEDIFF({}, {})", TEMPORAL, TEMPORAL), ("ADDTIME({}, {})", TEMPORAL, TEMPORAL), ("SUBTIME({}, {})", TEMPORAL, ANY), ("TIMESTAMP({}, {})", TEMPORAL, TEMPORAL),
    ("DATE_FORMAT({}, {})", TEMPORAL, FORMAT), ("TIME_FORMAT({}, {})", TEMPORAL, FORMAT), ("STR_TO_DATE({}, {})", TEXT, FORMAT), ("FROM_UNIXTIME({}, {})", NUMBER, FORMAT), ("MAKEDATE({}, {})", NUMBER, PLACE), ("MAKETIME({}, {}, {})", PLACE, PLACE, NUMBER),
    ("PERIOD_ADD({}, {})", NUMBER, PLACE), ("PERIOD_DIFF({}, {})", NUMBER, NUMBER), ("WEEK({}, {})", TEMPORAL, PLACE), ("YEARWEEK({}, {})", TEMPORAL, PLACE), ("({} + INTERVAL {} DAY)", TEMPORAL, PLACE),
    ("CONVERT_TZ({}, '+00:00', '+05:30')", TEMPORAL), ("GET_FORMAT(DATE, 'ISO')",), ("ADDDATE({}, {})", TEMPORAL, PLACE),
]
JSON_FUNCTIONS = [
    ("JSON_EXTRACT({}, {})", JSON, PATH), ("JSON_TYPE({})", JSON), ("JSON_VALID({})", ANY), ("JSON_UNQUOTE({})", JSON), ("JSON_QUOTE({})", TEXT), ("JSON_LENGTH({})", JSON), ("JSON_DEPTH({})", JSON), ("JSON_KEYS({})", JSON),
    ("JSON_ARRAY({}, {})", ANY, ANY), ("JSON_OBJECT({}, {})", TEXT, ANY), ("JSON_CONTAINS({}, {})", JSON, JSON), ("JSON_CONTAINS_PATH({}, 'one', {})", JSON, PATH), ("JSON_SET({}, {}, {})", JSON, PATH, ANY),
    ("JSON_INSERT({}, {}, {})", JSON, PATH, ANY), ("JSON_REPLACE({}, {}, {})", JSON, PATH, ANY), ("JSON_REMOVE({}, {})", JSON, PATH), ("JSON_MERGE_PATCH({}, {})", JSON, JSON), ("JSON_MERGE_PRESERVE({}, {})", JSON, JSON),
    ("JSON_SEARCH({}, 'all', {})", JSON, TEXT), ("JSON_ARRAY_APPEND({}, {}, {})", JSON, PATH, ANY), ("JSON_ARRAY_INSERT({}, '$[0]', {})", JSON, ANY), ("JSON_PRETTY({})", JSON), ("JSON_OVERLAPS({}, {})", JSON, JSON),
    ("JSON_VALUE({}, {})", JSON, "literal path"), ("JSON_STORAGE_SIZE({})", JSON), ("({} MEMBER OF ({}))", ANY, JSON), ("JSON_VALUE({}, '$.a' RETURNING SIGNED)", JSON),
]
CONTROL = [
    ("IF({}, {}, {})", ANY, ANY, ANY), ("IFNULL({}, {})", ANY, ANY), ("COALESCE({}, {}, {})", ANY, ANY, ANY), ("NULLIF({}, {})", ANY, ANY), ("CASE WHEN {} THEN {} ELSE {} END", ANY, ANY, ANY), ("CASE {} WHEN {} THEN {} END", ANY, ANY, ANY),
    ("ISNULL({})", ANY), ("ANY_VALUE({})", ANY),
]
AGGREGATES = [
    ("MIN({})", ANY), ("MAX({})", ANY), ("SUM({})", ANY), ("AVG({})", ANY), ("COUNT({})", ANY), ("COUNT(DISTINCT {})", ANY), ("SUM(DISTINCT {})", NUMBER), ("BIT_AND({})", ANY), ("BIT_OR({})", ANY), ("BIT_XOR({})", NUMBER), ("STD({})", NUMBER),
    ("VAR_SAMP({})", NUMBER), ("GROUP_CONCAT({} ORDER BY id)", ANY),
]
FAMILIES = [(COMPARISONS, 5), (CASTS, 3), (ARITHMETIC, 3), (NUMERIC_FUNCTIONS, 3), (TEXT_FUNCTIONS, 4), (TEMPORAL_FUNCTIONS, 4), (JSON_FUNCTIONS, 2), (CONTROL, 3)]


class ExpressionGenerator:
    def __init__(self, random):
        self.random = random

    def leaf(self, kind):
        pick = self.random.choice
        if kind == "literal path":
            kind = "path"
        if kind == ANY or self.random.random() < 0.07 and kind in ("number", "text", "temporal", "json"):
            kind = pick(["number", "number", "text", "text", "temporal", "json"])
        columns = [name for name, _, of, _ in COLUMNS if of == kind]
        chance = self.random.random()
        if chance < 0.03:
            return Expression(ANY, "NULL")
        if columns and chance < 0.65:
            return Expression(ANY, pick(columns))
        return Expression(kind if kind in ("path", "format", "place") else ANY, pick(CONSTANTS[kind]))

    def expression(self, kind, depth):
        if depth <= 0 or kind in ("path", "literal path", "format") or self.random.random() < 0.45:
            return self.leaf(kind)
        families, weights = zip(*FAMILIES)
        family = self.random.choices(families, weights)[0]
        if kind == "temporal" and self.random.random() < 0.6:
            family = TEMPORAL_FUNCTIONS
        if kind == "json" and self.random.random() < 0.8:
            family = JSON_FUNCTIONS
        return self.of_family(family, depth)

    def of_family(self, family, depth):
        template, *kinds = self.random.choice(family)
        return Expression(ANY, template, [self.expression(kind, depth - 1) for kind in kinds])

    def top(self, depth):
        families, weights = zip(*FAMILIES)
        return self.of_family(self.random.choices(families, weights)[0], depth)

    def query(self):
        depth = self.random.choice([1, 1, 1, 2, 2, 3])
        source = [Source("", [Expression("table", TABLE)], "o", [])]
        form = self.random.random()
        if form < 0.12:
            # Without a table: constants alone take other ways.
            expression = self.top(depth)
            for leaf in leaves(expression):
                if leaf.template.isalnum() and leaf.template.islower():
                    leaf.template = self.random.choice(CONSTANTS[self.random.choice(["number", "text", "temporal"])])
            return Select([expression], [])
        if form < 0.22:
            template, *kinds = self.random.choice(AGGREGATES)
            item = Expression(ANY, template, [self.expression(kind, depth - 1) for kind in kinds])
            groups = [Expression(ANY, self.random.choice(COLUMNS)[0])] if self.random.random() < 0.4 else []
            return Select(groups + [item] if groups else [item], source, groups=groups)
        if form < 0.32:
            return Select([Expression("key", "o.id")], source, [self.of_family(COMPARISONS, depth)])
        if form < 0.36:
            inner = Select([Expression("key", "o.id"), self.top(depth)], source)
            return Select([Expression(ANY, "x1.c1")], [Source("", [inner], "x1", [])])
        if form < 0.40:
            second = Source("JOIN", [Expression("table", TABLE)], "p", [Expression(ANY, f"(o.{self.random.choice(COLUMNS)[0]} = p.{self.random.choice(COLUMNS)[0]})")])
            return Select([Expression("key", "o.id"), Expression("key", "p.id")], source + [second])
        if form < 0.44:
            first, other = (Select([self.expression(ANY, 1)], list(source)) for _ in range(2))
            return SetOperation([first, other], [self.random.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])], [])
        return Select([Expression("key", "o.id"), self.top(depth)], source)


def leaves(expression):
    if not expression.arguments:
        yield expression
    for argument in expression.arguments:
        yield from leaves(argument)
