//! The log as recovery reads it: any bytes are groups up to some point, and decoded groups encode
//! to the same bytes.

#![no_main]

use firn_format::redo::{Change, Group, GroupBuilder, RawRecord};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(group) = Group::parse(rest) {
        for record in group.records().map_while(Result::ok) {
            check_record(&record);
        }
        rest = &rest[group.length_bytes() as usize..];
    }
});

/// A meaningful record is written back unchanged.
fn check_record(record: &RawRecord<'_>) {
    let Ok(change) = Change::decode(record) else { return };
    let mut builder = GroupBuilder::new();
    change.encode(record.page, &mut builder);
    let group = Group::parse(builder.finish()).expect("what was built is a group");
    let written = group.records().next().expect("one record").expect("a whole record");
    assert_eq!(&written, record);
    assert_eq!(Change::decode(&written).as_ref(), Ok(&change));
}
