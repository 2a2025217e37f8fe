use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::task;

const PATIENCE: Duration = Duration::from_secs(60);

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

#[test]
fn names_are_read_as_they_are_written() {
    for text in ["localhost", "firn-0.firn.default.svc", "a_b.example.", "10.0.0.1.nip.io", "7a"] {
        assert_eq!(name(text).to_string(), text);
    }
    assert_eq!(name("Node-1.Example"), name("node-1.example"), "names have no case");
    let long = format!("{}.a", "a".repeat(64));
    let longest = vec!["a".repeat(62); 5].join(".");
    for text in ["", ".", "a..b", "a b", "10.0.0", "10.0.0.1000", "a:1", "é", &long, &longest] {
        let error = text.parse::<HostName>().unwrap_err();
        assert!(error.to_string().contains("is not the name of a host"), "{error}");
    }
}

#[test]
fn this_machine_is_found_by_its_name() {
    let found = name("localhost").resolve(PATIENCE).unwrap();
    assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
}

#[test]
fn a_name_that_nobody_has_is_not_found() {
    // The domain is reserved: no resolver knows it.
    let error = name("nobody.invalid").resolve(PATIENCE).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    let nothing = |_: &HostName| Ok(Vec::new());
    let error = resolve_by(&name("nothing.invalid"), PATIENCE, nothing).unwrap_err();
    assert_eq!(error.to_string(), "it has no address");
}

#[test]
fn a_resolver_that_hangs_holds_up_one_thread_and_nobody() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    static IS_OVER: OnceLock<()> = OnceLock::new();
    static OVER: Event = Event::new();
    let hang = |_: &HostName| {
        ASKED.fetch_add(1, Ordering::SeqCst);
        OVER.wait_until(Some(PATIENCE), || IS_OVER.get().is_some());
        Ok(vec![IpAddr::from(Ipv4Addr::LOCALHOST)])
    };
    let slow = name("slow.invalid");
    let timeout = Duration::from_millis(30);
    let before = task::monotonic();
    for _ in 0..3 {
        let error = resolve_by(&slow, timeout, hang).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
    assert!(task::monotonic() - before >= timeout * 3);
    // On a busy machine its thread may begin later.
    while ASKED.load(Ordering::SeqCst) == 0 {
        task::yield_now();
    }
    assert_eq!(ASKED.load(Ordering::SeqCst), 1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| resolve_by(&slow, PATIENCE, hang));
        IS_OVER.set(()).unwrap();
        OVER.notify_all();
        assert_eq!(waiting.join().unwrap().unwrap(), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    });
}
