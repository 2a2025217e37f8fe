//! Counters add up, and every figure has one name.

use super::*;

#[test]
fn what_a_session_counted_moves_when_it_ends() {
    let (instance, session) = (Status::default(), Status::default());
    count(&session.questions);
    session.count_command(Command::Select);
    session.count_duration(StatementClass::Read, 700);
    session.count_duration(StatementClass::Read, u64::MAX / 2);
    let mut both = instance.read();
    both.add(&session.read());
    instance.take_from(&session);
    let moved = instance.read();
    assert_eq!(moved.questions, 1);
    assert_eq!(moved.command(Command::Select), 1);
    assert_eq!(moved.durations[0].buckets[3], 1);
    assert_eq!(moved.durations[0].buckets[16], 1);
    assert_eq!(moved.durations, both.durations);
    assert_eq!(session.read().questions, 0);
}

#[test]
fn names_are_told_once() {
    let figures = Status::default().read().figures();
    let mut names: Vec<_> = figures.iter().map(|figure| figure.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(names.contains(&"Com_select") && names.contains(&"Handler_read_rnd_next"));
}

#[test]
fn kinds_of_statements_are_in_order() {
    for (number, command) in Command::all().enumerate() {
        assert_eq!(command as usize, number);
        assert_eq!(command.status_name(), format!("Com_{}", command.label()));
    }
}
