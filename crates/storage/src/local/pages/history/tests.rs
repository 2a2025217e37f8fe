use firn_base::{PageNo, SpaceId};

use super::*;

const A: PageId = PageId::new(SpaceId(1), PageNo(1));
const B: PageId = PageId::new(SpaceId(1), PageNo(2));

#[test]
fn a_hold_keeps_the_log_until_the_horizon_has_passed_its_end() {
    let mut history = History::new(Lsn(0));
    assert_eq!(history.needs_log_from(), Lsn::MAX);
    history.hold(A, Lsn(100), Lsn(200));
    history.hold(B, Lsn(50), Lsn(300));
    history.hold(A, Lsn(250), Lsn(300));
    assert_eq!(history.needs_log_from(), Lsn(50));
    assert!(!history.would_expire(Lsn(192)));
    assert_eq!(history.move_horizon(Lsn(200)), [A]);
    assert_eq!(history.needs_log_from(), Lsn(50));
    assert_eq!(history.move_horizon(Lsn(300)), [A, B]);
    assert_eq!(history.needs_log_from(), Lsn::MAX);
}

#[test]
fn the_horizon_never_goes_back() {
    let mut history = History::new(Lsn(100));
    history.move_horizon(Lsn(50));
    assert_eq!(history.horizon(), Lsn(100));
}

#[test]
fn without_a_window_the_horizon_is_what_is_durable() {
    let mut clock = HorizonClock::new(Duration::ZERO, Lsn(0));
    assert_eq!(clock.horizon(Duration::from_secs(1), Lsn(80)), Lsn(80));
}

#[test]
fn with_a_window_the_horizon_is_at_or_before_what_was_durable_then() {
    let mut clock = HorizonClock::new(Duration::from_secs(10), Lsn(40));
    for second in 0..100u64 {
        let durable = Lsn(1000 + second * 8);
        let horizon = clock.horizon(Duration::from_secs(second), durable);
        let expected = if second < 10 { Lsn(40) } else { Lsn(1000 + (second - 10) * 8) };
        assert_eq!(horizon, expected, "second {second}");
    }
}

#[test]
fn positions_are_noted_about_each_second_however_often_it_is_asked() {
    let mut clock = HorizonClock::new(Duration::from_secs(10), Lsn(0));
    for ms in 0..60_000u64 {
        let horizon = clock.horizon(Duration::from_millis(ms), Lsn(ms * 8));
        assert!(horizon.0 / 8 + 10_000 <= ms.max(10_000));
        assert!(ms < 12_000 || horizon.0 / 8 + 11_001 >= ms);
    }
    assert!(clock.samples.len() <= 12);
}
