//! Which processes and builds may open a directory.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use super::*;

fn open(path: &Path) -> Result<Arc<LocalDirectory>, OpenError> {
    LocalDirectory::open(&Environment::system(), path)
}

#[test]
fn a_directory_keeps_its_database() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/b");
    let first = open(&path).unwrap();
    let database = first.database();
    assert!(!first.is_log_created());
    first.mark_log_created().unwrap();
    drop(first);
    let again = open(&path).unwrap();
    assert_eq!(again.database(), database);
    assert!(again.is_log_created());
    let text = std::fs::read_to_string(path.join("FORMAT")).unwrap();
    assert_eq!(text, format!("firn directory format 2\ndatabase {database}\nlog created\n"));
}

#[test]
fn a_second_process_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let first = open(place.path()).unwrap();
    assert!(matches!(open(place.path()), Err(OpenError::InUse { .. })));
    drop(first);
    open(place.path()).unwrap();
}

#[test]
fn another_format_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    drop(open(place.path()).unwrap());
    for found in [0, 1, 3] {
        let text = format!("firn directory format {found}\nwhatever else is in it");
        std::fs::write(place.path().join("FORMAT"), text).unwrap();
        let error = open(place.path()).map(drop).unwrap_err();
        assert!(matches!(error, OpenError::Format { found: f, known: 2, .. } if f == found));
        let text = error.to_string();
        assert!(text.contains(&format!("format {found}")) && text.contains("format 2"), "{text}");
    }
}

#[test]
fn what_is_not_a_format_file_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let good = "firn directory format 2\ndatabase 00112233445566778899aabbccddeeff\n";
    let bad: [&[u8]; 6] = [
        b"",
        b"\xff\xfe",
        b"firn directory format one\n",
        b"firn directory format 2\ndatabase 0011\n",
        b"firn directory format 2\ndatabase +0112233445566778899aabbccddeeff\n",
        &[good.as_bytes(), b"more"].concat(),
    ];
    for bytes in bad {
        std::fs::write(place.path().join("FORMAT"), bytes).unwrap();
        assert!(matches!(open(place.path()), Err(OpenError::FormatFile { .. })), "{bytes:?}");
    }
    std::fs::write(place.path().join("FORMAT"), good).unwrap();
    assert_eq!(
        open(place.path()).unwrap().database().to_string(),
        "00112233445566778899aabbccddeeff"
    );
}

#[test]
fn a_database_without_its_format_file_is_not_a_new_one() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("log")).unwrap();
    assert!(matches!(open(place.path()), Err(OpenError::FormatMissing { .. })));
}
