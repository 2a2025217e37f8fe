//! Answers that wait for the confirmation of their effects while the connection's thread waits for
//! the next command.
//!
//! ```text
//!   client   command ─────────────────────────────► answer, command …
//!   thread   runs it, leaves the answer │ receives
//!   test                                  confirms ─► sends the answer
//! ```

mod support;

use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_wire::{CommandCode, ConnectionControl};
use support::echo::unconfirmed;
use support::{Client, Running, soon};

/// Longer than a connection waits for a command before it gives its thread back.
const LONGER_THAN_A_SLICE: Duration = Duration::from_millis(300);
/// Shorter than the watch takes to close a connection.
const MOMENT: Duration = Duration::from_millis(20);

fn pause(time: Duration) {
    firn_base::event::Event::new().wait_until(Some(time), || false);
}

/// Sends a command, and waits until its answer waits.
fn leave(running: &Running, client: &mut Client, text: &str) -> Arc<ConnectionControl> {
    client.query(text);
    let mut left = None;
    soon("left", || {
        left = running.service.late.lock().pop();
        left.is_some()
    });
    left.unwrap()
}

fn has_nothing(client: &Client) -> bool {
    client.stream.set_nonblocking(true).unwrap();
    let peeked = client.stream.peek(&mut [0]);
    client.stream.set_nonblocking(false).unwrap();
    peeked.is_err()
}

fn is_ok(answer: &[u8], info: &str) -> bool {
    answer[0] == 0 && answer.ends_with(info.as_bytes())
}

#[test]
fn an_answer_waits_for_its_confirmation_and_its_command_runs_meanwhile() {
    let running = Running::new();
    let mut client = running.log_in();
    for time in [Duration::ZERO, LONGER_THAN_A_SLICE] {
        let left = leave(&running, &mut client, "late first");
        pause(time);
        assert!(has_nothing(&client));
        assert_eq!(left.state().command, Some(CommandCode::Query));
        left.confirm(Ok(()));
        assert!(is_ok(&client.read(), "first"));
        soon("ended", || left.state().command.is_none());
        client.query("echo next");
        client.read_result();
    }
    for word in ["early", "early"] {
        client.query(word);
        assert!(is_ok(&client.read(), ""));
    }
}

#[test]
fn an_error_replaces_the_answer_and_the_connection_goes_on() {
    let running = Running::new();
    let mut client = running.log_in();
    let left = leave(&running, &mut client, "late first");
    left.confirm(Err(unconfirmed()));
    assert_eq!(client.read_error(), 1180);
    client.query("failing");
    assert_eq!(client.read_error(), 1180);
    let left = leave(&running, &mut client, "lost");
    left.confirm(Ok(()));
    assert_eq!(client.read_error(), 1105);
    client.query("echo next");
    client.read_result();
}

#[test]
fn a_command_that_comes_early_waits_for_the_one_before_it() {
    let running = Running::new();
    let mut client = running.log_in();
    let query = |text: &str| [&[text.len() as u8 + 1, 0, 0, 0, 3], text.as_bytes()].concat();
    let commands = [query("late first"), query("late second"), query("set")].concat();
    let before = running.service.begun.load(Ordering::SeqCst);
    client.stream.write_all(&commands).unwrap();
    for (number, info) in [(1, "first"), (2, "second")] {
        soon("left", || !running.service.late.lock().is_empty());
        pause(MOMENT);
        assert_eq!(running.service.begun.load(Ordering::SeqCst), before + number, "it has run");
        assert!(has_nothing(&client));
        running.service.late.lock().pop().unwrap().confirm(Ok(()));
        client.sequence = 1;
        assert!(is_ok(&client.read(), info));
    }
    client.sequence = 1;
    assert!(is_ok(&client.read(), ""));
}

#[test]
fn only_the_last_answer_of_a_command_is_left() {
    let running = Running::new();
    let mut client = Client::connect(running.port());
    client.capabilities |= firn_wire::Capabilities::MULTI_STATEMENTS;
    client.log_in();
    client.query("late first; late second; set");
    assert!(is_ok(&client.read(), "at once"));
    assert!(is_ok(&client.read(), "at once"));
    assert!(is_ok(&client.read(), ""));
    // What was answered before it is not sent yet, and would have to wait as well.
    client.query("set; late second");
    assert!(is_ok(&client.read(), ""));
    assert!(is_ok(&client.read(), "at once"));
}

#[test]
fn a_kill_ends_the_connection_without_an_answer_if_the_confirmation_does_not_come() {
    let running = Running::new();
    let connections = running.server.connections();
    for kill in [firn_wire::Connections::kill, firn_wire::Connections::kill_query] {
        let mut client = running.log_in();
        let id = client.id;
        let left = leave(&running, &mut client, "late first");
        assert!(kill(connections, id));
        assert!(client.is_closed(), "without an answer");
        assert!(connections.get(id).is_some(), "the session stays until its outcome is known");
        left.confirm(Ok(()));
        soon("gone", || connections.get(id).is_none());
    }
}

#[test]
fn a_killed_command_that_is_confirmed_soon_is_answered() {
    let running = Running::new();
    // On a busy machine the watch may come by twice before the confirmation, but not each time.
    soon("answered", || {
        let mut client = running.log_in();
        let left = leave(&running, &mut client, "late first");
        left.kill();
        left.confirm(Ok(()));
        let answer = client.try_read();
        assert!(client.is_closed());
        answer.is_ok_and(|answer| is_ok(&answer, "first"))
    });
}

#[test]
fn a_client_that_leaves_is_not_mistaken_for_the_next_one() {
    let running = Running::new();
    for _ in 0..10 {
        let mut client = running.log_in();
        let id = client.id;
        let left = leave(&running, &mut client, "late first");
        client.stream.shutdown(Shutdown::Both).unwrap();
        drop(client);
        let mut other = running.log_in();
        left.confirm(Ok(()));
        soon("gone", || running.server.connections().get(id).is_none());
        other.query("echo own");
        assert!(other.read_result()[2].ends_with(b"own"));
    }
}

#[test]
fn the_end_of_the_server_waits_for_answers_that_are_left() {
    let running = Running::new();
    let mut client = running.log_in();
    let left = leave(&running, &mut client, "late first");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pause(MOMENT);
            left.confirm(Ok(()));
        });
        assert!(running.server.shutdown(Duration::from_secs(60)));
    });
    assert!(is_ok(&client.read(), "first"));
}
