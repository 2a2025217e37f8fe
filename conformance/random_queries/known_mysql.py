"""Differences between Firn and MySQL that are no fault of Firn's: each rule says why.

A rule is asked about a difference in its smallest form, so that it cannot hide another one in the same query.
"""

import re

import compare


def folded(outcome):
    return sorted(str(row).casefold() for row in outcome) if isinstance(outcome, tuple) else outcome


def has(pattern):
    return lambda text, firn, mysql: bool(re.search(pattern, text))


def same_rows(pattern):
    """For a difference in column definitions or warnings: the rows have to be the same."""
    return lambda text, firn, mysql: firn == mysql and bool(re.search(pattern, text))


def same_numbers(firn, mysql):
    """Numbers may have other zeros; texts beside them are the same."""
    def numeric(value):
        try:
            return None if value is None else float(value)
        except ValueError:
            return value

    def numbers(rows):
        return sorted(str([numeric(value) for value in row]) for row in rows)
    return isinstance(firn, tuple) and isinstance(mysql, tuple) and numbers(firn) == numbers(mysql)


def as_texts(rows):
    return sorted(str([value.decode("latin1") if isinstance(value, bytes) else value for value in row]) for row in rows)


def reads_assigned(text):
    """Whether an update of several tables sets a column that another of its assignments reads."""
    if not (text.startswith("UPDATE ") and " JOIN " in text):
        return False
    columns = re.findall(r"(?:SET |, )([xy]\.\w+) = ", text)
    return any(len(re.findall(rf"{re.escape(column)}\b", text.split(" SET ", 1)[1])) > 1 for column in columns)


def derives_constant(text):
    """Whether an item of a derived table or a subquery is written without a column: it is the same for all rows."""
    for start in re.finditer(r"\(SELECT (?:DISTINCT )?", text):
        depth, item = 0, ""
        for character in text[start.end():]:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth < 0 or item.endswith(" FROM "):
                break
            if character == "," and depth == 0:
                if not re.search(r"\b[a-z]\w*\.", item):
                    return True
                item = ""
            else:
                item += character
        if not re.search(r"\b[a-z]\w*\.", item):
            return True
    return False


def evaluates_in_part(text):
    """Whether some of a query's expressions need not be worked out for all rows, or only once."""
    return bool(re.search(r" (WHERE|ON|HAVING|LIMIT|JOIN|UNION|INTERSECT|EXCEPT|AND|OR|XOR) |\b(IF|IFNULL|COALESCE|NULLIF|ELT|INTERVAL|FIELD)\(|\bCASE |\(SELECT | DISTINCT | OVER \(| IN \(", text))


def sets_key(text):
    """Whether an UPDATE sets a column of a unique key."""
    return bool(re.search(r"( SET |, )([xy]\.)?(id|a|u|k|n) = ", text))


def same_means(firn, mysql):
    """Whether numbers differ beyond the 13th digit alone: those of sums of doubles in another order."""
    def rounded(value):
        try:
            return value if value is None else f"{float(value):.12e}"
        except ValueError:
            return value

    def numbers(rows):
        return sorted(str([rounded(value) for value in row]) for row in rows)
    return isinstance(firn, tuple) and isinstance(mysql, tuple) and firn != mysql and numbers(firn) == numbers(mysql)


def fewer_rows(firn, mysql):
    return isinstance(firn, tuple) and isinstance(mysql, tuple) and len(mysql) < len(firn)


# Name, reason, and whether it holds: of the text and both outcomes (rows, or the number of an
# error).
RULES = [
    (
        "one of several equal texts",
        "a case-insensitive column has several texts for one value: which is shown, and which comes first, depends on the plan",
        lambda text, firn, mysql: bool(re.search(r"\.k\b|GROUP BY (ch|vc|v9|vl|lt|tx|en|st)$", text)) and folded(firn) == folded(mysql),
    ),
    (
        "the largest of dates and of what is none",
        "Firn leaves out what is no date; MySQL shows the 31st of the month 15 of the year 16383",
        lambda text, firn, mysql: bool(re.search(r"GREATEST\(|LEAST\(", text)) and "16383-15-31" in str(mysql),
    ),
    (
        "the smallest of moments and of what is none",
        "Firn leaves out what is no moment; MySQL takes a text that is empty or begins with a zero byte for the zero date, and shows it as it is written",
        lambda text, firn, mysql: bool(re.search(r"LEAST\(.*\b(d0|d6|ts|TIMESTAMP')", text)) and isinstance(mysql, tuple) and bool(re.search(r"b?'(\\x00[^']*)?'", str(mysql)))
        and not re.search(r"b?'(\\x00[^']*)?'", str(firn)),
    ),
    (
        "the smallest of moments and of a number that is none",
        "Firn leaves out what is no moment; MySQL takes such a number for the zero date, and shows it as it is written beside a moment, and as the zero date beside a date",
        lambda text, firn, mysql: bool(re.search(r"LEAST\(.*(\b(d0|d6|ts|da)\b|TIMESTAMP'|DATE')", text)) and isinstance(firn, tuple) and isinstance(mysql, tuple)
        and all(re.fullmatch(r"-?[\d.]+|0000-00-00", str(row[-1])) for row in set(mysql) - set(firn)),
    ),
    (
        "STRCMP of a column of dates",
        "MySQL compares the digits into which it packs a constant number beside such a column, and finds no text beside one in latin1 (3854)",
        lambda text, firn, mysql: bool(re.search(r"STRCMP\((d0|d6|ts|da), [-0-9.]+\)|STRCMP\([-0-9.]+, (d0|d6|ts|da)\)", text))
        or mysql == 3854 and bool(re.search(r"STRCMP\((d0|d6|ts|da|DATE'[^']*'|TIMESTAMP'[^']*'), |STRCMP\(\w+, (d0|d6|ts|da|DATE'[^']*'|TIMESTAMP'[^']*')\)", text)),
    ),
    (
        "joins of a DECIMAL and integers that it cannot hold",
        "MySQL's hash join cuts the integer to the column's digits: 16777215 finds 999999.99 there, which its comparison does not",
        has(r" JOIN o1 p ON \(o\.(dz = p\.(mu|it|bi|bu|iz)|(mu|it|bi|bu|iz) = p\.dz)\)$"),
    ),
    (
        "bits chosen beside numbers",
        "MySQL describes the chosen value as a number and sends the bytes of the BIT",
        lambda text, firn, mysql: bool(re.search(r"\b(IF\(|IFNULL\(|CASE |COALESCE\(|NULLIF\().*\b(b1|b9|bl|b'101')", text)) and isinstance(firn, tuple)
        and isinstance(mysql, tuple) and len(firn) == len(mysql) and any(re.search(r"\\x0[0-9a-f]", str(row)) for row in mysql),
    ),
    (
        "bits chosen among bits",
        "MySQL sends their digits under the type BIT, whose values are bytes everywhere else",
        lambda text, firn, mysql: bool(re.search(r"\b(IFNULL|COALESCE|LEAST|GREATEST)\((NULL|b1|b9|bl)(, (NULL|b1|b9|bl))*\)", text)),
    ),
    (
        "constants of a derived table in an outer join",
        "MySQL forgets that they are NULL where nothing was joined, or where the group is that of all rows",
        lambda text, firn, mysql: isinstance(firn, tuple) and isinstance(mysql, tuple) and derives_constant(text) and bool(re.search(r"(LEFT|RIGHT) JOIN | (HAVING|GROUP BY) ", text)),
    ),
    (
        "rows compared across an outer join",
        "(a, b) < (c, NULL) is true if a < c; MySQL makes an inner join of such an outer one",
        has(r" JOIN .*\([^()]+, [^()]+\) (=|<>|<|<=|>|>=) \([^()]+, [^()]+\)"),
    ),
    (
        "documents in BETWEEN, GREATEST and LEAST",
        "MySQL compares them as texts or doubles there, and warns (1235) that documents are not supported yet",
        has(r"(BETWEEN|GREATEST\(|LEAST\().*(\bjs?\b|JSON)|(\bjs?\b|JSON).* BETWEEN"),
    ),
    (
        "COUNT(DISTINCT) of a subquery without rows",
        "that is NULL, which does not count; MySQL counts it",
        has(r"COUNT\(DISTINCT \(SELECT"),
    ),
    (
        "MAX and MIN of ENUM",
        "by the texts of its members; where MySQL takes them from an index or a temporary table, by their numbers",
        has(r"(MAX|MIN)\((\w+\.)?(e|en|st|c\d)\)"),
    ),
    (
        "REPEAT of a subquery's value",
        "MySQL repeats what the row before has left in the subquery's buffer",
        has(r"REPEAT\(\(SELECT "),
    ),
    (
        "NULL among the arguments of QUOTE, FIELD, INTERVAL, MAKE_SET and ELT",
        "it does not make their values NULL; MySQL makes an inner join of such an outer one",
        lambda text, firn, mysql: fewer_rows(firn, mysql)
        and bool(re.search(r"(LEFT|RIGHT) JOIN .*\b(QUOTE|FIELD|INTERVAL|MAKE_SET|ELT)\(|IN \(SELECT (QUOTE|FIELD|INTERVAL|MAKE_SET|ELT)\(.* (LEFT|RIGHT) JOIN ", text)),
    ),
    (
        "children of a row that IGNORE leaves as it is",
        "MySQL has already changed them when the parent's new key turns out to be taken",
        lambda text, firn, mysql: isinstance(firn, tuple) and isinstance(mysql, tuple)
        and bool(re.search(r"^UPDATE IGNORE .*\b(w1\b.*SET (y\.)?a|y\.a|x\.a|a) = |^INSERT IGNORE INTO w1 .* ON DUPLICATE KEY UPDATE .*\ba = ", text)),
    ),
    (
        "rows that a cascade deletes first",
        "they do not count as deleted, and are no longer read; which of two tables' rows MySQL reads or deletes first is its plan's business, as STRAIGHT_JOIN shows",
        has(r"^DELETE (x, y FROM w[13] AS x (LEFT )?JOIN w[13]|x FROM w1 AS x (LEFT )?JOIN w3|y FROM w3 AS x (LEFT )?JOIN w1) AS y ON "),
    ),
    (
        "dates of an update of several tables",
        "MySQL stores them into a temporary table and then from there, where a zero date is out of range (1264) once more",
        lambda text, firn, mysql: not isinstance(firn, int) and (not isinstance(mysql, int) or mysql in (1264, 1292)) and bool(re.search(r"^UPDATE .* JOIN .* SET .*\b[xy]\.[dt] = ", text)),
    ),
    (
        "which row of several tables changes first",
        "MySQL's manual promises no order: the rows and assignments of an update of several tables meet a taken value, or a value that is refused, in the order of its plan",
        lambda text, firn, mysql: text.startswith("UPDATE ") and " JOIN " in text
        and (1062 in (firn, mysql) and sets_key(text) or isinstance(firn, int) and isinstance(mysql, int) or bool(re.search(r"^UPDATE IGNORE .* SET .*\b[xy]\.(id|a|u|k|n) = ", text))),
    ),
    (
        "assignments of several tables that read each other's columns",
        "MySQL's manual promises no order: it works out what goes into the second table from the row as it was or as it is, by its plan",
        lambda text, firn, mysql: reads_assigned(text),
    ),
    (
        "which row is refused first",
        "without ORDER BY, a table's rows are updated in the order of the plan's index, and may be refused for several reasons",
        lambda text, firn, mysql: text.startswith("UPDATE ") and " ORDER BY " not in text and isinstance(firn, int) and isinstance(mysql, int),
    ),
    (
        "rows that a cascade changes while they are read",
        "Firn reads the rows that a REPLACE takes from a table before it deletes their parents; MySQL reads what the deletions before have left of them",
        has(r"^REPLACE INTO w1 .* FROM w3 AS o "),
    ),
    (
        "dates stored of the largest of dates and of what is none",
        "MySQL's value is the 31st of the month 15 of the year 16383, which no column of dates holds, and whose year an integer column does",
        has(r"^(UPDATE|INSERT|REPLACE) .*(\b[dt] = (GREATEST|LEAST)\(|\bid = GREATEST\([xy]?\.?[eb], [xy]?\.?d\))"),
    ),
    (
        "digits after the point of a chosen number",
        "SELECT shows those of all the values that one is chosen of; MySQL stores those of the chosen one into a text, and none of a product that is 0",
        has(r"^(UPDATE|INSERT) .*\b(b|v|k|o) = ((IFNULL|GREATEST|LEAST|NULLIF)\(|\([xy]?\.?c \*)"),
    ),
    (
        "what a plan need not work out",
        "1690, a value out of range, 1242, a second row, or 1210, a period that is none: one system works out what the other does not need",
        lambda text, firn, mysql: text.startswith(("SELECT", "WITH", "(")) and any(code in (firn, mysql) for code in (1690, 1242, 1210)) and evaluates_in_part(text)
        or isinstance(firn, int) and bool(re.search(r" AND '?0'?\)| WHERE NULL\b", text)),
    ),
    (
        "times added and subtracted",
        "MySQL takes SUBTIME(m, t) for ADDTIME(m, t) where they are compared, and one for never unequal to the other",
        has(r"(WHERE|ON|HAVING) .*\b(SUBTIME\(([^()]+)\).*\bADDTIME\(\3\)|ADDTIME\(([^()]+)\).*\bSUBTIME\(\4\))"),
    ),
    (
        "zeros below zero in INTERSECT and EXCEPT",
        "-0 is 0 for UNION and DISTINCT, and for all comparisons; MySQL's INTERSECT and EXCEPT tell them apart",
        lambda text, firn, mysql: bool(re.search(r"\b(INTERSECT|EXCEPT)\b", text)) and isinstance(firn, tuple) and isinstance(mysql, tuple)
        and all(set(row) <= {"-0", "0", None} for row in set(firn) ^ set(mysql)),
    ),
    (
        "coercibility of numbers of places",
        "MySQL takes the coercibility with which INSTR, LOCATE and REGEXP_INSTR compare for that of their number",
        has(r"COERCIBILITY\((INSTR|LOCATE|REGEXP_INSTR)\("),
    ),
    (
        "numbers of places as texts or bytes",
        "MySQL takes the collation in which INSTR, LOCATE, FIELD and REGEXP_INSTR compare for that of their number as a text",
        lambda text, firn, mysql: bool(re.search(r"\b(INSTR|LOCATE|POSITION|FIELD|REGEXP_INSTR)\(", text)) and isinstance(firn, tuple)
        and (mysql in (1267, 1271) or isinstance(mysql, tuple) and firn != mysql and as_texts(firn) == as_texts(mysql)),
    ),
    (
        "COLLATE in a condition that moves into a derived table",
        "MySQL reads the text of CHAR(… USING utf8mb4) COLLATE there once more, as bytes, which have no such collation",
        lambda text, firn, mysql: mysql == 1253 and isinstance(firn, tuple) and bool(re.search(r"\(SELECT .*CHAR\(.* USING utf8mb4\) COLLATE .* WHERE ", text)),
    ),
    (
        "MAKE_SET as the smallest and largest of groups",
        "MySQL cuts it to the length that it tells of, which counts a number as one character",
        lambda text, firn, mysql: bool(re.search(r"(MIN|MAX)\(MAKE_SET\(.* GROUP BY ", text)) and isinstance(firn, tuple) and isinstance(mysql, tuple)
        and len(firn) == len(mysql) and all(any(str(one[0]).startswith(str(other[0])) for one in firn) for other in mysql),
    ),
    (
        "NULLIF of a number and a column of moments",
        "MySQL stores the number as a date alone, warns of its time, and is left with NULL",
        lambda text, firn, mysql: bool(re.search(r"NULLIF\(-?[\d.]+, (\w+\.)?(ts|d0|d6|m)\)", text)) and "None" in str(mysql),
    ),
    (
        "conditions of a subquery in the ON of an outer join",
        "MySQL makes a join of it and forgets its WHERE and ON: the rows are those of the subquery without them",
        lambda text, firn, mysql: isinstance(firn, tuple) and isinstance(mysql, tuple) and bool(re.search(r"(LEFT|RIGHT) JOIN \w+ \w+ ON \([^()]* IN \(SELECT .*( WHERE | ON )", text)),
    ),
    (
        "weights",
        "keys of Unicode's collations are Firn's own, which WEIGHT_STRING shows",
        lambda text, firn, mysql: "WEIGHT_STRING(" in text and bool(re.search(r"\b(ch|tx|v9|en|st)\b", text)) and isinstance(firn, tuple) and isinstance(mysql, tuple),
    ),
    (
        "digits of the chosen number",
        "IF and CASE are described with the digits of all their values; MySQL sends those of the chosen one, and those of all from COALESCE",
        lambda text, firn, mysql: bool(re.search(r"\b(IF\(|CASE )", text)) and firn != mysql and same_numbers(firn, mysql),
    ),
    (
        "zeros of the chosen number",
        "MySQL sends the zeros of a ZEROFILL column that NULLIF chooses, though it tells of none; IFNULL and COALESCE have none",
        lambda text, firn, mysql: bool(re.search(r"\bNULLIF\(dz, ", text)) and firn != mysql and same_numbers(firn, mysql),
    ),
    (
        "digits of the chosen number beside texts",
        "in a set with texts, MySQL stores those of the number that GREATEST or LEAST has chosen, which it shows with the digits of all everywhere else",
        lambda text, firn, mysql: bool(re.search(r"\b(UNION|EXCEPT|INTERSECT)\b", text)) and bool(re.search(r"\b(GREATEST|LEAST)\(", text)) and firn != mysql,
    ),
    (
        "digits of a number of a moment in a set with texts",
        "MySQL stores such a number there without a fraction of a second if it is 0, and shows it everywhere else",
        lambda text, firn, mysql: bool(re.search(r"\b(UNION|EXCEPT|INTERSECT)\b", text)) and bool(re.search(r"\b(d6|d0|ts|t0|t3)\b|TIME'|TIMESTAMP'", text))
        and firn != mysql and same_numbers(firn, mysql),
    ),
    (
        "digits of a mean among sorted groups",
        "MySQL shows four more digits than the mean's numbers have, and zeros, where groups are sorted, and all of its digits elsewhere",
        lambda text, firn, mysql: bool(re.search(r"\b(IFNULL|COALESCE|IF|CASE)\b.*AVG\(.* ORDER BY ", text)) and firn != mysql,
    ),
    (
        "sums of distinct texts with an index",
        "where a column has an index, MySQL adds the numbers of its distinct texts, and its distinct numbers elsewhere",
        has(r"(SUM|AVG)\(DISTINCT vc\)"),
    ),
    (
        "bounds that latin1 does not have",
        "beside a date or a number and another constant bound, MySQL refuses (3854) such a text for latin1, which nothing is compared in: beside a bound of each row, it compares doubles or dates",
        lambda text, firn, mysql: mysql == 3854 and isinstance(firn, tuple) and " BETWEEN " in text and bool(re.search(r"[^\x00-\xff]", text)),
    ),
    (
        "bounds that are no numbers in writes of several tables",
        "whether such a bound is read, and refused (1292), depends on which table's rows the plan reads first",
        lambda text, firn, mysql: bool(re.search(r"^(UPDATE|DELETE) .* JOIN .* WHERE \([xy]\.\w+ (NOT )?BETWEEN", text)) and (firn == 1292) != (mysql == 1292),
    ),
    (
        "moments looked up in an index of dates",
        "MySQL rounds such a constant to the next day and looks that up: d = TIMESTAMP'2024-02-28 23:59:59.999' finds the 29th, which the comparison without the index does not",
        lambda text, firn, mysql: bool(re.search(r"WHERE \((\w+\.)?d = TIMESTAMP'[^']*\.\d+'\)", text)) and fewer_rows(mysql, firn),
    ),
    (
        "CAST AS TIME and TIME in a condition",
        "MySQL takes CAST(m AS TIME) for TIME(m) in a WHERE, though one has no fraction of a second, as the same comparison in a select list shows",
        has(r"WHERE .*(CAST\((\w+\.)?m AS TIME\).*\bTIME\((\w+\.)?m\)|\bTIME\((\w+\.)?m\).*CAST\((\w+\.)?m AS TIME\))"),
    ),
    (
        "order of long texts",
        "MySQL sorts them by their first 1024 bytes, max_sort_length",
        lambda text, firn, mysql: bool(re.search(r"GROUP_CONCAT\(.* ORDER BY 1$", text)) and isinstance(firn, tuple) and isinstance(mysql, tuple) and sorted(firn, key=str) == sorted(mysql, key=str),
    ),
    (
        "floats of groups",
        "MIN and MAX of ANY_VALUE of a FLOAT are those of a DOUBLE, with all of its digits, where MySQL keeps the groups in a temporary table",
        has(r"(MIN|MAX)\(ANY_VALUE\(fl\)\).* GROUP BY "),
    ),
    (
        "years of a derived table",
        "ANY_VALUE of a YEAR shows its zeros, but not in a derived table",
        lambda text, firn, mysql: "ANY_VALUE(ye)" in text and "(SELECT " in text and same_numbers(firn, mysql),
    ),
    (
        "times between a constant and what is none",
        "t3 BETWEEN 0 AND si is true in MySQL for -00:00:00.125, which is not >= 0 there: beside a bound of each row, it compares whole seconds with the constant",
        has(r"\bt3 (NOT )?BETWEEN .* AND "),
    ),
    (
        "numbers that are no dates as bounds",
        "d0 BETWEEN TIMESTAMP'2024-01-01' AND iz is false in MySQL where d0 <= iz is NULL, and NULL with a column as its lower bound",
        has(r"\b(da|d0|d6|ts) (NOT )?BETWEEN (DATE|TIMESTAMP)'[^']*' AND \w+\)"),
    ),
    (
        "texts chosen beside a REGEXP of bytes",
        "whether they match is a number, which MySQL gives the character set of the bytes",
        lambda text, firn, mysql: "REGEXP" in text and bool(re.search(r"\b(IFNULL|COALESCE|IF|CASE)\b.*\b(bn|vn|bb)\b", text)) and isinstance(mysql, tuple)
        and any(isinstance(value, bytes) for row in mysql for value in row),
    ),
    (
        "doubles looked up in an index",
        "MySQL looks the nearest whole number up in an index of integers, and finds -1 for SIN(-2), which the comparison without the index does not",
        lambda text, firn, mysql: bool(re.search(r"WHERE \((\w+\.)?(it|i|s|id) = .*\)$", text)) and fewer_rows(mysql, firn),
    ),
    (
        "texts joined with an index",
        "MySQL's join does not find texts that are no numbers in an index of years or exact numbers, beside the year 0000 or the number 0; its comparison without the index does",
        has(r" JOIN o1 p ON \(o\.((ye|de) = p\.(vc|vb|v9|vl|bn|vn|bb|tx|lt|ch|en|st)|(vc|vb|v9|vl|bn|vn|bb|tx|lt|ch|en|st) = p\.(ye|de))\)$"),
    ),
    (
        "ANY_VALUE of names and bits",
        "MySQL sends a BIT's digits under the type BIT, and names under the types ENUM and SET, as no other expression does",
        has(r"ANY_VALUE\((en|st|b1|b9|bl)\)"),
    ),
    (
        "CONV of a written moment",
        "MySQL's second row has another value than its first: it reads what the first has left in its buffer",
        has(r"(CONV|BIN|OCT)\(TIMESTAMP'"),
    ),
    (
        "lists of a text, a document, dates and times",
        "ch IN (da, JSON_OBJECT('a', 1)) is true in MySQL where both ch = da and ch = JSON_OBJECT('a', 1) are false, and vb IN (da, t0) where vb IN (t0, da) is false",
        lambda text, firn, mysql: bool(re.search(r" IN \(.*(JSON|\bjs\b|\bt[03]\b|TIME')", text))
        and bool(re.search(r" IN \(.*(\bda\b|\bd[06]\b|\bts\b|DATE'|TIMESTAMP'|JSON|\bjs\b)|(JSON|\bjs\b|\bda\b|\bd[06]\b|\bts\b|DATE'|TIMESTAMP').* IN \(", text)),
    ),
    (
        "weeks of dates without a month",
        "the week 613566757 of DATE_FORMAT('0000-00-00', '%U') is the rest of a number below 0, and so is the day -30 of a year",
        lambda text, firn, mysql: "6135667" in str(mysql),
    ),
    (
        "doubles that are NULL as dates",
        "CAST(CAST(NULL AS DOUBLE) AS DATETIME) is the zero date in MySQL, and CAST(NULL + 0e0 AS DATETIME) is NULL",
        lambda text, firn, mysql: bool(re.search(r"CAST\(CAST\(.* AS (DOUBLE|REAL|FLOAT)\) AS (DATE|TIME)", text)) and bool(re.search(r"00(-00-00|:00:00)", str(mysql))),
    ),
    (
        "parts of doubles that are NULL as dates",
        "the zero date that such a NULL is in MySQL has parts: YEAR(CAST(NULL AS DOUBLE)) is 0, and YEAR(NULL + 0e0) is NULL",
        lambda text, firn, mysql: bool(re.search(r"\b(YEAR|MONTH|QUARTER|DAYOFMONTH|HOUR|MINUTE|SECOND|MICROSECOND|TIME_TO_SEC|EXTRACT)\((\w+ FROM )?CAST\(.* AS (DOUBLE|REAL|FLOAT)\)", text))
        and isinstance(firn, tuple) and isinstance(mysql, tuple)
        and all(row[-1] is None for row in set(firn) - set(mysql)) and all(row[-1] in ("0", "2000") for row in set(mysql) - set(firn)),
    ),
    (
        "NULLIF of a document or a time",
        "its value is neither of its arguments: NULLIF(CAST('1.5' AS JSON), t0) is 00:00:00 in MySQL",
        lambda text, firn, mysql: bool(re.search(r"NULLIF\(.*(\bt[03]\b|TIME')", text)) and "00:00:00" in str(mysql) and "00:00:00" not in str(firn),
    ),
    (
        "zeros of the smallest and largest",
        "MIN and MAX of a ZEROFILL column or a YEAR show their zeros where the groups are kept in a temporary table",
        lambda text, firn, mysql: bool(re.search(r"(MIN|MAX)\((iz|dz|ye)\).* GROUP BY ", text)) and same_numbers(firn, mysql),
    ),
    (
        "sums of doubles in another order",
        "the last digits of a sum of doubles depend on the order of the rows, which is the plan's",
        lambda text, firn, mysql: bool(re.search(r"\b(SUM|AVG|STD|STDDEV|STDDEV_POP|STDDEV_SAMP|VARIANCE|VAR_POP|VAR_SAMP)\(", text)) and same_means(firn, mysql),
    ),
    (
        "what a join warns of",
        "which columns are converted, and whether by comparing or by looking a key up, depends on the plan",
        same_rows(r" JOIN o1 p ON \(o\.\w+ = p\.\w+\)$"),
    ),
    (
        "what a comparison of rows warns of",
        "MySQL compares the second values though the first have decided, or not at all",
        same_rows(r"WHERE \(\(.*, .*\) (=|<) \(.*, .*\)\)$"),
    ),
    (
        "column definitions of groups",
        "an aggregate's value is told as a temporary table's column or as an expression's, by the plan of the groups",
        same_rows(r"^SELECT (\w+ AS c0, )?(MIN|MAX|SUM|AVG|COUNT|BIT_AND|BIT_OR|BIT_XOR|STD|VAR_SAMP|GROUP_CONCAT)\(.* GROUP BY \w+$"),
    ),
]

# Which of these also explain other warnings or other column definitions beside the same rows. The others explain rows and
# what writes change.
ALSO = {
    "warnings": {
        "documents in BETWEEN, GREATEST and LEAST", "lists of a text, a document, dates and times", "what a join warns of",
        "what a comparison of rows warns of", "texts joined with an index", "dates of an update of several tables",
    },
    "metadata": {"MAX and MIN of ENUM", "ANY_VALUE of names and bits", "column definitions of groups", "one of several equal texts"},
}

# The same of the warnings, each once, of two answers whose rows are the same.
WARNING_RULES = [
    (
        "documents as groups",
        "MySQL warns (1235) that it does not sort documents yet where groups are sorted; Firn does",
        lambda text, firn, mysql: bool(re.search(r" GROUP BY js$", text)) and firn ^ mysql == {("Warning", 1235)},
    ),
    (
        "lists beside NULL",
        "MySQL converts the items of a list in which CAST(NULL AS SIGNED) or WEEKDAY(NULL) is searched, and none for NULL or NULL + 1",
        lambda text, firn, mysql: bool(re.search(r"NULL.* IN \(", text)) and firn < mysql,
    ),
    (
        "texts that are no DECIMAL",
        "MySQL warns of a literal with 1292, of a column with 1292 and 1366, of a function's text with 1366 or not at all",
        lambda text, firn, mysql: " AS DECIMAL(" in text and firn ^ mysql <= {("Warning", 1292), ("Warning", 1366)},
    ),
    (
        "warnings of what a plan need not work out",
        "a condition that is NULL or false ends a conjunction, and a constant is worked out once, more often or never",
        lambda text, firn, mysql: bool(re.search(r" WHERE | ON | HAVING |COUNT\(|LIMIT 0|LIMIT \d+, |OFFSET|\bt4\b|INTERSECT|EXCEPT", text)) and (firn < mysql or mysql < firn),
    ),
    (
        "values of a derived table that are not read",
        "one system works them out with the rows of the table, the other does not",
        lambda text, firn, mysql: bool(re.search(r"SELECT NULL AS c\d FROM (\(SELECT|x\d )", text)) and (firn < mysql or mysql < firn),
    ),
]

# Parts of a column definition.
TYPE, COLLATION, LENGTH, DECIMALS, FLAGS = 1, 2, 3, 4, 5
ORIGIN = (6, 7, 8)
NOT_NULL, UNSIGNED, BINARY = 1, 32, 128
AGGREGATES = "MIN|MAX|SUM|AVG|COUNT|BIT_AND|BIT_OR|BIT_XOR|STD|VAR_SAMP|GROUP_CONCAT"


def without(flags):
    return lambda columns: tuple((*column[:FLAGS], column[FLAGS] & ~flags, *column[FLAGS + 1:]) for column in columns)


def same_but(fields, flags=0):
    def bare(columns):
        return tuple(tuple(0 if at in fields else part for at, part in enumerate(column)) for column in without(flags)(columns))
    return lambda text, firn, mysql: compare.same_columns(bare(firn), bare(mysql), text)


same_but_nullable = same_but((), NOT_NULL)

def any_column(columns, test):
    return any(test(column) for column in columns)


# The same of the column definitions of two answers whose rows are the same.
METADATA_RULES = [
    (
        "CONV of what is worked out first",
        "MySQL tells that the text is unsigned, where it has worked a constant out before it describes it",
        lambda text, firn, mysql: bool(re.search(r"\b(CONV|BIN|OCT)\(.*\(SELECT |(\(SELECT|WITH) .*\b(CONV|BIN|OCT)\(", text)) and same_but((), UNSIGNED)(text, firn, mysql),
    ),
    (
        "definitions of a derived table's constants in a join",
        "MySQL tells of the constant where it has put it in the place of the derived table's column, and of NOT NULL beside an outer join, where it is NULL",
        lambda text, firn, mysql: " JOIN " in text and derives_constant(text) and same_but((DECIMALS, *ORIGIN), NOT_NULL)(text, firn, mysql),
    ),
    (
        "tables that an aggregating subquery reads",
        "MySQL forgets that a table's columns are NOT NULL where a subquery that aggregates all its rows reads the table",
        lambda text, firn, mysql: same_but_nullable(text, firn, mysql) and bool(re.search(rf"\(SELECT ({AGGREGATES})\(.* WHERE ", text)),
    ),
    (
        "constants beside a column of BIGINT or YEAR",
        "MySQL converts them to the column's type before it compares, and tells of 22 characters, which no BIGINT has, or of 21 in a subquery",
        lambda text, firn, mysql: "NULLIF(" in text and same_but((TYPE, LENGTH), UNSIGNED)(text, firn, mysql) and any_column(mysql, lambda column: column[LENGTH] in (21, 22)),
    ),
    (
        "numbers of places as texts",
        "MySQL takes the collation in which INSTR, LOCATE and REGEXP_INSTR compare for that of their number as a text",
        lambda text, firn, mysql: bool(re.search(r"\b(INSTR|LOCATE|REGEXP_INSTR)\(", text)) and same_but((COLLATION, LENGTH), BINARY)(text, firn, mysql),
    ),
    (
        "REGEXP_REPLACE of constants",
        "a text that is made may be NULL in a strict mode, since it may be too long; MySQL does not say so of some constants",
        lambda text, firn, mysql: "REGEXP_REPLACE(" in text and same_but_nullable(text, firn, mysql),
    ),
    (
        "documents of a derived table",
        "a table's document is a table's column in a derived table, too; MySQL tells of a column of the derived table's alias",
        lambda text, firn, mysql: bool(re.search(r"\(SELECT .*\bjs AS c\d FROM o1 o\)", text)) and any_column(mysql, lambda column: column[TYPE] == 245),
    ),
]
