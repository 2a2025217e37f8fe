#![allow(clippy::disallowed_types, reason = "tests use the machine as it is")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_base::clock::SystemClock;
use firn_base::memory::{self, Keeper, NoRoom};
use proptest::prelude::*;

use super::{
    ByteStream, Channel, CompressionAlgorithm, KEPT_OF_REFUSED_BYTES, MemoryStream, Patience,
    Received,
};
use crate::error::WireError;
use crate::packet::{MAX_PAYLOAD_LENGTH, PayloadWriter};

const EACH: Patience = Patience::Each(Duration::ZERO);

fn channel(
    stream: impl ByteStream + 'static,
    compression: Option<CompressionAlgorithm>,
) -> Channel {
    let closing = Arc::new(AtomicBool::new(false));
    let mut channel = Channel::new(Box::new(stream), Arc::new(SystemClock), closing);
    if let Some(algorithm) = compression {
        channel.compress(algorithm, 3);
    }
    channel
}

fn reading(bytes: Vec<u8>) -> MemoryStream {
    MemoryStream { input: io::Cursor::new(bytes), ..MemoryStream::default() }
}

/// What a channel sends for these payloads.
fn sent(payloads: &[Vec<u8>], compression: Option<CompressionAlgorithm>) -> Vec<u8> {
    let stream = MemoryStream::default();
    let output = stream.output.clone();
    let mut channel = channel(stream, compression);
    for payload in payloads {
        channel.output.begin().put(payload);
        channel.output.commit();
    }
    channel.flush().unwrap();
    std::mem::take(&mut *output.lock())
}

fn ways() -> [Option<CompressionAlgorithm>; 3] {
    [None, Some(CompressionAlgorithm::Zlib), Some(CompressionAlgorithm::Zstd)]
}

/// A stream that returns a few bytes at a time and reports between them that none have arrived.
struct Hesitant {
    stream: MemoryStream,
    step: usize,
    silent: bool,
}

impl ByteStream for Hesitant {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.silent = !self.silent;
        if self.silent {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = buffer.len().min(self.step);
        self.stream.read(&mut buffer[..length])
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.silent = !self.silent;
        if self.silent {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.stream.write(&bytes[..bytes.len().min(self.step)])
    }
}

proptest! {
    #[test]
    fn payloads_arrive_as_they_were_sent(
        payloads in prop::collection::vec(prop::collection::vec(0u8..4, 0..3000), 1..6),
        way in 0usize..3,
        step in 1usize..700,
    ) {
        let compression = ways()[way];
        let stream = reading(sent(&payloads, compression));
        let mut channel = channel(Hesitant { stream, step, silent: false }, compression);
        channel.read_timeout = Duration::MAX;
        let mut payload = Vec::new();
        let patience = Patience::Each(Duration::from_secs(60));
        for expected in &payloads {
            prop_assert_eq!(channel.read_packet(&mut payload, patience).unwrap(), Received::Packet);
            prop_assert_eq!(&payload, expected);
        }
        prop_assert!(matches!(channel.read_packet(&mut payload, patience), Err(WireError::Lost(_))));
    }

    #[test]
    fn any_bytes_are_packets_or_refused(bytes: Vec<u8>, way in 0usize..3) {
        let mut channel = channel(reading(bytes), ways()[way]);
        let mut payload = Vec::new();
        while channel.read_packet(&mut payload, EACH).is_ok() {}
    }

    #[test]
    fn a_frame_with_any_content_is_decompressed_or_refused(
        content: Vec<u8>,
        length in 1u32..70_000,
        way in 1usize..3,
    ) {
        let mut bytes = (content.len() as u32).to_le_bytes()[..3].to_vec();
        bytes.push(0);
        bytes.extend_from_slice(&length.to_le_bytes()[..3]);
        bytes.extend_from_slice(&content);
        let mut channel = channel(reading(bytes), ways()[way]);
        let _ = channel.read_packet(&mut Vec::new(), EACH);
    }
}

#[test]
fn a_long_payload_goes_through_every_way() {
    for compression in ways() {
        for length in [0xff_ffff, 0x200_0001] {
            let payloads = [vec![7; length], b"next".to_vec()];
            let mut channel = channel(reading(sent(&payloads, compression)), compression);
            let mut payload = Vec::new();
            for expected in &payloads {
                channel.read_packet(&mut payload, EACH).unwrap();
                assert!(payload == *expected, "{compression:?} {length}");
            }
        }
    }
}

/// The error that reading those bytes ends with.
fn refusal(bytes: &[u8], compression: Option<CompressionAlgorithm>, limit: usize) -> String {
    let mut channel = channel(reading(bytes.to_vec()), compression);
    channel.max_packet_bytes = limit;
    channel.read_packet(&mut Vec::new(), EACH).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_a_packet_is_refused() {
    let check = |bytes: &[u8], compression, words: &str| {
        let refusal = refusal(bytes, compression, 100);
        assert!(refusal.contains(words), "{refusal}");
    };
    let zlib = Some(CompressionAlgorithm::Zlib);
    check(&[1, 0, 0, 1, 3], None, "out of order");
    check(&[101, 0, 0, 0], None, "max_allowed_packet");
    check(&[255, 255, 255, 0], None, "max_allowed_packet");
    check(&[1, 0, 0, 7, 0, 0, 0, 3], zlib, "out of order");
    check(&[3, 0, 0, 0, 9, 0, 0, 1, 2, 3], zlib, "uncompress");
    check(&[1, 0], None, "lost");
}

#[test]
fn a_frame_that_grows_beyond_its_word_is_refused() {
    let payload = vec![vec![0; 100_000]];
    for compression in [CompressionAlgorithm::Zlib, CompressionAlgorithm::Zstd] {
        let mut frame = sent(&payload, Some(compression));
        frame[4..7].copy_from_slice(&[100, 0, 0]);
        assert!(refusal(&frame, Some(compression), 1 << 20).contains("uncompress"));
    }
}

#[test]
fn silence_is_idleness_and_nothing_of_a_packet_is_lost_by_it() {
    let first = [&[255, 255, 255, 0][..], &vec![7; MAX_PAYLOAD_LENGTH]].concat();
    let bytes = [&first[..], &[2, 0, 0, 1, 8, 9]].concat();
    // The pause is before the packet, in its header, in a part, or between two parts.
    for stop in [1, 3, 5, first.len() - 1, first.len(), first.len() + 2, bytes.len() - 1] {
        let stream = Pausing { rest: bytes.clone(), until_pause: stop };
        let mut channel = channel(stream, None);
        let mut payload = Vec::new();
        let mut pauses = 0;
        while channel.read_packet(&mut payload, Patience::Slice).unwrap() == Received::Idle {
            assert!(channel.has_input(), "{stop}");
            pauses += 1;
        }
        assert_eq!((pauses, payload.len()), (1, MAX_PAYLOAD_LENGTH + 2), "{stop}");
        assert_eq!(payload[MAX_PAYLOAD_LENGTH - 1..], [7, 8, 9]);
        assert!(!channel.has_input());
    }
}

/// A stream that pauses for a slice once a number of bytes have been read.
struct Pausing {
    rest: Vec<u8>,
    until_pause: usize,
}

impl ByteStream for Pausing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.until_pause == 0 {
            self.until_pause = usize::MAX;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = buffer.len().min(self.rest.len()).min(self.until_pause);
        buffer[..length].copy_from_slice(&self.rest[..length]);
        self.rest.drain(..length);
        self.until_pause -= length;
        Ok(length)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
}

#[test]
fn a_packet_without_room_is_passed_over_and_the_next_one_taken() {
    // Other tests of this process ask the same keeper; none of their packets has this length.
    const LARGE: usize = 3_000_017;
    struct Room;
    impl Keeper for Room {
        fn has_room(&self, size_bytes: u64, _: u64) -> bool {
            size_bytes != LARGE as u64
        }
    }
    let keeper: Arc<dyn Keeper> = Arc::new(Room);
    memory::install(Arc::clone(&keeper));
    let large = [&[3][..], &vec![b'x'; LARGE - 1]].concat();
    let bytes = sent(&[large], None);
    let mut channel = channel(reading([&bytes[..], &[1, 0, 0, 1, 14]].concat()), None);
    let mut payload = Vec::new();
    let refused = channel.read_packet(&mut payload, EACH).unwrap();
    assert_eq!(refused, Received::Refused(NoRoom(LARGE as u64)));
    assert_eq!(payload, [&b"\x03"[..], &[b'x'; KEPT_OF_REFUSED_BYTES - 1]].concat());
    assert_eq!(channel.read_packet(&mut payload, EACH).unwrap(), Received::Packet);
    assert_eq!(payload, [14]);
    memory::uninstall(&keeper);
}

#[test]
fn a_packet_that_stands_still_or_trickles_runs_out_of_time() {
    let stream = Hesitant { stream: reading(vec![9, 0, 0, 0, 5]), step: 1, silent: false };
    let mut channel = channel(stream, None);
    let mut read =
        |patience| channel.read_packet(&mut Vec::new(), patience).unwrap_err().to_string();
    // Every other read returns a byte; the deadline ends the wait all the same.
    assert!(read(Patience::Deadline(Duration::ZERO)).contains("timeout"));
    assert!(read(Patience::Each(Duration::ZERO)).contains("timeout"));
}

#[test]
fn a_connection_that_is_told_to_close_neither_waits_nor_stands_still() {
    struct Silent;
    impl ByteStream for Silent {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }
    let closing = Arc::new(AtomicBool::new(true));
    let mut channel = Channel::new(Box::new(Silent), Arc::new(SystemClock), closing);
    let forever = Patience::Each(Duration::from_secs(3600));
    assert!(matches!(channel.read_packet(&mut Vec::new(), forever), Err(WireError::Lost(_))));
    channel.output.begin().put(b"reply");
    channel.output.commit();
    assert!(matches!(channel.flush(), Err(WireError::Lost(_))));
}
