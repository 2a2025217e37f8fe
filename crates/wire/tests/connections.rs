//! A running server: logins, limits, idleness, kills, disconnects, shutdown, and clients that send
//! anything.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests look at the clock")]

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::{Running, soon};

#[test]
fn a_wrong_password_and_an_unknown_user_look_alike() {
    let running = Running::new();
    let mut heard = Vec::new();
    for user in ["sha2", "nobody"] {
        let mut client = running.connect();
        client.record();
        let response = client.response(user, &[7; 32], "caching_sha2_password");
        client.write(&response);
        // The full way is asked for; over plain TCP the password must be encrypted.
        assert_eq!(client.read(), [1, 4]);
        client.write(&[0; 256]);
        assert_eq!(client.read_error(), 1045);
        assert!(client.is_closed());
        let transcript = client.take_transcript();
        heard.push(transcript.lines().filter(|line| line.contains(':')).count());
    }
    assert_eq!(heard[0], heard[1]);
    assert_eq!(running.service.sessions.load(Ordering::SeqCst), 0);
}

#[test]
fn a_client_of_another_plugin_is_switched() {
    let running = Running::new();
    let mut client = running.connect();
    let response = client.response("native", &[7; 32], "caching_sha2_password");
    client.write(&response);
    let request = client.read();
    assert_eq!((request[0], &request[1..23]), (0xfe, &b"mysql_native_password\0"[..]));
    client.write(&[1; 20]);
    assert_eq!(client.read_error(), 1045);
}

#[test]
fn a_client_that_says_nothing_costs_no_thread_and_is_sent_away() {
    let patient = Running::with(|limits| limits.connect_timeout = Duration::from_secs(3600));
    let _silent: Vec<_> = (0..20).map(|_| patient.connect()).collect();
    soon("parked", || patient.server.parked_connections() == 20);
    let running = Running::with(|limits| limits.connect_timeout = Duration::from_millis(300));
    let mut silent: Vec<_> = (0..20).map(|_| running.connect()).collect();
    assert!(silent.iter_mut().all(|client| client.is_closed()));
    soon("forgotten", || running.server.connections().is_empty());
}

#[test]
fn a_client_that_trickles_is_sent_away_in_time() {
    let running = Running::with(|limits| limits.connect_timeout = Duration::from_millis(400));
    let mut client = running.connect();
    // If each byte gave the client more time, this would not end.
    soon("sent away", || client.stream.write_all(&[1]).is_err());
}

#[test]
fn packets_before_the_login_are_short() {
    let running = Running::new();
    let mut client = running.connect();
    client.stream.write_all(&[255, 255, 255, 1]).unwrap();
    let mut said = Vec::new();
    let _ = client.stream.read_to_end(&mut said);
    assert!(said.windows(18).any(|words| words == b"max_allowed_packet"), "{said:?}");
}

#[test]
fn one_too_many_hears_error_1040() {
    let running = Running::with(|limits| limits.max_connections = 2);
    let _clients = [running.log_in(), running.log_in()];
    let stream = TcpStream::connect(("127.0.0.1", running.port())).unwrap();
    let mut said = Vec::new();
    (&stream).read_to_end(&mut said).unwrap();
    assert_eq!(&said[4..], b"\xff\x10\x04Too many connections");
    running.server.limits().set_max_connections(3);
    running.log_in();
}

#[test]
fn clients_that_do_not_log_in_keep_nobody_out() {
    let running = Running::with(|limits| {
        limits.max_connections = 2;
        limits.max_pending_logins = 20;
    });
    let mut silent: Vec<_> = (0..40).map(|_| running.connect()).collect();
    assert!(silent[0].is_closed(), "the one that has been silent for longest");
    let _clients = [running.log_in(), running.log_in()];
    silent.truncate(1);
    soon("only who logged in is left", || running.server.connections().len() == 2);
}

#[test]
fn connections_come_and_go_idle_at_any_moment() {
    let running = Running::new();
    std::thread::scope(|scope| {
        for client_number in 0..20u64 {
            let running = &running;
            scope.spawn(move || {
                let mut client = running.log_in();
                for round in 0..25 {
                    client.query("one");
                    assert_eq!(client.read_result().len(), 4);
                    // Around the time after which a connection is parked.
                    let pause_ms = 92 + (client_number * 7 + round * 3) % 17;
                    std::thread::sleep(Duration::from_millis(pause_ms));
                }
            });
        }
    });
    soon("all gone", || running.server.connections().is_empty());
    assert_eq!(running.service.sessions.load(Ordering::SeqCst), 0);
}

#[test]
fn idle_connections_are_parked_and_taken_up_again() {
    let running = Running::with(|limits| limits.max_connections = 1000);
    let mut clients: Vec<_> = (0..100).map(|_| running.log_in()).collect();
    soon("parked", || running.server.parked_connections() == 100);
    for _ in 0..2 {
        for client in &mut clients {
            client.query("one");
            assert_eq!(client.read_result().len(), 4);
        }
        soon("parked again", || running.server.parked_connections() == 100);
    }
}

#[test]
fn an_idle_connection_is_told_that_it_waited_too_long() {
    let running = Running::with(|limits| limits.wait_timeout = Duration::from_millis(200));
    let mut client = running.log_in();
    client.command(0x0e, b"");
    let mut said = Vec::new();
    let _ = client.stream.read_to_end(&mut said);
    // Before it comes the command's answer, unless the machine was too busy to run it in time.
    assert!(said.windows(3).any(|bytes| bytes == b"\xff\xbf\x0f"), "{said:?}");
    soon("forgotten", || running.server.connections().is_empty());
}

#[test]
fn a_client_that_goes_away_ends_its_statement() {
    let running = Running::new();
    // A busy machine may be late, but not each time.
    soon("ended within 200 ms", || {
        let mut client = running.log_in();
        let begun = running.service.begun.load(Ordering::SeqCst);
        let before = running.service.cancelled.load(Ordering::SeqCst);
        client.query("wait");
        soon("running", || running.service.begun.load(Ordering::SeqCst) > begun);
        std::thread::sleep(Duration::from_millis(60));
        let left = Instant::now();
        client.stream.shutdown(Shutdown::Both).unwrap();
        drop(client);
        soon("cancelled", || running.service.cancelled.load(Ordering::SeqCst) > before);
        left.elapsed() < Duration::from_millis(200)
    });
    soon("dropped", || running.service.sessions.load(Ordering::SeqCst) == 0);
}

#[test]
fn kill_query_leaves_the_connection_and_kill_does_not() {
    let running = Running::new();
    let (mut victim, mut killer) = (running.log_in(), running.log_in());
    let is_running = |id| {
        let states = running.server.connections().list();
        states.iter().any(|state| state.id == id && state.command.is_some())
    };
    let victim_id = victim.id;
    victim.query("wait");
    soon("running", || is_running(victim_id));
    killer.query(&format!("killquery {victim_id}"));
    assert_eq!(killer.read()[0], 0);
    assert_eq!(victim.read_error(), 1317);
    // Else the first statement, which ends after its answer, is taken for the second.
    soon("idle", || !is_running(victim_id));
    victim.query("wait");
    soon("running", || is_running(victim_id));
    killer.query(&format!("kill {victim_id}"));
    assert_eq!(killer.read()[0], 0);
    assert_eq!(victim.read_error(), 1317);
    assert!(victim.is_closed());
    // An idle connection simply ends.
    let mut idle = running.log_in();
    soon("parked", || running.server.parked_connections() >= 1);
    assert!(running.server.connections().kill(idle.id));
    assert!(idle.is_closed());
    soon("forgotten", || running.server.connections().get(idle.id).is_none());
    assert!(!running.server.connections().kill(idle.id));
}

#[test]
fn a_client_that_does_not_read_can_be_killed() {
    let running = Running::new();
    let mut client = running.log_in();
    client.query("rows 100000000");
    std::thread::sleep(Duration::from_millis(300));
    assert!(running.server.connections().kill(client.id));
    soon("forgotten", || running.server.connections().is_empty());
}

#[test]
fn a_client_that_does_not_read_runs_out_of_time() {
    let running = Running::with(|limits| limits.net_write_timeout = Duration::from_millis(300));
    let mut client = running.log_in();
    client.query("rows 100000000");
    soon("forgotten", || running.server.connections().is_empty());
}

#[test]
fn a_panic_ends_its_connection_only() {
    let running = Running::new();
    let (mut unlucky, mut other) = (running.log_in(), running.log_in());
    unlucky.query("panic");
    assert!(unlucky.is_closed());
    let mut unluckier = running.log_in();
    unluckier.query("endbadly");
    assert!(unluckier.is_closed());
    other.query("one");
    assert_eq!(other.read_result().len(), 4);
    soon("dropped", || running.service.sessions.load(Ordering::SeqCst) == 1);
    soon("forgotten", || running.server.connections().len() == 1);
}

#[test]
fn shutdown_lets_statements_end_and_closes_the_idle() {
    let running = Running::new();
    let (mut idle, mut busy) = (running.log_in(), running.log_in());
    busy.query("wait");
    soon("running", || {
        running.server.connections().list().iter().any(|state| state.command.is_some())
    });
    soon("parked", || running.server.parked_connections() == 1);
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(running.server.shutdown(Duration::from_secs(60))));
        let mut said = Vec::new();
        let _ = idle.stream.read_to_end(&mut said);
        assert_eq!(&said[4..7], b"\xff\x1d\x04");
        assert!(TcpStream::connect(("127.0.0.1", running.port())).is_err() || busy.id > 0);
        running.server.connections().kill_query(busy.id);
        assert_eq!(busy.read_error(), 1317);
    });
    assert!(TcpStream::connect(("127.0.0.1", running.port())).is_err());
    assert_eq!(running.service.sessions.load(Ordering::SeqCst), 0);
}

#[test]
fn shutdown_interrupts_what_does_not_end() {
    let running = Running::new();
    let mut busy = running.log_in();
    busy.query("wait");
    soon("running", || {
        running.server.connections().list().iter().any(|state| state.command.is_some())
    });
    assert!(running.server.shutdown(Duration::from_millis(50)));
    assert_eq!(busy.read_error(), 1317);
}

#[test]
fn prepared_statements_are_counted() {
    let running = Running::with(|limits| limits.max_prepared_stmt_count = 2);
    let mut client = running.log_in();
    let prepare = |client: &mut support::Client| {
        client.command(0x16, b"one");
        client.read()[0]
    };
    assert_eq!([prepare(&mut client), prepare(&mut client), prepare(&mut client)], [0, 0, 0xff]);
    client.command(0x19, &[1, 0, 0, 0]);
    assert_eq!(prepare(&mut client), 0);
    client.command(0x16, b"refuse");
    assert_eq!(client.read_error(), 1461);
    client.command(0x1f, b"");
    client.read();
    let mut other = running.log_in();
    assert_eq!(prepare(&mut other), 0);
}

#[test]
fn a_statement_has_as_many_parameters_as_can_be_counted() {
    let running = Running::new();
    let mut client = running.log_in();
    client.command(0x16, &[b'?'; 65_536]);
    assert_eq!(client.read_error(), 1390);
    client.command(0x16, &[b'?'; 65_535]);
    assert_eq!(client.read()[..9], [0, 2, 0, 0, 0, 255, 255, 255, 255]);
}

#[test]
fn a_command_beyond_the_limit_is_refused_and_one_below_is_not() {
    let running = Running::with(|limits| limits.max_allowed_packet = 1 << 20);
    let mut client = running.log_in();
    client.query(&format!("echo {}", "x".repeat((1 << 20) - 6)));
    assert_eq!(client.read_result()[2].len(), (1 << 20) - 6 + 4);
    // The server closes as soon as it has seen the length, so the client may find it gone while it
    // writes.
    let text = format!("echo {}", "x".repeat(1 << 20));
    let mut packet = (text.len() as u32 + 1).to_le_bytes().to_vec();
    packet[3] = 0;
    packet.push(3);
    packet.extend_from_slice(text.as_bytes());
    client.sequence = 1;
    if client.stream.write_all(&packet).is_ok()
        && let Ok(answer) = client.try_read()
    {
        assert_eq!(answer[..3], [0xff, 0x81, 0x04], "error 1153");
    }
    let mut another = running.log_in();
    another.query("one");
    assert_eq!(another.read_result().len(), 4);
}

/// Whatever a client sends before or after the login, the server still answers others.
#[test]
fn any_bytes_leave_the_server_alive() {
    let running = Running::with(|limits| limits.max_connections = 100_000);
    let mut runner = TestRunner::new(Config { cases: 200, ..Config::default() });
    let strategy = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..200), any::<bool>());
    runner
        .run(&strategy, |(logged_in, bytes, framed)| {
            let mut client = if logged_in { running.log_in() } else { running.connect() };
            let mut sent = bytes.clone();
            if framed {
                sent = [&[bytes.len() as u8, 0, 0, u8::from(!logged_in)], &bytes[..]].concat();
            }
            let _ = client.stream.write_all(&sent);
            let _ = client.stream.shutdown(Shutdown::Write);
            let _ = client.stream.read_to_end(&mut Vec::new());
            Ok(())
        })
        .unwrap();
    let mut client = running.log_in();
    client.query("one");
    assert_eq!(client.read_result().len(), 4);
    drop(client);
    soon("forgotten", || running.server.connections().is_empty());
}
