use super::harness::check;

#[test]
fn lengths_and_codes() {
    check(
        "
        LENGTH('text') → 4
        LENGTH('é') → 2
        CHAR_LENGTH('é') → 1
        CHARACTER_LENGTH(x'c3a9') → 2
        BIT_LENGTH('text') → 32
        OCTET_LENGTH(12.50) → 5
        ASCII('2') → 50
        ASCII(2) → 50
        ASCII('dx') → 100
        ASCII('') → 0
        ORD('2') → 50
        ORD('é') → 50089
        CHAR(77,121,83,81,'76') → MySQL
        CHAR(77,77.3,NULL,'77.3') → MMM ~1292
        HEX(CHAR(256)) → 0100
        HEX(CHAR(256*256)) → 010000
        LENGTH() → !1582
        HEX(WEIGHT_STRING(1)) → 8000000000000001
        HEX(WEIGHT_STRING(-1)) → 7FFFFFFFFFFFFFFF
        WEIGHT_STRING(1.5) → NULL
        WEIGHT_STRING(1e0) → NULL
        HEX(WEIGHT_STRING(DATE'2024-02-29')) → 80000000000FD05D
        HEX(WEIGHT_STRING(TIMESTAMP'1970-01-01 00:00:00.125')) → 9902C2000001E848
        HEX(WEIGHT_STRING(TIME'12:30:45')) → 800080C7AD000000
        HEX(WEIGHT_STRING(TIME'-00:00:00.125')) → 80007FFFFFFE17B7
        HEX(WEIGHT_STRING(x'ff')) → FF
        HEX(WEIGHT_STRING(JSON_ARRAY(1))) → 00005B00003100005D
        ",
    );
}

#[test]
fn parts() {
    check(
        "
        LEFT('foobarbar', 5) → fooba
        LEFT('é→x', 2) → é→
        LEFT('abc', -1) →
        RIGHT('foobarbar', 4) → rbar
        RIGHT('abc', 0) →
        RIGHT('abc', 9223372036854775807) → abc
        SUBSTRING('Quadratically',5) → ratically
        SUBSTRING('Quadratically',5,6) → ratica
        SUBSTRING('Sakila', -3) → ila
        SUBSTRING('Sakila', -5, 3) → aki
        SUBSTRING('Sakila', -7, 3) →
        SUBSTRING('abc', 0) →
        SUBSTR('abc', 2, -1) →
        MID('abc', 2, 18446744073709551615) → bc
        SUBSTRING_INDEX('www.mysql.com', '.', 2) → www.mysql
        SUBSTRING_INDEX('www.mysql.com', '.', -2) → mysql.com
        SUBSTRING_INDEX('www.mysql.com', '.', 9) → www.mysql.com
        SUBSTRING_INDEX('www.mysql.com', '.', 0) →
        SUBSTRING_INDEX('aaaa', 'aa', -1) →
        INSERT('Quadratic', 3, 4, 'What') → QuWhattic
        INSERT('Quadratic', -1, 4, 'What') → Quadratic
        INSERT('Quadratic', 3, 100, 'What') → QuWhat
        INSERT('abc', 4, 1, 'x') → abc
        ",
    );
}

#[test]
fn longer_strings() {
    check(
        "
        CONCAT('My', 'S', 'QL') → MySQL
        CONCAT('My', NULL, 'QL') → NULL
        CONCAT(14.3) → 14.3
        CONCAT(DATE'2020-01-02', ' ', TIME'10:11:12.5') → 2020-01-02 10:11:12.5
        'a' || 'b' → ab
        CONCAT_WS(',','First name','Second name','Last Name') → First name,Second name,Last Name
        CONCAT_WS(',','First name',NULL,'Last Name') → First name,Last Name
        CONCAT_WS(NULL,'a','b') → NULL
        CONCAT_WS(',', NULL) →
        LPAD('hi',4,'??') → ??hi
        LPAD('hi',1,'??') → h
        LPAD('hi',7,'é1') → é1é1éhi
        LPAD('hi',5,'') → hi
        LPAD('hi',-1,'x') → NULL
        LPAD('hi',99999999999,'x') → NULL ~1301
        RPAD('hi',5,'?') → hi???
        RPAD('hi',1,'?') → h
        REPEAT('MySQL', 3) → MySQLMySQLMySQL
        REPEAT('MySQL', 0) →
        REPEAT('MySQL', 999999999999) → NULL ~1301
        CONCAT('[', SPACE(6), ']') → [      ]
        SPACE(-1) →
        SPACE(9223372036854775807) → NULL ~1301
        ",
    );
}

#[test]
fn trimming() {
    check(
        "
        CONCAT('[', TRIM('  bar   '), ']') → [bar]
        TRIM_LEADING('xxxbarxxx', 'x') → barxxx
        TRIM('xxxbarxxx', 'x') → bar
        TRIM_TRAILING('barxxyz', 'xyz') → barx
        TRIM('abc', '') → abc
        TRIM(NULL) → NULL
        LTRIM('  barbar') → barbar
        CONCAT(RTRIM('barbar   '), '|') → barbar|
        ",
    );
}

#[test]
fn changes() {
    check(
        "
        LOWER('QUADRATICALLY') → quadratically
        UCASE('Hejé') → HEJÉ
        UPPER('ß') → ß
        LOWER(x'4142') → AB
        REVERSE('abcé') → écba
        REPLACE('www.mysql.com', 'w', 'Ww') → WwWwWw.mysql.com
        REPLACE('abc', '', 'x') → abc
        REPLACE('aAa', 'a', '') → A
        QUOTE('Don''t!') → 'Don\\'t!'
        QUOTE(NULL) → NULL
        SOUNDEX('Hello') → H400
        SOUNDEX('Quadratically') → Q36324
        SOUNDEX('😀a') → 😀000
        SOUNDEX('漢字') → 漢000
        SOUNDEX(x'C3A9') →
        SOUNDEX('') →
        'Hello' SOUNDS LIKE 'Helo' → 1
        LOAD_FILE('/etc/passwd') → NULL
        ",
    );
}

#[test]
fn bases() {
    check(
        "
        HEX('abc') → 616263
        HEX(255) → FF
        HEX(-1) → FFFFFFFFFFFFFFFF
        HEX(1.5) → 2
        UNHEX('4D7953514C') → MySQL
        HEX(UNHEX('123')) → 0123
        UNHEX('GG') → NULL ~1411
        BIN(12) → 1100
        OCT(12) → 14
        BIN(-1) → 1111111111111111111111111111111111111111111111111111111111111111
        CONV('a',16,2) → 1010
        CONV('6E',18,8) → 172
        CONV(-17,10,-18) → -H
        CONV(10+'10'+'10'+x'0a',10,10) → 40
        CONV('zz', 37, 2) → NULL
        CONV('', 10, 2) → NULL
        CONV('18446744073709551616', 10, 16) → FFFFFFFFFFFFFFFF ~1292
        CONV('low', 16, 10) → 0 ~1292
        CONV('f!', 16, 10) → 15
        TO_BASE64('abc') → YWJj
        FROM_BASE64(TO_BASE64('abc')) → abc
        TO_BASE64(REPEAT('a', 60)) → YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh⏎YWFh
        FROM_BASE64('YW Jj') → abc
        FROM_BASE64('$') → NULL
        ",
    );
}

#[test]
fn strings_among_strings() {
    check(
        "
        ELT(1, 'Aa', 'Bb', 'Cc', 'Dd') → Aa
        ELT(4, 'Aa', 'Bb', 'Cc', 'Dd') → Dd
        ELT(0, 'Aa') → NULL
        ELT(5, 'Aa') → NULL
        ELT(NULL, 'Aa') → NULL
        FIELD('Bb', 'Aa', 'Bb', 'Cc', 'Dd', 'Ff') → 2
        FIELD('bb', 'Aa', 'Bb') → 2
        FIELD('Gg', 'Aa') → 0
        FIELD(NULL, NULL) → 0
        FIELD(1.0, 2, 1) → 2
        FIELD(1, '1x', 'a') → 1 ~1292 ~1292
        FIND_IN_SET('b','a,b,c,d') → 2
        FIND_IN_SET('B','a,b,c,d') → 2
        FIND_IN_SET('','a,,c') → 2
        FIND_IN_SET('x','') → 0
        MAKE_SET(1,'a','b','c') → a
        MAKE_SET(1 | 4,'hello','nice','world') → hello,world
        MAKE_SET(1 | 4,'hello','nice',NULL,'world') → hello
        MAKE_SET(0,'a','b','c') →
        EXPORT_SET(5,'Y','N',',',4) → Y,N,Y,N
        EXPORT_SET(6,'1','0',',',10) → 0,1,1,0,0,0,0,0,0,0
        CHAR_LENGTH(EXPORT_SET(0,'1','0')) → 127
        ",
    );
}

#[test]
fn places_and_order() {
    check(
        "
        LOCATE('bar', 'foobarbar') → 4
        LOCATE('xbar', 'foobar') → 0
        LOCATE('bar', 'foobarbar', 5) → 7
        LOCATE('BAR', 'foobarbar') → 4
        LOCATE(b'424152', 'foobarbar') → 4
        LOCATE('', 'abc', 4) → 4
        LOCATE('', 'abc', 5) → 0
        INSTR('foobarbar', 'bar') → 4
        INSTR('xé', 'É') → 2
        POSITION('b', 'abc') → 2
        STRCMP('text', 'text2') → -1
        STRCMP('text2', 'text') → 1
        STRCMP('TEXT', 'text') → 0
        CHARSET(1) → binary
        COERCIBILITY('a') → 4
        COERCIBILITY(1) → 5
        COERCIBILITY(NULL) → 6
        COERCIBILITY(USER()) → 3
        ",
    );
}

#[test]
fn numbers_as_people_write_them() {
    check(
        "
        FORMAT(12332.123456, 4) → 12,332.1235
        FORMAT(12332.1,4) → 12,332.1000
        FORMAT(12332.2,0) → 12,332
        FORMAT(12332.2,2,'de_DE') → 12.332,20
        FORMAT(-1234567.891,2) → -1,234,567.89
        FORMAT(12345678901234567890, 2, 'en_IN') → 1,23,45,67,89,01,23,45,67,890.00
        FORMAT(1234.5, 1, 'xx_XX') → 1,234.5 ~1649
        FORMAT(1e20, 0) → 100,000,000,000,000,000,000
        FORMAT(1.1e0, 20) → 1.10000000000000000000
        FORMAT(1e15 + 0.3, 5) → 1,000,000,000,000,000.40000
        FORMAT('1234.5', 1) → 1,234.5
        FORMAT(1234.5, 1, NULL) → 1,234.5
        CONCAT('[', FORMAT_BYTES(512)) → [ 512 bytes
        FORMAT_BYTES(18446644073709551615) → 16.00 EiB
        FORMAT_PICO_TIME(3501) → 3.50 ns
        FORMAT_PICO_TIME(1e300) → 1.16e+283 d
        FORMAT_PICO_TIME(8640000000000000000000e0) → 1.00e+05 d
        FORMAT_BYTES(1e30) → 8.67e+11 EiB
        ",
    );
}

#[test]
fn regular_expressions() {
    check(
        "
        'Michael!' REGEXP '.*' → 1
        'a' REGEXP '^[a-d]' → 1
        REGEXP_LIKE('abc', 'ABC') → 1
        REGEXP_LIKE('abc', 'ABC', 'c') → 0
        REGEXP_LIKE(b'616263', 'ABC') → !3995
        REGEXP_LIKE('abc', '') → !3685
        REGEXP_LIKE('abc', '(') → !3691
        REGEXP_LIKE('abc', '[a') → !3696
        REGEXP_LIKE('abc', '(a)\\1') → !3690
        REGEXP_LIKE('abc', 'a', 'q') → !1210
        REGEXP_LIKE(NULL, 'a') → NULL
        REGEXP_INSTR('dog cat dog', 'dog') → 1
        REGEXP_INSTR('dog cat dog', 'dog', 2) → 9
        REGEXP_INSTR('dog cat dog', 'dog', 1, 2, 1) → 12
        REGEXP_INSTR('aa aaa aaaa', 'a{4}') → 8
        REGEXP_INSTR('aa', 'a', 9) → !3686
        REGEXP_SUBSTR('abc def ghi', '[a-z]+') → abc
        REGEXP_SUBSTR('abc def ghi', '[a-z]+', 1, 3) → ghi
        REGEXP_SUBSTR('abc', 'x') → NULL
        REGEXP_REPLACE('a b c', 'b', 'X') → a X c
        REGEXP_REPLACE('abc def ghi', '[a-z]+', 'X', 1, 3) → abc def X
        REGEXP_REPLACE('abc def', '(\\w+) (\\w+)', '$2 $1') → def abc
        REGEXP_REPLACE('abc', 'b', '$1') → !3686
        ",
    );
}
