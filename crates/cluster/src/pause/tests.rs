use super::*;

/// A replica that has been idle for a second.
struct Idle;

impl RestingReplica for Idle {
    fn idle_for(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn rest(&self, idle_for: Duration) -> bool {
        idle_for <= Duration::from_secs(1)
    }
}

fn seat() -> Arc<PauseSeat> {
    PauseSeat::new(&Environment::system(), Some(Duration::ZERO))
}

/// A seat whose engine is closed.
fn paused() -> Arc<PauseSeat> {
    let seat = seat();
    let idle = PauseEvent::Seen(SessionsSeen { mark: 0, is_busy: false });
    for event in [PauseEvent::Opened, idle, idle, PauseEvent::ReplicasRest] {
        seat.tell(event);
    }
    assert_eq!(seat.tell(PauseEvent::SessionsHaveLeft), Some(PauseCommand::Close));
    seat
}

#[test]
fn messages_have_these_bytes() {
    let asks = [Ask::Wake, Ask::IsOpen, Ask::Idle, Ask::Rest { idle_ms: 300 }];
    let bytes: Vec<_> = asks.iter().map(|ask| encode(VERSION, ask)).collect();
    assert_eq!(bytes, [vec![1, 0], vec![1, 1], vec![1, 2], vec![1, 3, 0xac, 2]]);
    let answers = [
        Answer::Noted,
        Answer::State(WriterState::Away),
        Answer::State(WriterState::Open),
        Answer::State(WriterState::Resting),
        Answer::Idle(None),
        Answer::Idle(Some(300)),
        Answer::Rests(true),
    ];
    let bytes: Vec<_> = answers.iter().map(|answer| encode(VERSION, answer)).collect();
    let expected = [
        vec![1, 0],
        vec![1, 1, 0],
        vec![1, 1, 1],
        vec![1, 1, 2],
        vec![1, 2, 0],
        vec![1, 2, 1, 0xac, 2],
        vec![1, 3, 1],
    ];
    assert_eq!(bytes, expected);
    assert_eq!(decode::<Ask>(VERSION, &[1, 4]), None);
    assert_eq!(decode::<Ask>(VERSION, &[2, 0]), None);
}

#[test]
fn a_wake_while_the_engine_closes_has_it_opened_again() {
    let seat = paused();
    seat.answer(Ask::Wake);
    seat.answer(Ask::Wake);
    assert_eq!(seat.tell(PauseEvent::Closed), Some(PauseCommand::Open));
    assert!(!seat.is_resting());
}

#[test]
fn a_question_about_the_state_wakes_nobody() {
    let seat = paused();
    assert_eq!(seat.tell(PauseEvent::Closed), None);
    assert_eq!(seat.answer(Ask::IsOpen), Answer::State(WriterState::Resting));
    assert!(seat.is_paused() && !seat.wait_for_wake(Duration::ZERO));
    seat.wake();
    assert!(seat.wait_for_wake(Duration::ZERO));
}

#[test]
fn a_wake_of_an_open_node_is_forgotten() {
    let seat = seat();
    seat.wake();
    seat.tell(PauseEvent::Opened);
    seat.set_open(true);
    assert_eq!(seat.answer(Ask::IsOpen), Answer::State(WriterState::Open));
    assert!(!seat.wait_for_wake(Duration::ZERO));
}

#[test]
fn a_process_without_a_replica_does_not_hold_the_pause_up() {
    let seat = seat();
    assert_eq!(seat.answer(Ask::Idle), Answer::Idle(None));
    assert_eq!(seat.answer(Ask::Rest { idle_ms: 5 }), Answer::Rests(true));
    seat.set_replica(Some(Arc::new(Idle)));
    assert_eq!(seat.answer(Ask::Idle), Answer::Idle(Some(1000)));
    assert_eq!(seat.answer(Ask::Rest { idle_ms: 1001 }), Answer::Rests(false));
}
