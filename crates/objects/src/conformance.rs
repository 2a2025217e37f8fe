//! The promises of an object store as a test.

use crate::{ObjectError, ObjectStore, put_once};

/// Checks an empty store.
pub(crate) fn check(store: &dyn ObjectStore) {
    assert!(store.list("log").unwrap().is_empty());
    assert!(store.get("log/a").unwrap_err().is_not_found());
    assert!(store.get_range("log/a", 0..1).unwrap_err().is_not_found());
    store.delete("log/a").unwrap();

    store.put("log/b", b"second").unwrap();
    store.put("log/a", b"first").unwrap();
    store.put("pages/a", b"").unwrap();
    let large: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
    store.put("pages/large", &large).unwrap();
    assert_eq!(store.list("log").unwrap(), ["log/a", "log/b"]);
    assert_eq!(store.list("pages").unwrap(), ["pages/a", "pages/large"]);
    assert_eq!(store.get("log/a").unwrap(), b"first");
    assert_eq!(store.get("pages/a").unwrap(), b"");
    assert_eq!(store.get("pages/large").unwrap(), large);

    let refused = store.put("log/a", b"other").unwrap_err();
    assert!(matches!(refused, ObjectError::Exists { .. }), "{refused}");
    assert_eq!(store.get("log/a").unwrap(), b"first");
    put_once(store, "log/a", b"first").unwrap();
    assert!(put_once(store, "log/a", b"other").is_err());

    assert_eq!(store.get_range("log/a", 1..3).unwrap(), b"ir");
    assert_eq!(store.get_range("log/a", 3..100).unwrap(), b"st");
    assert_eq!(
        store.get_range("pages/large", 1_000_000..2_000_000).unwrap(),
        large[1_000_000..2_000_000]
    );

    store.delete("log/a").unwrap();
    assert!(store.get("log/a").unwrap_err().is_not_found());
    assert_eq!(store.list("log").unwrap(), ["log/b"]);
    store.put("log/a", b"again").unwrap();
    assert_eq!(store.get("log/a").unwrap(), b"again");
}
