use super::*;

const DURABLE: Lsn = Lsn(10_000);

#[test]
fn the_least_reader_holds_the_log_until_it_lets_go() {
    let leases = Leases::new(Lsn::FIRST);
    let slow = leases.take("slow", Lsn(1_000), u64::MAX, DURABLE).unwrap();
    let fast = leases.take("fast", Lsn(3_000), u64::MAX, DURABLE).unwrap();
    assert_eq!(leases.raise_floor(Lsn(500), DURABLE), Lsn(500));
    assert_eq!(leases.raise_floor(Lsn(5_000), DURABLE), Lsn(1_000));
    slow.release(Lsn(4_000));
    slow.release(Lsn(2_000));
    assert_eq!(leases.raise_floor(Lsn(5_000), DURABLE), Lsn(3_000));
    let names: Vec<_> = leases.list().into_iter().map(|lease| (lease.name, lease.held)).collect();
    assert_eq!(names, [("slow".to_owned(), Lsn(4_000)), ("fast".to_owned(), Lsn(3_000))]);
    drop(fast);
    assert_eq!(leases.list().len(), 1, "nobody has the other one any more");
    assert_eq!(leases.raise_floor(Lsn(5_000), DURABLE), Lsn(4_000));
    drop(slow);
    assert_eq!(leases.raise_floor(Lsn(20_000), DURABLE), DURABLE, "what is not durable stays");
}

#[test]
fn a_lease_is_not_given_on_what_is_gone_or_not_there_yet() {
    let leases = Leases::new(Lsn::FIRST);
    assert_eq!(leases.raise_floor(Lsn(5_000), DURABLE), Lsn(5_000));
    for outside in [Lsn(4_992), DURABLE.advance(8)] {
        let refused = leases.take("late", outside, u64::MAX, DURABLE).unwrap_err();
        assert!(matches!(refused, LogError::OutOfRange { from, .. } if from == Lsn(5_000)));
    }
    leases.take("early enough", Lsn(5_000), 0, DURABLE).unwrap();
    leases.take("waits for more", DURABLE, 0, DURABLE).unwrap();
}

#[test]
fn a_reader_beyond_its_limit_is_dropped_and_told() {
    let leases = Leases::new(Lsn::FIRST);
    let reader = leases.take("behind", Lsn(1_000), 4_000, DURABLE).unwrap();
    assert_eq!(leases.raise_floor(Lsn(1_000), DURABLE), Lsn(1_000), "it holds nothing back");
    reader.check().unwrap();
    let also = leases.take("in time", Lsn(6_000), 4_000, DURABLE).unwrap();
    assert_eq!(leases.raise_floor(Lsn(7_000), DURABLE), Lsn(6_000));
    let told = reader.check().unwrap_err();
    assert!(matches!(told, LogError::ReaderDropped { held: Lsn(1_000), .. }), "{told}");
    also.check().unwrap();
}
