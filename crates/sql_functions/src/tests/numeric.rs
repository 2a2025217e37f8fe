use firn_sql_types::{EvaluationContext, SqlMode, StatementKind};

use super::harness::{check, check_in};

#[test]
fn arithmetic() {
    check(
        "
        3+5 → 8
        3-5 → -2
        18446744073709551615-1 → 18446744073709551614
        1-18446744073709551615 → !1690
        9223372036854775807 + 1 → !1690
        1.25 + 2 → 3.25
        '1.5' + 1 → 2.5
        'x' + 1 → 1 ~1292
        NULL + 1 → NULL
        1e308 * 10 → !1690
        3*5 → 15
        18014398509481984*18014398509481984.0 → 324518553658426726783156020576256.0
        18014398509481984*18014398509481984 → !1690
        3/5 → 0.6000
        2/3 → 0.6667
        1/0 → NULL ~1365
        1.00/3 → 0.333333
        1e0/3 → 0.3333333333333333
        102/(1-1) → NULL ~1365
        5 DIV 2 → 2
        -5 DIV 2 → -2
        5.9 DIV 2 → 2
        5 DIV 0 → NULL ~1365
        1e30 DIV 1 → !1690
        234 % 10 → 4
        MOD(29,9) → 2
        MOD(-7, 3) → -1
        MOD(34.5,3) → 1.5
        MOD(5, 0) → NULL ~1365
        MOD(5.5e0, 2) → 1.5
        NEG(2) → -2
        NEG(9223372036854775808) → -9223372036854775808
        NEG(18446744073709551615) → !1690
        NEG('1.5') → -1.5
        DATE'2020-01-02' + 1 → 20200103
        TIME'10:00:00.5' + 0 → 100000.5
        ",
    );
}

#[test]
fn division_by_zero_follows_the_modes() {
    let writing = |sql_mode| {
        move || EvaluationContext {
            sql_mode,
            statement_kind: StatementKind::Write,
            ..EvaluationContext::default()
        }
    };
    check_in("1/0 → !1365", writing(SqlMode::DEFAULT));
    check_in("1/0 → NULL", writing(SqlMode::NONE));
    check_in("1-2 → -1\n1-18446744073709551615 → !1690", || EvaluationContext {
        sql_mode: SqlMode::NO_UNSIGNED_SUBTRACTION,
        ..EvaluationContext::default()
    });
}

#[test]
fn bits() {
    check(
        "
        29 | 15 → 31
        29 & 15 → 13
        1 ^ 1 → 0
        11 ^ 3 → 8
        1 << 2 → 4
        4 >> 2 → 1
        1 << 64 → 0
        -1 >> 1 → 9223372036854775807
        ~0 → 18446744073709551615
        5 & ~1 → 4
        BIT_COUNT(64) → 1
        BIT_COUNT(-1) → 64
        HEX(b'f0f0' | b'0f00') → FFF0
        HEX(b'f0f0' & b'ff00') → F000
        b'f0' | b'0f0f' → !3513
        HEX(~b'f0f0') → 0F0F
        HEX(b'00ff00' << 4) → 0FF000
        HEX(b'00ff00' >> 4) → 000FF0
        HEX(b'00ff00' >> 12) → 00000F
        HEX(b'00ff00' << 99) → 000000
        x'0f' | x'f0' → 255
        BIT_COUNT(b'ffff') → 16
        ",
    );
}

#[test]
fn rounding() {
    check(
        "
        ROUND(-1.23) → -1
        ROUND(-1.58) → -2
        ROUND(1.58) → 2
        ROUND(1.298, 1) → 1.3
        ROUND(1.298, 0) → 1
        ROUND(23.298, -1) → 20
        ROUND(150.000,2) → 150.00
        ROUND(150,2) → 150
        ROUND(2.5) → 3
        ROUND(25e-1) → 2
        ROUND(155, -1) → 160
        ROUND(9223372036854775807, -1) → !1690
        ROUND(1, 99999999999) → 1
        ROUND(1.5, -99999999999) → 0
        ROUND(1e300, 20) → 1e300
        ROUND(1.7e308, -308) → !1690
        ROUND(NULL, 1) → NULL
        TRUNCATE(1.223,1) → 1.2
        TRUNCATE(1.999,0) → 1
        TRUNCATE(-1.999,1) → -1.9
        TRUNCATE(122,-2) → 100
        TRUNCATE(10.28e0*100,0) → 1028
        CEILING(1.23) → 2
        CEIL(-1.23) → -1
        FLOOR(1.23) → 1
        FLOOR(-1.23) → -2
        FLOOR(99999999999999999999.5) → 99999999999999999999
        FLOOR('1.9') → 1
        ABS(-32) → 32
        ABS(-9223372036854775808) → !1690
        ABS(-1.5) → 1.5
        SIGN(-32) → -1
        SIGN(0.0) → 0
        SIGN(234) → 1
        ",
    );
}

#[test]
fn functions_of_analysis() {
    check(
        "
        SQRT(4) → 2
        SQRT(-16) → NULL
        EXP(2) → 7.38905609893065
        EXP(1000) → !1690
        LN(2) → 0.6931471805599453
        LN(-2) → NULL ~3020
        LOG(2) → 0.6931471805599453
        LOG(2,65536) → 16
        LOG(10,100) → 2
        LOG(1,100) → NULL ~3020
        LOG2(65536) → 16
        LOG10(100) → 2
        LOG10(0) → NULL ~3020
        POW(2,2) → 4
        POWER(2,-2) → 0.25
        POW(0,-1) → !1690
        POW(-8, 0.5) → !1690
        PI() → 3.141592653589793
        COS(PI()) → -1
        COT(0) → !1690
        ACOS(1) → 0
        ACOS(1.0001) → NULL
        ASIN('foo') → 0 ~1292
        ATAN(2) → 1.1071487177940904
        ATAN(-2,2) → -0.7853981633974483
        DEGREES(PI()) → 180
        RADIANS(90) → 1.5707963267948966
        RAND(3) → 0.9057697559760601
        RAND(1) → 0.40540353712197724
        RAND(NULL) → 0.15522042769493574
        ",
    );
}

#[test]
fn one_of_several() {
    check(
        "
        GREATEST(2,0) → 2
        GREATEST(34.0,3.0,5.0,767.0) → 767.0
        GREATEST('B','A','C') → C
        GREATEST(1, NULL) → NULL
        GREATEST(10, '9') → 9
        GREATEST(DATE'2020-01-01', DATE'2021-01-01') → 2021-01-01
        LEAST(2,0) → 0
        LEAST(-1, 18446744073709551615) → -1
        LEAST(1.5, 2) → 1.5
        INTERVAL(23, 1, 15, 17, 30, 44, 200) → 3
        INTERVAL(10, 1, 10, 100, 1000) → 2
        INTERVAL(22, 23, 30, 44, 200) → 0
        INTERVAL(NULL, 1) → -1
        ",
    );
}

#[test]
fn a_seed_makes_a_sequence() {
    let context = EvaluationContext::default();
    let ty = firn_sql_types::SqlType::double().not_null();
    let seed = [firn_sql_types::Datum::Int(3)];
    let types = [firn_sql_types::SqlType::bigint()];
    let call = crate::Call { context: &context, arguments: &types.each_ref(), result: &ty };
    let rand = crate::find("RAND").unwrap();
    let next = || (rand.evaluate)(&seed, &call).unwrap();
    assert_eq!(next(), firn_sql_types::Datum::Double(0.9057697559760601));
    assert_eq!(next(), firn_sql_types::Datum::Double(0.37307905813034536));
}
