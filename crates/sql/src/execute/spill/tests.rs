#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use std::sync::Arc;

use firn_base::disk::{SpillDirectory, SystemDisk};
use proptest::prelude::*;

use super::*;
use crate::types::{Decimal, JsonValue};

fn datum() -> impl Strategy<Value = Datum> {
    prop_oneof![
        Just(Datum::Null),
        any::<i64>().prop_map(Datum::Int),
        any::<u64>().prop_map(Datum::UInt),
        (-1e300..1e300_f64).prop_map(Datum::Double),
        (any::<i64>(), 0..30_u8).prop_map(|(number, scale)| Datum::Decimal(
            Decimal::from_unscaled(number.into(), scale)
        )),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Datum::text),
        any::<i64>().prop_map(Datum::Date),
        any::<i64>().prop_map(Datum::Time),
        any::<i64>().prop_map(Datum::DateTime),
        any::<i64>().prop_map(|number| Datum::from(JsonValue::Array(vec![JsonValue::Int(number)]))),
    ]
}

proptest! {
    #[test]
    fn rows_come_back_in_order(
        rows in prop::collection::vec(prop::collection::vec(datum(), 0..6), 0..50),
        repeated in 1..40_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let directory = SpillDirectory::open(Arc::new(SystemDisk), folder.path(), 1 << 40).unwrap();
        let mut file = SpillFile::create(&directory.of_statement()).unwrap();
        let mut places = Vec::new();
        for row in rows.iter().cycle().take(rows.len() * repeated) {
            places.push(file.end());
            file.append(row).unwrap();
        }
        let mut reader = file.into_reader().unwrap();
        let mut read = Vec::new();
        for (number, place) in places.into_iter().enumerate().rev().step_by(7) {
            reader.seek(place).unwrap();
            prop_assert!(reader.next(&mut read).unwrap());
            prop_assert_eq!(&read, &rows[number % rows.len()]);
        }
        reader = reader.again();
        for row in rows.iter().cycle().take(rows.len() * repeated) {
            prop_assert!(reader.next(&mut read).unwrap());
            prop_assert_eq!(&read, row);
        }
        prop_assert!(!reader.next(&mut read).unwrap());
        drop(reader);
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files go");
    }

    #[test]
    fn other_bytes_are_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = read_values(&bytes, &mut Vec::new());
    }
}
