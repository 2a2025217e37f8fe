use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn member(truncated: u64, durable: u64) -> Member {
    let positions = Positions { truncated: Lsn(truncated), durable: Lsn(durable) };
    Member { positions: Some(positions), is_asked: true, ..Member::default() }
}

fn kept(held: u64, from: u64) -> Kept {
    Kept { held: Lsn(held), from: Lsn(from) }
}

#[test]
fn the_log_begins_where_a_majority_has_it() {
    let mut members = Members(vec![member(100, 900), Member::default(), Member::default()]);
    assert_eq!((members.truncated(), members.heard()), (None, 1));
    members.0[1] = member(300, 900);
    assert_eq!(members.truncated(), Some(Lsn(300)));
    members.0[2] = member(200, 900);
    assert_eq!(members.truncated(), Some(Lsn(200)));
    assert_eq!(Members(vec![member(500, 900)]).truncated(), Some(Lsn(500)));
}

#[test]
fn a_member_that_is_gone_counts_for_nothing() {
    let mut members = Members(vec![member(100, 900), member(300, 950), member(200, 900)]);
    members.0[2].kept.insert(7, kept(100, 100));
    members.0[2].is_gone = true;
    assert_eq!((members.majority(), members.heard()), (2, 2));
    assert_eq!(members.truncated(), Some(Lsn(300)));
    assert!(!members.is_held(7));
    assert!(members.is_ahead_elsewhere(Lsn(900), 0));
    assert!(!members.is_ahead_elsewhere(Lsn(900), 1));
    assert_eq!(members.order(Lsn(300), 2, SECOND, SECOND), [0, 1]);
}

#[test]
fn a_reader_stands_by_its_majority() {
    let mut members = Members::new(3);
    let standing = |members: &Members| members.standing(7);
    assert_eq!(standing(&members), Standing::Unknown);
    members.0[0].kept.insert(7, kept(100, 100));
    members.0[0].kept.insert(8, kept(100, 200));
    assert_eq!(standing(&members), Standing::Unknown);
    members.0[1].kept.insert(7, kept(100, 101));
    assert_eq!(standing(&members), Standing::Unknown, "one for each");
    members.0[2].kept.insert(7, kept(100, 50));
    assert_eq!(standing(&members), Standing::Held);
    members.0[2].kept.insert(7, kept(100, 150));
    assert_eq!(standing(&members), Standing::Gone);
}

#[test]
fn members_that_have_the_log_and_answer_are_asked_first() {
    let mut members = Members(vec![
        member(100, 900), // has nothing after 900
        member(950, 990), // does not have it any more
        member(100, 800), // behind
        member(100, 990),
        Member::default(),
    ]);
    let order = |members: &Members, first| members.order(Lsn(900), first, 10 * SECOND, SECOND);
    assert_eq!(order(&members, 0), [3, 0, 1, 2, 4]);
    assert_eq!(order(&members, 4), [3, 0, 1, 4, 2]);
    members.0[3].failed_at = Some(9 * SECOND + SECOND / 2);
    assert_eq!(order(&members, 0), [0, 1, 2, 4, 3]);
    members.0[3].failed_at = Some(9 * SECOND);
    assert_eq!(order(&members, 0), [3, 0, 1, 2, 4], "it is forgiven");
}

#[test]
fn another_member_is_ahead_only_with_log_after_the_position() {
    let members = Members(vec![member(100, 900), member(100, 800), Member::default()]);
    assert!(members.is_ahead_elsewhere(Lsn(800), 1));
    assert!(!members.is_ahead_elsewhere(Lsn(800), 0));
    assert!(!members.is_ahead_elsewhere(Lsn(900), 1));
}

#[test]
fn members_that_are_far_are_asked_after_the_others() {
    let ms = Duration::from_millis;
    let mut members = Members(vec![member(100, 900), member(100, 900), member(100, 900)]);
    members.0[0].answered_in(ms(30));
    members.0[1].answered_in(ms(1));
    let order = |members: &Members| members.order(Lsn(300), 0, SECOND, SECOND);
    assert_eq!(order(&members), [1, 2, 0], "of the last one nothing is known");
    members.0[1].answered_in(ms(9));
    assert_eq!(order(&members), [1, 2, 0], "one slow answer does not make it far");
    members.0[0].answered_in(ms(3));
    assert_eq!(order(&members), [0, 1, 2], "a fast answer shows that it is near");
    members.0[2].positions = None;
    members.0[0].answered_in(ms(90));
    assert_eq!(order(&members), [1, 0, 2], "it has the log");
}
