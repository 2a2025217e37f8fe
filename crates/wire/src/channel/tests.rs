use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_base::clock::SystemClock;
use proptest::prelude::*;

use super::{ByteStream, Channel, CompressionAlgorithm, MemoryStream, Patience, Received};
use crate::error::WireError;
use crate::packet::PayloadWriter;

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

/// A stream that gives a few bytes at a time, and says in between that there are none.
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
fn silence_is_idleness_only_before_a_packet() {
    let hesitant =
        |bytes: &[u8]| Hesitant { stream: reading(bytes.to_vec()), step: 2, silent: false };
    let patience = Patience::FirstByteThenEach(Duration::from_millis(1));
    let mut channel = channel(hesitant(&[1, 0, 0, 0, 5]), None);
    let mut payload = Vec::new();
    assert_eq!(channel.read_packet(&mut payload, patience).unwrap(), Received::Idle);
    let patience = Patience::FirstByteThenEach(Duration::from_secs(60));
    assert_eq!(channel.read_packet(&mut payload, patience).unwrap(), Received::Packet);
    assert_eq!(payload, [5]);
}

#[test]
fn a_packet_that_stands_still_or_trickles_runs_out_of_time() {
    let stream = Hesitant { stream: reading(vec![9, 0, 0, 0, 5]), step: 1, silent: false };
    let mut channel = channel(stream, None);
    let mut read =
        |patience| channel.read_packet(&mut Vec::new(), patience).unwrap_err().to_string();
    // Every other read brings a byte, and still the time is up.
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
