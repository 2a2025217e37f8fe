"""Functions with edge arguments: NULL, nothing, zero, negative, huge, not ASCII, bytes, zero dates, other types."""

ONE = [
    "NULL", "''", "0", "-1", "1", "255", "18446744073709551615", "99999999999999999999", "1.5", "-2.5", "1e0", "-1.5e10",
    "'abc'", "'é'", "'12abc'", "x'41'", "b'101'", "DATE'2024-02-29'", "TIME'10:11:12.5'", "TIMESTAMP'2024-02-29 10:11:12'",
    "'2024-02-29'", "'2024-02-30'", "'0000-00-00'", "'2024-00-10 10:11:12'", "20240229", "20240229101112", "'10:11:12'",
    "'-838:59:59'", "_binary 'ab'", "TRUE",
]

FUNCTIONS = """
    ABS ASCII BIN BIT_COUNT BIT_LENGTH CEILING CHAR_LENGTH CRC32 DATE DAYNAME DAYOFMONTH DAYOFWEEK DAYOFYEAR FLOOR FROM_DAYS
    FROM_UNIXTIME HEX HOUR INET_ATON INET_NTOA IS_IPV4 IS_IPV6 LAST_DAY LENGTH LOG2 LOWER MICROSECOND MINUTE MONTH MONTHNAME
    OCT ORD QUARTER REVERSE ROUND SECOND SEC_TO_TIME SIGN SOUNDEX TIME TIMESTAMP TIME_TO_SEC TO_DAYS TO_SECONDS TRIM
    UNCOMPRESSED_LENGTH UNIX_TIMESTAMP UPPER WEEK WEEKDAY WEEKOFYEAR YEAR YEARWEEK
""".split()

STATEMENTS = [
    "SELECT LPAD('abc',5,''), RPAD('abc',5,''), LPAD('abc',2,''), RPAD('abc',2,''), LPAD('',5,''), LPAD('a',3,'é')",
    "SELECT LOCATE(0x41,'bAc'), LOCATE(0x61,'bAc'), LOCATE('a',0x4161), FIND_IN_SET(0x41,'b,A,c'), FIND_IN_SET('a',0x622C41)",
    "SELECT INSTR(x'4142','B'), LOCATE('','abc'), LOCATE('','abc',4), LOCATE('','abc',5), FIND_IN_SET('','a,,b'), FIND_IN_SET('a,b','a,b')",
    "SELECT STR_TO_DATE('January 5 2024','%M %d %Y'), STR_TO_DATE('Januar 5 2024','%M %d %Y')",
    "SELECT STR_TO_DATE('Sept 5 2024','%b %d %Y'), STR_TO_DATE('sep 5 2024','%b %d %Y'), STR_TO_DATE('SEPTEMBER 5 2024','%M %d %Y')",
    "SELECT STR_TO_DATE('Monday 5 Jan 2024','%W %d %b %Y'), STR_TO_DATE('Mon 5 Jan 2024','%a %d %b %Y'), STR_TO_DATE('Mond 5 Jan 2024','%a %d %b %Y')",
    "SELECT TIME(1.5), TIME(235959.123e0), TIME(1e10), TIME('abc'), TIME(20240229), TIME(-1)",
    "SELECT LAST_DAY('2024-02-30'), LAST_DAY(0), LAST_DAY('2024-00-10'), LAST_DAY(20240210), LAST_DAY('2024-02-00')",
    "SELECT TIMEDIFF('10:00','09:00'), TIMEDIFF('2024-01-01 10:00:00','09:00'), TIMEDIFF(1,2), TIMEDIFF('2024-01-01','2023-12-31')",
    "SELECT TIMEDIFF('2000:01:01 00:00:00','2000:01:01 00:00:00.000001'), TIMEDIFF('838:59:59','-838:59:59'), TIMEDIFF(NULL,1)",
    "SELECT 'é' REGEXP '[[:alpha:]]', 'É' REGEXP 'é', 'ß' REGEXP '\\\\w', '٣' REGEXP '[[:digit:]]', 'é' REGEXP '^[[:lower:]]$' COLLATE utf8mb4_bin",
    "SELECT 'É' REGEXP '^[[:upper:]]$' COLLATE utf8mb4_bin, '¿' REGEXP '[[:punct:]]', 'a b' REGEXP 'a[[:space:]]b', 'aé1' REGEXP '^[[:alnum:]]+$'",
    "SELECT '1' REGEXP '[^[:alpha:]]', 'é' REGEXP '[^[:alpha:]]', '_' REGEXP '[[:alpha:]_]'",
    "SELECT 'a' REGEXP x'61'", "SELECT x'61' REGEXP 'a'", "SELECT REGEXP_INSTR('a', _binary 'a')", "SELECT x'61' REGEXP x'61'",
    "SELECT '😀'='😁' COLLATE utf8mb4_unicode_ci, '𝐀'='A' COLLATE utf8mb4_unicode_ci, '😀'='😁' COLLATE utf8mb4_unicode_520_ci",
    "SELECT '😀'='😁' COLLATE utf8mb4_general_ci, '😀'='😁' COLLATE utf8mb4_0900_ai_ci, '😀'='a' COLLATE utf8mb4_unicode_ci",
    "SELECT COUNT(DISTINCT c COLLATE utf8mb4_unicode_ci) FROM (SELECT '😀' c UNION ALL SELECT '😁' UNION ALL SELECT 'a') t",
    "SELECT nothing", "SELECT @@error_count, @@warning_count",
    "SELECT 1", "SELECT @@error_count, @@warning_count, 'after'", "SHOW COUNT(*) ERRORS",
    "SELECT NOT JSON_ARRAY(1), JSON_ARRAY(1) AND 1, CAST('0' AS JSON) AND 1, CAST('\"0\"' AS JSON) OR 0, CAST('false' AS JSON) OR 0",
    "SELECT TIMESTAMPADD(SECOND,-9223372036854775808,TIME'10:11:12.5'), TIMESTAMPADD(SECOND,9223372036854775807,TIME'10:11:12')",
    "SELECT DATE_ADD(TIME'10:11:12', INTERVAL 99999999999999999999 HOUR_MINUTE), DATE_ADD(TIME'10:11:12', INTERVAL 1 HOUR)",
    "SELECT EXTRACT(SECOND FROM '2024-02-29'), EXTRACT(DAY_HOUR FROM 20240229101112), EXTRACT(HOUR FROM '10:11:12')",
    "SELECT EXTRACT(DAY_HOUR FROM '2024-02-29 10:11:12'), EXTRACT(HOUR FROM '2024-02-30'), EXTRACT(DAY_SECOND FROM 20240229)",
    "SELECT MAKETIME(1,2,3.5), MAKETIME(1,2,'3'), MAKETIME(-1,2,3), MAKETIME(1,60,3), MAKETIME(900,0,0)",
    "SELECT CONV('low',16,10), CONV('f!',16,10), CONV('ffffffffffffffffff',16,10), BIN('x')",
    "SELECT CAST(UNIX_TIMESTAMP('2024-02-29 10:11:12.999') AS SIGNED), CAST(UNIX_TIMESTAMP('2024-02-29 10:11:12.999') AS DECIMAL(20,3))",
    "SELECT CONCAT(IF(a > 1, a, b), ''), CAST(CASE a WHEN 1 THEN b ELSE a END AS CHAR), CONCAT(IF(a > 1, b, CAST(b AS DECIMAL(5,2))), '') FROM (SELECT 1 AS a, 1.250 AS b UNION ALL SELECT 2, 1.5) x",
    "SELECT COLLATION(REPLACE('a', 'a', _utf8mb4'b' COLLATE utf8mb4_general_ci)), COLLATION(INSERT('a', 1, 1, _utf8mb4'b' COLLATE utf8mb4_bin))",
    "SELECT SEC_TO_TIME('12'), SEC_TO_TIME(1.5), SEC_TO_TIME(1e1), FROM_UNIXTIME('7') > 0, FROM_UNIXTIME(1e0) > 0",
]


def cases(server):
    connection = server.connect()
    connection.cursor().execute("SET time_zone = '+00:00', timestamp = 1700000000")
    for function in FUNCTIONS:
        for argument in ONE:
            statement = f"SELECT {function}({argument})"
            yield statement, server.answer(connection, statement)
    for statement in STATEMENTS:
        yield statement, server.answer(connection, statement)
