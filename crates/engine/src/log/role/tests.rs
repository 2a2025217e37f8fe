use super::*;

fn end() -> Lsn {
    Lsn::FIRST.advance(64)
}

#[test]
fn one_has_the_role_until_it_is_given_back() {
    let role = WriterRole::new(Lsn::FIRST);
    let held = role.try_take().expect("nobody has it");
    assert!(role.try_take().is_none());
    drop(held);
    assert!(role.try_take().is_some());
    assert!(role.failure().is_none());
}

#[test]
fn a_lone_committer_leads_its_own_round() {
    let role = WriterRole::new(Lsn::FIRST);
    role.wait_durable(end(), |mut held| {
        held.begin_round(end());
        assert_eq!(role.durable(), Lsn::FIRST, "not before the round has ended");
        held.end_round();
    });
    assert_eq!(role.durable(), end());
    role.wait_durable(end(), |_| panic!("there is nothing left to do"));
}

#[test]
fn a_round_that_does_not_end_ends_the_log() {
    let role = WriterRole::new(Lsn::FIRST);
    let mut held = role.try_take().expect("nobody has it");
    held.begin_round(end());
    drop(held);
    assert!(matches!(role.failure(), Some(LogError::Failed { .. })));
    assert!(role.try_take().is_none());
    role.wait_durable(end(), |_| panic!("nobody writes any more"));
    assert_eq!(role.durable(), Lsn::FIRST);
}

#[test]
fn those_whom_the_last_round_has_woken_are_waited_for() {
    const LONG: Duration = Duration::from_secs(60);
    let role = WriterRole::new(Lsn::FIRST);
    let later = end().advance(64);
    let mut first = role.try_take().expect("nobody has it");
    first.gather(LONG);
    first.begin_round(end());
    std::thread::scope(|scope| {
        let covered =
            scope.spawn(|| role.wait_durable(end(), |_| panic!("its round runs already")));
        while role.arrivals.load(Ordering::SeqCst) == 0 {
            firn_base::task::yield_now();
        }
        first.end_round();
        drop(first);
        covered.join().unwrap();
        let mut second = role.try_take().expect("it was given back");
        let again = scope.spawn(|| role.wait_durable(later, |_| panic!("the second one writes")));
        second.gather(LONG);
        second.begin_round(later);
        second.end_round();
        drop(second);
        again.join().unwrap();
    });
}

#[test]
fn who_waits_for_the_next_round_gets_the_role() {
    let role = WriterRole::new(Lsn::FIRST);
    let later = end().advance(64);
    let mut first = role.try_take().expect("nobody has it");
    first.begin_round(end());
    std::thread::scope(|scope| {
        let covered =
            scope.spawn(|| role.wait_durable(end(), |_| panic!("its round runs already")));
        let next = scope.spawn(|| {
            role.wait_durable(later, |mut held| {
                held.begin_round(later);
                held.end_round();
            });
        });
        firn_base::task::sleep(std::time::Duration::from_millis(20));
        first.end_round();
        drop(first);
        covered.join().unwrap();
        next.join().unwrap();
    });
    assert_eq!(role.durable(), later);
}
