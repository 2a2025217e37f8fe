use firn_base::random::{RandomSource, SplitMix};

use super::*;

const AFTER: Duration = Duration::from_secs(10);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn idle(mark: u64) -> PauseEvent {
    PauseEvent::Seen(SessionsSeen { mark, is_busy: false })
}

fn busy(mark: u64) -> PauseEvent {
    PauseEvent::Seen(SessionsSeen { mark, is_busy: true })
}

/// A machine whose engine was opened at 0 and has been idle since.
fn opened() -> Pause {
    let mut pause = Pause::new(Some(AFTER));
    assert_eq!(pause.handle(seconds(0), PauseEvent::Opened), None);
    assert_eq!(pause.handle(seconds(0), idle(1)), None);
    pause
}

/// The same at 10 s, paused.
fn paused() -> Pause {
    let mut pause = opened();
    let asks = Some(PauseCommand::AskReplicas { idle_for: AFTER });
    assert_eq!(pause.handle(seconds(10), idle(1)), asks);
    let leaves = Some(PauseCommand::LetSessionsLeave);
    assert_eq!(pause.handle(seconds(10), PauseEvent::ReplicasRest), leaves);
    let closes = Some(PauseCommand::Close);
    assert_eq!(pause.handle(seconds(10), PauseEvent::SessionsHaveLeft), closes);
    assert_eq!(pause.handle(seconds(10), PauseEvent::Closed), None);
    assert!(pause.is_paused());
    pause
}

#[test]
fn an_idle_cluster_pauses_and_a_client_wakes_it() {
    let mut pause = paused();
    assert_eq!(pause.handle(seconds(99), PauseEvent::Woken), Some(PauseCommand::Open));
    assert_eq!(pause.handle(seconds(99), PauseEvent::Woken), None, "it is one wake");
    assert_eq!(pause.handle(seconds(100), PauseEvent::Opened), None);
    assert!(!pause.is_resting());
    pause.handle(seconds(100), idle(1));
    assert_eq!(pause.handle(seconds(109), idle(1)), None, "the time starts again");
    assert!(pause.handle(seconds(110), idle(1)).is_some());
}

#[test]
fn each_statement_begins_the_time_anew_and_what_is_open_stops_it() {
    let mut pause = opened();
    assert_eq!(pause.handle(seconds(9), idle(2)), None);
    assert_eq!(pause.handle(seconds(18), idle(2)), None);
    assert_eq!(pause.handle(seconds(18), busy(2)), None);
    assert_eq!(pause.handle(seconds(300), busy(2)), None);
    assert_eq!(pause.handle(seconds(309), idle(2)), None);
    assert!(pause.handle(seconds(310), idle(2)).is_some());
}

#[test]
fn without_a_time_it_never_pauses() {
    let mut pause = Pause::new(None);
    pause.handle(seconds(0), PauseEvent::Opened);
    for second in 0..10_000 {
        assert_eq!(pause.handle(seconds(second), idle(1)), None);
    }
}

#[test]
fn a_busy_replica_or_a_session_that_stays_gives_the_pause_up() {
    for event in [PauseEvent::ReplicaIsBusy, PauseEvent::SessionsStay, PauseEvent::Woken] {
        let mut pause = opened();
        pause.handle(seconds(10), idle(1));
        if event == PauseEvent::SessionsStay {
            pause.handle(seconds(10), PauseEvent::ReplicasRest);
        }
        assert!(pause.is_resting());
        assert_eq!(pause.handle(seconds(10), event), Some(PauseCommand::Stay), "{event:?}");
        assert!(!pause.is_resting());
        pause.handle(seconds(10), idle(1));
        assert_eq!(pause.handle(seconds(19), idle(1)), None, "P6");
        assert!(pause.handle(seconds(20), idle(1)).is_some());
    }
}

#[test]
fn a_wake_while_the_engine_closes_is_remembered() {
    let mut pause = opened();
    pause.handle(seconds(10), idle(1));
    pause.handle(seconds(10), PauseEvent::ReplicasRest);
    pause.handle(seconds(10), PauseEvent::SessionsHaveLeft);
    assert_eq!(pause.handle(seconds(11), PauseEvent::Woken), None);
    assert_eq!(pause.handle(seconds(12), PauseEvent::Closed), Some(PauseCommand::Open));
}

#[test]
fn another_leader_ends_the_pause() {
    let mut pause = paused();
    assert_eq!(pause.handle(seconds(20), PauseEvent::LostOffice), None);
    assert!(!pause.is_resting());
    assert_eq!(pause.handle(seconds(21), PauseEvent::Woken), None, "another node is to open");
}

#[test]
fn a_replica_knows_for_how_long_it_is_idle() {
    let mut idleness = Idleness::default();
    let seen = |mark, is_busy| SessionsSeen { mark, is_busy };
    assert_eq!(idleness.note(seconds(5), seen(1, false)), seconds(0));
    assert_eq!(idleness.note(seconds(9), seen(1, false)), seconds(4));
    assert_eq!(idleness.note(seconds(10), seen(2, false)), seconds(0));
    assert_eq!(idleness.note(seconds(20), seen(2, true)), seconds(0));
    assert_eq!(idleness.note(seconds(23), seen(2, false)), seconds(3));
}

/// A node with sessions and replicas, which does what the machine says, slowly.
#[derive(Default)]
struct Node {
    is_open: bool,
    lets_sessions_in: bool,
    mark: u64,
    /// Sessions that would end with the engine.
    open_transactions: u32,
    /// Clients that wait for the engine.
    waiting: u32,
    /// What the node is doing, of which the end is an event.
    doing: Option<PauseCommand>,
}

impl Node {
    fn seen(&self) -> PauseEvent {
        let is_busy = self.open_transactions > 0;
        PauseEvent::Seen(SessionsSeen { mark: self.mark, is_busy })
    }

    /// A client sends something, or ends its transaction.
    fn client(&mut self, random: &SplitMix) {
        if self.is_open && self.open_transactions > 0 && random.next_u64().is_multiple_of(2) {
            self.open_transactions -= 1;
            self.mark += 1;
        } else if self.is_open && self.lets_sessions_in {
            self.mark += 1;
            self.open_transactions += u32::from(random.next_u64().is_multiple_of(3));
        } else {
            self.waiting += 1;
        }
    }

    fn finish(&mut self, command: PauseCommand, random: &SplitMix) -> PauseEvent {
        match command {
            PauseCommand::AskReplicas { .. } if random.next_u64().is_multiple_of(4) => {
                PauseEvent::ReplicaIsBusy
            }
            PauseCommand::AskReplicas { .. } => PauseEvent::ReplicasRest,
            PauseCommand::LetSessionsLeave if self.open_transactions > 0 => {
                PauseEvent::SessionsStay
            }
            PauseCommand::LetSessionsLeave => PauseEvent::SessionsHaveLeft,
            PauseCommand::Close => {
                assert_eq!(self.open_transactions, 0, "P1");
                self.is_open = false;
                PauseEvent::Closed
            }
            PauseCommand::Open => {
                (self.is_open, self.lets_sessions_in) = (true, true);
                PauseEvent::Opened
            }
            PauseCommand::Stay => unreachable!("it is done at once"),
        }
    }
}

#[test]
fn no_session_loses_anything_and_no_client_waits_for_ever() {
    for seed in 0..2000 {
        let random = SplitMix::new(seed);
        let mut node = Node { is_open: true, lets_sessions_in: true, ..Node::default() };
        let mut pause = Pause::new(Some(AFTER));
        let mut now = Duration::ZERO;
        pause.handle(now, PauseEvent::Opened);
        let (mut pauses, mut idle_turns) = (0, 0);
        for turn in 0..600 {
            now += Duration::from_millis(random.next_u64() % 4000);
            let is_quiet = turn % 100 > 60;
            let event = match random.next_u64() % 4 {
                0 if !is_quiet => {
                    node.client(&random);
                    None
                }
                1 if node.waiting > 0 => Some(PauseEvent::Woken),
                2 => node.doing.take().map(|doing| node.finish(doing, &random)),
                _ if node.is_open => Some(node.seen()),
                _ => None,
            };
            let command = event.and_then(|event| pause.handle(now, event));
            match command {
                Some(PauseCommand::Stay) => {
                    // What was under way before it has no end any more.
                    node.doing = None;
                    node.lets_sessions_in = true;
                }
                Some(PauseCommand::LetSessionsLeave) => {
                    node.lets_sessions_in = false;
                    node.doing = command;
                }
                Some(_) => node.doing = command,
                None => {}
            }
            if node.is_open && node.lets_sessions_in {
                node.mark += u64::from(std::mem::take(&mut node.waiting));
            }
            pauses += u32::from(command == Some(PauseCommand::Close));
            idle_turns = if node.waiting > 0 { idle_turns + 1 } else { 0 };
            assert!(idle_turns < 200, "seed {seed}: a client waits for ever");
            assert!(node.lets_sessions_in || pause.is_resting() || node.doing.is_some());
        }
        assert!(pauses > 0 || seed % 50 != 0, "seed {seed}: nothing has paused");
    }
}
