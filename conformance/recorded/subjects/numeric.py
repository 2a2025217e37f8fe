"""Quotients, means, casts, texts of doubles, ZEROFILL, limits of FLOAT and DOUBLE, bit operations."""

DATABASE = "recorded_numeric"

TEXTS = [
    "'18446744073709551615'", "'18446744073709551616'", "'9223372036854775807'", "'9223372036854775808'",
    "'-9223372036854775808'", "'-9223372036854775809'", "'-1'", "'99999999999999999999999'", "'1.9'", "'-1.9'",
    "'1e3'", "'0x1F'", "''", "' 12 '", "'+5'", "'--5'", "'1 2'", "18446744073709551615", "18446744073709551616",
    "-9223372036854775809", "9223372036854775807.5", "9223372036854775808.4", "-0.5", "-1.5", "2.5", "1e19",
    "1.8446744073709552e19", "-2.5e0", "2.5e0", "3.5e0", "-1e0", "DATE'2024-02-29'", "TIME'-10:11:12.6'",
    "TIMESTAMP'2024-02-29 10:11:12.6'", "x'FF'", "CAST('-1' AS JSON)", "CAST('1.5' AS JSON)",
]

TYPES = ["SIGNED", "UNSIGNED", "DECIMAL", "DECIMAL(3,1)", "DECIMAL(65,30)", "FLOAT", "DOUBLE", "CHAR(3)", "TIME", "DATETIME(1)"]

QUOTIENTS = [
    "1/3*3", "15/(5/3)", "2/3", "2/3+2/3", "2/3*3", "-2/3*3", "20/3*3", "1/7*7", "1.0/3*3", "1.00/3.000*3", "5/9*9",
    "1/6*6", "1/3/3", "1/3*3*3", "1000000/3*3", "1/3000000*3000000", "1.5/7*7", "0.1/0.3*3", "1e0/3*3",
    "1.123456789/3*3", "1.1234567891/3*3", "round(1/3,10)", "1/3=0.3333", "1/3>0.3333", "1/3 in (0.3333)",
    "cast(1/3 as decimal(20,10))", "1/3*1e0", "floor(1/3*3)", "truncate(1/3*3,2)", "(1/3)%0.1", "(1/3) div 0.1",
    "-(1/3)*3", "abs(1/3)*3", "if(1,1/3,0)*3", "coalesce(1/3,1)*3", "case when 1 then 1/3 end*3", "(select 1/3)*3",
    "format(2/3,6)", "ceil(2/3*3)", "(2/3) div (1/3)", "(2/3)%(1/3)", "interval(1/3,0.3333)", "1/3|0", "greatest(1/3,0)*3",
]

MEANS = [
    "avg(a)", "avg(a)*3", "avg(a)+avg(a)", "avg(a)=1.3333", "avg(a) in (1.3333)", "avg(a)+0", "(avg(a)+0)*3", "-avg(a)*3",
    "(0-avg(a))*3", "avg(a)/3*9", "round(avg(a),8)", "round(avg(a)*3,8)", "floor(avg(a)*3)", "truncate(avg(a)*3,0)",
    "format(avg(a),6)", "concat(avg(a))", "cast(avg(a) as decimal(20,9))", "if(1,avg(a),0)*3", "coalesce(avg(a),0)*3",
    "nullif(avg(a),0)*3", "case when 1 then avg(a) end*3", "greatest(avg(a),0)*3", "avg(a) between 1.3333 and 1.3333",
    "sum(a)/3*3", "sum(a/3)", "avg(a/3)*3", "avg(1/3)*3", "abs(avg(a))*3", "avg(distinct a)*3", "avg(a)*3|0",
    "avg(a+0.5)*3", "avg(a*1.123456789)*3", "sign(avg(a)-1.3333)", "not avg(a)-1.3333", "avg(a) div 0.33333", "(avg(a)%1)*3",
]

DOUBLES = [
    "1e14", "1e15", "1e16", "123456789012345678e0", "1.5e15", "0.1e-14", "1e-15", "-1e-16", "1234567890123456.7e0",
    "123456789012345.67e0", "12345678901234567e0", "1e22/3", "1e15/3", "1/3e0", "1e100", "-1.5e-300", "0e0", "-0e0",
    "degrees(20240229101112)", "pi()*1e15", "1e15+0.5", "4503599627370497.5e0",
]

COLUMNS = [
    "i", "i+0", "concat(i)", "i*1", "cast(i as char)", "lpad(i,7,'*')", "length(i)", "i like '00%'", "hex(i)", "left(i,3)",
    "i=42", "-i", "concat_ws('-',i,j)", "replace(i,'0','o')", "concat(j)", "cast(j as char)", "length(j)", "j+0", "f", "g", "h",
    "hex(c)", "hex(c|0)", "c+0", "bin(c)", "oct(c)", "conv(c,10,16)", "hex(~c)", "c&1", "hex(~b)", "hex(b|b)", "hex(b&d)",
    "hex(b<<4)", "hex(b>>4)", "hex(b<<9)", "bit_count(b)", "hex(d<<1)", "hex(~d)", "find_in_set('b','a,b')",
    "find_in_set(0x63,'a,c')", "locate(0x63,s)", "locate('c',s)", "hex(s)", "s+0", "s&1", "s='a,c'", "s=5", "bin(x'41')",
    "oct(x'41')", "hex(_binary'ab'|_binary'cd')", "_binary'ab'+0", "x'41'+0", "hex(x'0f'|x'f0')", "~x'00'",
]

STORES = [
    "INSERT INTO n (f) VALUES (-1)", "INSERT INTO n (g) VALUES (123456)", "INSERT INTO n (g) VALUES (99999.994)",
    "INSERT INTO n (g) VALUES (99999.996)", "INSERT INTO n (h) VALUES (-99999.9996)", "INSERT INTO n (k) VALUES (1e39)",
    "INSERT INTO n (g) VALUES ('12.345')", "INSERT INTO n (h) VALUES (1.0005)", "INSERT INTO n (h) VALUES (-1.0015)",
    "INSERT IGNORE INTO n (f, g, h, k) VALUES (-1, 123456, -99999.9996, 1e39)", "UPDATE n SET f = -2 WHERE f = 0",
    "UPDATE IGNORE n SET f = -2, g = g * 10 WHERE i = 42", "SELECT f, g, h, k FROM n ORDER BY f, g, h, k",
    "ALTER TABLE n ADD COLUMN w DOUBLE DEFAULT 5.678", "ALTER TABLE n MODIFY w DOUBLE(5,1)", "SELECT DISTINCT w FROM n",
]


def cases(server):
    connection = server.connect()
    cursor = connection.cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    cursor.execute(f"CREATE DATABASE {DATABASE}")
    cursor.execute(f"USE {DATABASE}")
    cursor.execute("SET time_zone = '+00:00', timestamp = 1700000000")
    cursor.execute("CREATE TABLE a (a INT)")
    cursor.execute("INSERT INTO a VALUES (1), (1), (2)")
    cursor.execute(
        "CREATE TABLE n (b VARBINARY(20), c BIT(12), d BLOB, f FLOAT UNSIGNED, g FLOAT(7,2), h DOUBLE(8,3), "
        "i INT(5) ZEROFILL, j DECIMAL(6,2) ZEROFILL, k FLOAT, s SET('a','b','c'))"
    )
    cursor.execute(
        "INSERT INTO n VALUES (x'00ff00ff00ff00ff00ff', b'101010101010', x'0f0f', 1.5, 123.456, 1234.5678, 42, 1.5, 3.14159265, 'a,c')"
    )
    for type_name in TYPES:
        for text in TEXTS:
            statement = f"SELECT CAST({text} AS {type_name})"
            yield statement, server.answer(connection, statement)
    for expression in QUOTIENTS + [part for one in DOUBLES for part in (one, f"concat({one})")]:
        statement = f"SELECT {expression}"
        yield statement, server.answer(connection, statement)
    for expression in MEANS:
        statement = f"SELECT {expression} FROM a"
        yield statement, server.answer(connection, statement)
    for statement in [f"SELECT {expression} FROM n" for expression in COLUMNS] + STORES:
        yield statement, server.answer(connection, statement)
    cursor.execute(f"DROP DATABASE {DATABASE}")


KNOWN = {
    "UPDATE n SET f = -2 WHERE f = 0": "MySQL counts the rows that it has read",
    "ALTER TABLE n MODIFY w DOUBLE(5,1)": "MySQL counts no rows where it copies in place",
}
