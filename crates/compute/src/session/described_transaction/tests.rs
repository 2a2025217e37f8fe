use std::ops::Bound;

use firn_api::rows::{DescribedSnapshot, DescribedTransaction, IsolationLevel, ReadSpan};
use firn_base::{Cts, IndexId, TableId};
use proptest::prelude::*;

use super::*;

fn described() -> MovingTransaction {
    let low = Bound::Included(b"a".to_vec());
    let reads = vec![
        ReadSpan::Record(IndexId(9), b"k".to_vec()),
        ReadSpan::Range(IndexId(300), low, Bound::Excluded(b"z".to_vec())),
        ReadSpan::Range(IndexId(9), Bound::Unbounded, Bound::Unbounded),
    ];
    MovingTransaction {
        read_only: false,
        tables: vec![UsedTable { table: TableId(11), version: 300 }],
        savepoints: vec!["s".to_owned()],
        inner: DescribedTransaction {
            isolation: IsolationLevel::RepeatableRead,
            snapshot: Some(DescribedSnapshot { at: Cts(300), reads: Some(reads) }),
        },
    }
}

#[test]
fn a_description_has_these_bytes() {
    let expected = [
        &[1][..],                              // version
        &[0],                                  // it may write
        &[1, 11, 0xac, 2],                     // one table: 11, version 300
        &[1, 1, b's'],                         // one savepoint, `s`
        &[1],                                  // repeatable read
        &[1, 0xac, 2],                         // a snapshot at 300
        &[1, 3],                               // of which three reads are known:
        &[0, 9, 1, b'k'],                      // the record `k` of index 9
        &[1, 0xac, 2, 1, 1, b'a', 2, 1, b'z'], // from `a` on up to `z` of index 300
        &[1, 9, 0, 0],                         // all of index 9
    ]
    .concat();
    assert_eq!(encode(&described()).unwrap(), expected);
    assert_eq!(decode(&expected).unwrap(), described());
    let begun = MovingTransaction {
        read_only: true,
        tables: Vec::new(),
        savepoints: Vec::new(),
        inner: DescribedTransaction { isolation: IsolationLevel::ReadCommitted, snapshot: None },
    };
    assert_eq!(encode(&begun).unwrap(), [1, 1, 0, 0, 0, 0]);
    let snapshot = Some(DescribedSnapshot { at: Cts(7), reads: None });
    let inner = DescribedTransaction { isolation: IsolationLevel::RepeatableRead, snapshot };
    let asked_for = MovingTransaction { inner, ..begun };
    assert_eq!(encode(&asked_for).unwrap(), [1, 1, 0, 0, 1, 1, 7, 0]);
}

#[test]
fn other_bytes_are_refused() {
    let whole = encode(&described()).unwrap();
    for length in 0..whole.len() {
        assert_eq!(decode(&whole[..length]).unwrap_err().code, 1105, "{length}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(decode(&longer).unwrap_err().code, 1105);
    let newer = [&[VERSION + 1][..], &whole[1..]].concat();
    let refused = decode(&newer).unwrap_err();
    assert!(refused.message.contains("version 2"), "{}", refused.message);
}

proptest! {
    /// Arbitrary bytes are refused, or say something that is written back and read again.
    #[test]
    fn any_bytes_are_a_description_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        bytes.insert(0, VERSION);
        if let Ok(described) = decode(&bytes) {
            let again = encode(&described).unwrap();
            prop_assert_eq!(decode(&again).unwrap(), described);
        }
    }
}
