use proptest::prelude::*;

use super::parameters::ParameterType;
use super::{Bound, Command, CommandCode, Statements, take_attributes};
use crate::packet::{Malformed, PayloadReader};
use crate::value::{Attribute, Date, DateTime, Parameter, Time};

/// One statement with that many parameters, under number 1.
fn statements(parameters: usize) -> Statements {
    let mut statements = Statements::default();
    let number = statements.next_number();
    statements.insert(number, parameters);
    statements
}

fn bind(
    statements: &mut Statements,
    values: &[u8],
    flags: u8,
    attributes: bool,
    check: impl FnOnce(&[Parameter<'_>], &[Attribute<'_>]),
) -> Result<(), Malformed> {
    let statement = statements.get(1, "").unwrap();
    let long_data = statement.take_long_data();
    let mut bound = Bound::default();
    let mut values = PayloadReader::new(values);
    statement.bind(&mut values, flags, attributes, &long_data, &mut bound)?;
    check(&bound.parameters, &bound.attributes);
    Ok(())
}

#[test]
fn types_are_bound_once_and_kept() {
    let mut statements = statements(2);
    // No NULL, types follow: an unsigned TINY and a string.
    let first = b"\x00\x01\x01\x80\xfd\x00\xff\x03abc";
    bind(&mut statements, first, 0, false, |values, _| {
        assert_eq!(values, [Parameter::UInt(255), Parameter::Text(b"abc")]);
    })
    .unwrap();
    // The second is NULL, no types follow.
    bind(&mut statements, b"\x02\x00\x07", 0, false, |values, _| {
        assert_eq!(values, [Parameter::UInt(7), Parameter::Null]);
    })
    .unwrap();
}

#[test]
fn values_without_types_are_refused() {
    let mut fresh = statements(1);
    assert_eq!(bind(&mut fresh, b"\x00\x00\x01", 0, false, |_, _| ()), Err(Malformed));
}

#[test]
fn long_data_takes_the_place_of_a_value_once() {
    let mut statements = statements(2);
    let statement = statements.get(1, "").unwrap();
    statement.add_long_data(0, b"long ", 100);
    statement.add_long_data(0, b"data", 100);
    let values = b"\x00\x01\xfc\x00\x01\x00\x05";
    bind(&mut statements, values, 0, false, |values, _| {
        assert_eq!(values, [Parameter::Bytes(b"long data"), Parameter::Int(5)]);
    })
    .unwrap();
    bind(&mut statements, b"\x00\x00\x01x\x06", 0, false, |values, _| {
        assert_eq!(values, [Parameter::Bytes(b"x"), Parameter::Int(6)]);
    })
    .unwrap();
}

#[test]
fn long_data_that_cannot_be_is_told_at_the_next_execution() {
    let mut statements = statements(1);
    let statement = statements.get(1, "").unwrap();
    statement.add_long_data(1, b"no such parameter", 100);
    assert_eq!(statement.take_long_data_error().map(|error| error.code), Some(1210));
    statement.add_long_data(0, &[0; 101], 100);
    assert_eq!(statement.take_long_data_error().map(|error| error.code), Some(1153));
    assert_eq!(statement.take_long_data_error(), None);
}

#[test]
fn values_beyond_the_parameters_are_attributes() {
    let mut statements = statements(1);
    let values = b"\x02\x00\x01\x01\x00\x00\xfd\x00\x03key\x09\x05value";
    bind(&mut statements, values, 8, true, |values, attributes| {
        assert_eq!(values, [Parameter::Int(9)]);
        let attribute = Attribute { name: b"key", value: Parameter::Text(b"value") };
        assert_eq!(attributes, [attribute]);
    })
    .unwrap();
}

#[test]
fn a_query_may_begin_with_attributes() {
    let mut reader =
        PayloadReader::new(b"\x02\x01\x02\x01\x08\x00\x01a\xfd\x00\x01b\x05\0\0\0\0\0\0\0SELECT 1");
    let attributes = take_attributes(&mut reader).unwrap();
    let expected = [
        Attribute { name: b"a", value: Parameter::Int(5) },
        Attribute { name: b"b", value: Parameter::Null },
    ];
    assert_eq!(attributes.as_slice(), expected);
    assert_eq!(reader.take_all(), b"SELECT 1");
    let mut none = PayloadReader::new(b"\x00\x01SELECT 1");
    assert!(take_attributes(&mut none).unwrap().is_empty());
    assert_eq!(none.take_all(), b"SELECT 1");
}

/// The value of that type in those bytes.
fn value<'a>(type_code: u8, bytes: &'a [u8]) -> Parameter<'a> {
    let bound = ParameterType::decode(&mut PayloadReader::new(&[type_code, 0])).unwrap();
    bound.value(&mut PayloadReader::new(bytes)).unwrap()
}

#[test]
fn every_type_has_its_encoding() {
    let date = Date { year: 2026, month: 11, day: 21 };
    assert_eq!(value(1, b"\xff"), Parameter::Int(-1));
    assert_eq!(value(2, b"\x00\x80"), Parameter::Int(-32_768));
    assert_eq!(value(3, b"\xfe\xff\xff\xff"), Parameter::Int(-2));
    assert_eq!(value(8, &[0, 0, 0, 0, 0, 0, 0, 0x80]), Parameter::Int(i64::MIN));
    assert_eq!(value(4, &1.5f32.to_le_bytes()), Parameter::Float(1.5));
    assert_eq!(value(5, &0.1f64.to_le_bytes()), Parameter::Double(0.1));
    assert_eq!(value(246, b"\x031.5"), Parameter::Decimal(b"1.5"));
    assert_eq!(value(252, b"\x01\0"), Parameter::Bytes(b"\0"));
    assert_eq!(value(10, b"\x04\xea\x07\x0b\x15"), Parameter::Date(date));
    let noon = DateTime { date, hour: 12, minute: 1, second: 2, microsecond: 3 };
    assert_eq!(value(12, b"\x0b\xea\x07\x0b\x15\x0c\x01\x02\x03\0\0\0"), Parameter::DateTime(noon));
    assert_eq!(value(7, b"\0"), Parameter::DateTime(DateTime::default()));
    let time = Time { negative: true, hours: 49, minute: 2, second: 3, microsecond: 0 };
    assert_eq!(value(11, b"\x08\x01\x02\0\0\0\x01\x02\x03"), Parameter::Time(time));
}

#[test]
fn a_command_without_its_arguments_is_refused() {
    for code in (0..=255).filter_map(CommandCode::from_code) {
        let short = Command::decode(code, b"");
        use CommandCode::*;
        let takes_nothing = matches!(
            code,
            Quit | InitDb
                | Query
                | Statistics
                | Ping
                | ChangeUser
                | StatementPrepare
                | ResetConnection
        );
        assert_eq!(short.is_ok(), takes_nothing, "{code:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_values_or_refused(
        parameters in 0usize..20,
        flags: u8,
        has_attributes: bool,
        executions: Vec<Vec<u8>>,
    ) {
        let mut statements = statements(parameters);
        for values in executions {
            let count = values.first().map_or(0, |byte| usize::from(byte & 31));
            let _ = bind(&mut statements, &values, flags, has_attributes, |bound, _| {
                assert_eq!(bound.len(), parameters);
            });
            // With types before them, more bytes are values.
            let mut typed = vec![0; count.div_ceil(8)];
            typed.push(1);
            typed.extend(values);
            let _ = bind(&mut statements, &typed, flags, has_attributes, |_, _| ());
            let _ = take_attributes(&mut PayloadReader::new(&typed));
        }
    }
}
