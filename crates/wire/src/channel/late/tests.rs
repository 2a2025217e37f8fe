#![allow(clippy::disallowed_types, reason = "tests use the machine as it is")]

use std::io::Read;
use std::os::unix::net::UnixStream;

use super::*;

/// A late answer over a socket, and the client's side.
fn late() -> (LateAnswer, UnixStream) {
    let (own, client) = UnixStream::pair().unwrap();
    client.set_nonblocking(true).unwrap();
    (LateAnswer::new(Arc::new(Socket::new(own.into(), false).unwrap())), client)
}

fn packet(payload: &[u8]) -> Vec<u8> {
    [&[payload.len() as u8, 0, 0, 1][..], payload].concat()
}

/// The bytes that have arrived.
fn received(client: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Ends with the error that nothing more has arrived.
    client.read_to_end(&mut bytes).unwrap_err();
    bytes
}

#[test]
fn an_answer_is_sent_when_it_is_made_and_confirmed_whichever_comes_last() {
    let (late, mut client) = late();
    assert!(late.promise());
    assert_eq!(late.offer(&mut packet(b"ok")), Offer::Left);
    assert!(late.is_unconfirmed() && received(&mut client).is_empty());
    let mut was_ended = false;
    late.confirm(Ok(()), || was_ended = true);
    assert!(was_ended);
    assert_eq!(received(&mut client), packet(b"ok"));
    assert_eq!((late.wait_until_sent(), late.is_in_use()), (None, false));

    assert!(late.promise());
    late.confirm(Ok(()), || panic!("the connection's thread ends its command"));
    assert_eq!(late.offer(&mut packet(b"ok")), Offer::Send(Ok(())));
    assert!(!late.is_in_use() && received(&mut client).is_empty());
}

#[test]
fn an_error_takes_the_answers_place_and_number() {
    let (late, mut client) = late();
    assert!(late.promise());
    let mut answer = packet(b"ok");
    answer[3] = 7;
    late.offer(&mut answer);
    late.confirm(Err(b"\xffno".to_vec()), || ());
    assert_eq!(received(&mut client), b"\x03\0\0\x07\xffno");
    assert!(late.promise());
    late.confirm(Err(b"no".to_vec()), || ());
    assert!(late.is_refused());
    assert_eq!(late.offer(&mut packet(b"ok")), Offer::Send(Err(b"no".to_vec())));
}

#[test]
fn the_thread_that_confirms_does_not_wait_for_a_client_that_does_not_read() {
    let (late, mut client) = late();
    let mut filled = 0;
    loop {
        match late.socket.send_at_once(&[7; 1 << 16]).unwrap() {
            0 => break,
            sent => filled += sent,
        }
    }
    assert!(late.promise());
    let answer = packet(&[8; 200]);
    late.offer(&mut answer.clone());
    late.confirm(Ok(()), || ());
    // Another answer cannot be left before the connection's thread has sent this one.
    assert!(!late.promise());
    let mut came = Vec::new();
    while came.len() < filled {
        came.extend(received(&mut client));
    }
    let rest = late.wait_until_sent().expect("not all was sent");
    came.extend(rest);
    assert_eq!(came[filled..], answer);
    assert!(late.promise());
}

#[test]
fn a_client_that_has_gone_does_not_disturb() {
    let (late, client) = late();
    drop(client);
    assert!(late.promise());
    late.offer(&mut packet(b"ok"));
    late.confirm(Ok(()), || ());
    assert_eq!(late.wait_until_sent(), None);
}

#[test]
fn who_has_to_send_next_waits_for_the_confirmation() {
    let (late, mut client) = late();
    assert!(late.promise());
    late.offer(&mut packet(b"ok"));
    std::thread::scope(|scope| {
        let next = scope.spawn(|| late.wait_until_sent());
        while !late.changed.is_awaited() {
            firn_base::task::yield_now();
        }
        assert!(!next.is_finished());
        late.confirm(Ok(()), || ());
        assert_eq!(next.join().unwrap(), None);
    });
    assert_eq!(received(&mut client), packet(b"ok"));
}
