use firn_sql_types::{EvaluationContext, SqlMode, TimeZone};

use super::harness::{check, check_in};

#[test]
fn parts() {
    check(
        "
        YEAR('1987-01-01') → 1987
        YEAR('2008-00-00') → 2008
        YEAR('0000-00-00') → NULL ~1292
        YEAR('nonsense') → NULL ~1292
        YEAR(20081231) → 2008
        YEAR(TIMESTAMP'2008-12-31 10:00:00') → 2008
        QUARTER('2008-04-01') → 2
        MONTH('2008-02-03') → 2
        MONTH('2008-00-00') → 0
        DAYOFMONTH('2007-02-03') → 3
        DAY(DATE'2007-02-13') → 13
        DAYOFYEAR('2007-02-03') → 34
        DAYOFWEEK('2007-02-03') → 7
        DAYOFWEEK('0000-00-00') → NULL ~1292
        WEEKDAY('2008-02-03 22:23:00') → 6
        WEEKDAY('2007-11-06') → 1
        WEEK('2008-02-20') → 7
        WEEK('2008-02-20',0) → 7
        WEEK('2008-02-20',1) → 8
        WEEK('2008-12-31',1) → 53
        WEEKOFYEAR('2008-02-20') → 8
        YEARWEEK('1987-01-01') → 198652
        YEARWEEK('2000-01-01') → 199952
        HOUR('10:05:03') → 10
        HOUR('272:59:59') → 272
        HOUR(TIMESTAMP'2008-02-03 10:05:03') → 10
        MINUTE('2008-02-03 10:05:03') → 5
        SECOND('10:05:03') → 3
        MICROSECOND('12:00:00.123456') → 123456
        MICROSECOND('2019-12-31 23:59:59.000010') → 10
        DAYNAME('2007-02-03') → Saturday
        MONTHNAME('2008-02-03') → February
        MONTHNAME('2008-00-03') → NULL
        EXTRACT('YEAR', '2019-07-02') → 2019
        EXTRACT('YEAR_MONTH', '2019-07-02 01:02:03') → 201907
        EXTRACT('DAY_MINUTE', '2019-07-02 01:02:03') → 20102
        EXTRACT('MICROSECOND', '2003-01-02 10:30:00.000123') → 123
        EXTRACT('HOUR', TIME'-10:30:00') → -10
        EXTRACT('HOUR_SECOND', '10:30:05') → 103005
        EXTRACT('NONSENSE', '10:30:05') → !1064
        ",
    );
}

#[test]
fn numbers_are_dates_with_zeros_and_with_months_of_31_days() {
    check(
        "
        LAST_DAY(20200230) → 2020-02-29
        LAST_DAY(700100) → 1970-01-31
        LAST_DAY(100) → 2000-01-31
        LAST_DAY(0) → NULL ~1292
        LAST_DAY(20200232) → NULL ~1292
        LAST_DAY('2020-02-30') → NULL ~1292
        DAYOFMONTH(20200230) → 30
        MONTH(100000000) → 1
        YEAR(20201231235959.9999999) → 2020
        TO_DAYS(20200230) → 737850
        DATEDIFF(20200230, 20200101) → 60
        MONTHNAME(20200231) → February
        DATE_FORMAT(20200230, '%d.%m.%Y') → 30.02.2020
        UNIX_TIMESTAMP(20200230) → 1583020800
        EXTRACT('DAY', 20200230) → 30
        DAYNAME(20200230) → NULL ~1292
        DAYOFYEAR(20200230) → NULL ~1292
        DATE(20200230) → NULL ~1292
        DATE(0) → NULL ~1292
        DATE(20200101250000) → 2020-01-01
        DATE(99999999) → NULL ~1292
        DAYNAME(20200228235959.9999999) → Friday
        DAYNAME(DATE'0000-00-00') → NULL
        TO_DAYS(TIMESTAMP'2020-00-00 00:00:00') → NULL
        ",
    );
    check_in(
        "
        DATE(0) → 2000-00-00
        DATE(700000) → 1970-00-00
        DATE(100.99) → 2000-01-00
        ",
        || EvaluationContext { sql_mode: SqlMode::NONE, ..EvaluationContext::default() },
    );
}

#[test]
fn adding_intervals() {
    check(
        "
        DATE_ADD('2018-05-01', 1, 'DAY') → 2018-05-02
        DATE_SUB('2018-05-01', 1, 'YEAR') → 2017-05-01
        DATE_ADD('2020-12-31 23:59:59', 1, 'SECOND') → 2021-01-01 00:00:00
        DATE_ADD('2018-12-31 23:59:59', 1, 'DAY') → 2019-01-01 23:59:59
        DATE_ADD('2100-12-31 23:59:59', '1:1', 'MINUTE_SECOND') → 2101-01-01 00:01:00
        DATE_SUB('2025-01-01 00:00:00', '1 1:1:1', 'DAY_SECOND') → 2024-12-30 22:58:59
        DATE_ADD('1900-01-01 00:00:00', '-1 10', 'DAY_HOUR') → 1899-12-30 14:00:00
        DATE_SUB('1998-01-02', 31, 'DAY') → 1997-12-02
        DATE_ADD('1992-12-31 23:59:59.000002', '1.999999', 'SECOND_MICROSECOND') → 1993-01-01 00:00:01.000001
        DATE_ADD('2023-01-31', 1, 'MONTH') → 2023-02-28
        DATE_ADD('2024-09-30', 1, 'HOUR') → 2024-09-30 01:00:00
        DATE_ADD(DATE'2024-02-28', 2, 'DAY') → 2024-03-01
        DATE_ADD(DATE'2024-02-28', 1.5, 'SECOND') → 2024-02-28 00:00:01.5
        DATE_ADD(DATE'2024-02-28', 1, 'MICROSECOND') → 2024-02-28 00:00:00.000001
        DATE_ADD(TIME'10:00:00', 1, 'HOUR') → 11:00:00
        DATE_ADD(TIME'838:59:59', 1, 'HOUR') → NULL ~6527
        DATE_ADD('2006-00-00', 1, 'DAY') → NULL ~1292
        DATE_ADD('9999-12-31', 1, 'DAY') → NULL ~1441
        DATE_SUB(DATE'0001-01-01', 5, 'YEAR') → NULL ~6527
        DATE_ADD('2024-01-01', 9223372036854775807, 'YEAR') → NULL ~1441
        DATE_ADD(NULL, 1, 'DAY') → NULL
        DATE_ADD('2024-01-01', NULL, 'DAY') → NULL
        ADDDATE('2008-01-02', 31) → 2008-02-02
        SUBDATE('2008-01-02 12:00:00', 31) → 2007-12-02 12:00:00
        TIMESTAMPADD('MINUTE', 1, '2003-01-02') → 2003-01-02 00:01:00
        TIMESTAMPADD('SQL_TSI_WEEK', 1, '2003-01-02') → 2003-01-09
        ADDTIME('2007-12-31 23:59:59.999999', '1 1:1:1.000002') → 2008-01-02 01:01:01.000001
        ADDTIME('01:00:00.999999', '02:00:00.999998') → 03:00:01.999997
        SUBTIME('2007-12-31 23:59:59.999999','1 1:1:1.000002') → 2007-12-30 22:58:58.999997
        SUBTIME('01:00:00.999999', '02:00:00.999998') → -00:59:59.999999
        ADDTIME(TIME'10:00:00', '00:00:01') → 10:00:01
        ADDTIME(TIMESTAMP'2020-01-01 10:00:00', TIMESTAMP'2020-01-01 10:00:00') → 2020-01-01 20:00:00
        TIMESTAMP('2003-12-31') → 2003-12-31 00:00:00
        TIMESTAMP('2003-12-31 12:00:00','12:00:00') → 2004-01-01 00:00:00
        ",
    );
}

#[test]
fn conversions() {
    check(
        "
        DATE('2003-12-31 01:02:03') → 2003-12-31
        TIME('2003-12-31 01:02:03') → 01:02:03
        TIME('2003-12-31 01:02:03.000123') → 01:02:03.000123
        TO_DAYS(950501) → 728779
        TO_DAYS('2007-10-07') → 733321
        TO_DAYS('0000-00-00') → NULL ~1292
        TO_SECONDS(950501) → 62966505600
        TO_SECONDS('2009-11-29 13:43:32') → 63426721412
        FROM_DAYS(730669) → 2000-07-03
        FROM_DAYS(100) → 0000-04-10
        FROM_DAYS(0) → NULL ~6527
        FROM_DAYS(9223372036854775807) → NULL ~6527
        LAST_DAY('2003-02-05') → 2003-02-28
        LAST_DAY('2004-02-05') → 2004-02-29
        LAST_DAY('2003-03-32') → NULL ~1292
        MAKEDATE(2011,31) → 2011-01-31
        MAKEDATE(2011,32) → 2011-02-01
        MAKEDATE(2014,365) → 2014-12-31
        MAKEDATE(2011,0) → NULL
        MAKEDATE(9999,9223372036854775807) → NULL
        MAKETIME(12,15,30) → 12:15:30
        MAKETIME(-12,15,30.5) → -12:15:30.5
        MAKETIME(12,60,30) → NULL
        MAKETIME(900,0,0) → 838:59:59 ~1292
        SEC_TO_TIME(2378) → 00:39:38
        SEC_TO_TIME(-1.5) → -00:00:01.5
        SEC_TO_TIME(99999999) → 838:59:59 ~1292
        TIME_TO_SEC('22:23:00') → 80580
        TIME_TO_SEC('-00:39:38') → -2378
        UNIX_TIMESTAMP() → 1700000000
        UNIX_TIMESTAMP('2015-11-13 10:20:19') → 1447410019
        UNIX_TIMESTAMP('2015-11-13 10:20:19.012') → 1447410019.012
        UNIX_TIMESTAMP('1969-01-01') → 0
        UNIX_TIMESTAMP('nonsense') → 0.000000 ~1292
        FROM_UNIXTIME(1447430881) → 2015-11-13 16:08:01
        FROM_UNIXTIME(1447430881.5) → 2015-11-13 16:08:01.5
        FROM_UNIXTIME(1447430881, '%Y %D %M %h:%i:%s %x') → 2015 13th November 04:08:01 2015
        FROM_UNIXTIME(-1) → NULL
        FROM_UNIXTIME(1e30) → NULL ~1292
        CONVERT_TZ('2004-01-01 12:00:00','+00:00','+10:00') → 2004-01-01 22:00:00
        CONVERT_TZ('2004-01-01 12:00:00','GMT','MET') → 2004-01-01 13:00:00
        CONVERT_TZ('2004-01-01 12:00:00','x','MET') → NULL
        CONVERT_TZ('1960-01-01 12:00:00','+00:00','+10:00') → 1960-01-01 12:00:00
        ",
    );
}

#[test]
fn differences() {
    check(
        "
        DATEDIFF('2007-12-31 23:59:59','2007-12-30') → 1
        DATEDIFF('2010-11-30 23:59:59','2010-12-31') → -31
        DATEDIFF('2010-11-30', 'x') → NULL ~1292
        TIMEDIFF('2000-01-01 00:00:00', '2000-01-01 00:00:00.000001') → -00:00:00.000001
        TIMEDIFF('2008-12-31 23:59:59.000001','2008-12-30 01:01:01.000002') → 46:58:57.999999
        TIMEDIFF('10:00:00','09:00:00') → 01:00:00
        TIMEDIFF('10:00:00','2008-12-30 01:01:01') → NULL
        TIMEDIFF(DATE'2020-01-01', DATE'2010-01-01') → 838:59:59 ~1292
        TIMESTAMPDIFF('MONTH','2003-02-01','2003-05-01') → 3
        TIMESTAMPDIFF('YEAR','2002-05-01','2001-01-01') → -1
        TIMESTAMPDIFF('MINUTE','2003-02-01','2003-05-01 12:05:55') → 128885
        TIMESTAMPDIFF('MONTH','2003-01-31','2003-02-28') → 0
        TIMESTAMPDIFF('QUARTER','2003-01-01','2004-01-01') → 4
        TIMESTAMPDIFF('MICROSECOND','2003-01-01','2003-01-01 00:00:00.5') → 500000
        PERIOD_ADD(200801,2) → 200803
        PERIOD_DIFF(200802,200703) → 11
        PERIOD_ADD(0,2) → !1210
        PERIOD_DIFF(200813,200703) → !1210
        ",
    );
}

#[test]
fn formats() {
    check(
        "
        DATE_FORMAT('2009-10-04 22:23:00', '%W %M %Y') → Sunday October 2009
        DATE_FORMAT('2007-10-04 22:23:00', '%H:%i:%s') → 22:23:00
        DATE_FORMAT('1900-10-04 22:23:00', '%D %y %a %d %m %b %j') → 4th 00 Thu 04 10 Oct 277
        DATE_FORMAT('1997-10-04 22:23:00', '%H %k %I %r %T %S %w') → 22 22 10 10:23:00 PM 22:23:00 00 6
        DATE_FORMAT('1999-01-01', '%X %V') → 1998 52
        DATE_FORMAT('2006-06-00', '%d') → 00
        DATE_FORMAT('2006-00-01', '%M') → NULL
        DATE_FORMAT('2006-06-01', '%f %% %q%') → 000000 % q%
        TIME_FORMAT('100:00:00', '%H %k %h %I %l') → 100 100 04 04 4
        TIME_FORMAT('-10:00:01', '%T') → -10:00:01
        TIME_FORMAT('10:00:01', '%W') → NULL
        GET_FORMAT('DATE', 'EUR') → %d.%m.%Y
        GET_FORMAT('DATETIME', 'USA') → %Y-%m-%d %H.%i.%s
        GET_FORMAT('TIME', 'x') → NULL
        STR_TO_DATE('01,5,2013','%d,%m,%Y') → 2013-05-01
        STR_TO_DATE('May 1, 2013','%M %d,%Y') → 2013-05-01
        STR_TO_DATE('a09:30:17','a%h:%i:%s') → 09:30:17
        STR_TO_DATE('a09:30:17','%h:%i:%s') → NULL ~1411
        STR_TO_DATE('09:30:17a','%h:%i:%s') → 09:30:17 ~1292
        STR_TO_DATE('9','%m') → NULL ~1411
        STR_TO_DATE('9','%s') → 00:00:09
        STR_TO_DATE('00/00/0000', '%m/%d/%Y') → NULL ~1411
        STR_TO_DATE('2013-05-01 10:11:12.5', '%Y-%m-%d %H:%i:%s.%f') → 2013-05-01 10:11:12.500000
        STR_TO_DATE('200442 Monday', '%X%V %W') → 2004-10-18
        STR_TO_DATE('10:30 PM', '%h:%i %p') → 22:30:00
        STR_TO_DATE('2004 61', '%Y %j') → 2004-03-01
        STR_TO_DATE('13:00 PM', '%h:%i %p') → NULL ~1411
        ",
    );
}

#[test]
fn now() {
    let zurich = || EvaluationContext {
        statement_time_us: 1_700_000_000_123_456,
        time_zone: TimeZone::parse("Europe/Zurich").unwrap(),
        ..EvaluationContext::default()
    };
    check_in(
        "
        NOW() → 2023-11-14 23:13:20
        NOW(6) → 2023-11-14 23:13:20.123456
        NOW(7) → !1426
        CURRENT_TIMESTAMP(1) → 2023-11-14 23:13:20.1
        NOW() + 0 → 20231114231320
        CURDATE() → 2023-11-14
        CURTIME(3) → 23:13:20.123
        UTC_DATE() → 2023-11-14
        UTC_TIME() → 22:13:20
        UTC_TIMESTAMP(2) → 2023-11-14 22:13:20.12
        SYSDATE() → 1970-01-01 01:00:00
        UNIX_TIMESTAMP(NOW()) → 1700000000
        UNIX_TIMESTAMP('2023-03-26 02:30:00') → 1679792400
        FROM_UNIXTIME(0) → 1970-01-01 01:00:00
        DATE_ADD(TIME'10:00:00', 1, 'DAY') → 2023-11-15 10:00:00
        TIMESTAMP(TIME'10:00:00') → 2023-11-14 10:00:00
        DATE(TIME'23:59:59') → 2023-11-14
        DATE(TIME'24:00:00') → 2023-11-15
        DATE(TIME'30:00:00') → 2023-11-16
        DATE(TIME'-00:00:01') → 2023-11-14
        TO_DAYS(TIME'30:00:00') → 739205
        DATEDIFF(TIME'30:00:00', DATE'2023-11-14') → 2
        TIMESTAMP(TIME'30:00:00') → 2023-11-15 06:00:00
        ",
        zurich,
    );
}
