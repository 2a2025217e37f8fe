use super::*;

/// The leader waits for no other committer.
const NONE: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(60);

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
    role.wait_durable(end(), NONE, |mut held| {
        held.begin_round(end());
        assert_eq!(role.durable(), Lsn::FIRST, "not before the round has ended");
        held.end_round();
    });
    assert_eq!(role.durable(), end());
    role.wait_durable(end(), NONE, |_| panic!("there is nothing left to do"));
}

#[test]
fn a_round_that_does_not_end_ends_the_log() {
    let role = WriterRole::new(Lsn::FIRST);
    let mut held = role.try_take().expect("nobody has it");
    held.begin_round(end());
    drop(held);
    assert!(matches!(role.failure(), Some(LogError::Failed { .. })));
    assert!(role.try_take().is_none());
    role.wait_durable(end(), NONE, |_| panic!("nobody writes any more"));
    assert_eq!(role.durable(), Lsn::FIRST);
}

/// Ends a round with two waiters, which have not come back yet.
fn end_a_round_of_two(role: &WriterRole) {
    let mut held = role.try_take().expect("nobody has it");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| role.wait_durable(end(), LONG, |_| panic!("somebody else leads")));
        }
        wait_for_arrivals(role, 2);
        held.begin_round(end());
        held.end_round();
        drop(held);
    });
}

fn wait_for_arrivals(role: &WriterRole, count: u64) {
    while role.arrivals.load(Ordering::SeqCst) < count {
        firn_base::task::yield_now();
    }
}

#[test]
fn nobody_leads_before_those_have_arrived_whom_the_last_round_has_woken() {
    let role = WriterRole::new(Lsn::FIRST);
    let (first, last) = (end().advance(64), end().advance(128));
    end_a_round_of_two(&role);
    let lead = |mut held: HeldRole<'_>| {
        assert_eq!(role.arrivals.load(Ordering::SeqCst), 4, "one was not waited for");
        // Both groups are in the buffer now.
        held.begin_round(last);
        held.end_round();
    };
    std::thread::scope(|scope| {
        let deputy = scope.spawn(|| role.wait_durable(first, LONG, lead));
        wait_for_arrivals(&role, 3);
        firn_base::task::sleep(Duration::from_millis(20));
        role.wait_durable(last, LONG, lead);
        deputy.join().unwrap();
    });
    assert_eq!(role.durable(), last);
}

#[test]
fn who_arrives_first_leads_if_the_others_do_not_come() {
    let role = WriterRole::new(Lsn::FIRST);
    end_a_round_of_two(&role);
    let later = end().advance(64);
    role.wait_durable(later, Duration::from_millis(5), |mut held| {
        held.begin_round(later);
        held.end_round();
    });
    assert_eq!(role.durable(), later);
}

#[test]
fn who_waits_for_the_next_round_gets_the_role() {
    let role = WriterRole::new(Lsn::FIRST);
    let later = end().advance(64);
    let mut first = role.try_take().expect("nobody has it");
    first.begin_round(end());
    std::thread::scope(|scope| {
        let covered =
            scope.spawn(|| role.wait_durable(end(), NONE, |_| panic!("its round runs already")));
        let next = scope.spawn(|| {
            role.wait_durable(later, NONE, |mut held| {
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
