//! A whole conversation inside compressed frames, by both algorithms.

mod support;

use std::io::{Read, Write};

use firn_wire::Capabilities;
use support::{Client, Running};

/// A client whose packets go in frames.
struct Framed {
    client: Client,
    zstd: bool,
    frame: u8,
    received: Vec<u8>,
}

impl Framed {
    fn log_in(running: &Running, capability: Capabilities) -> Framed {
        let mut client = running.connect();
        client.capabilities |= capability;
        let mut response = client.response("root", b"", "caching_sha2_password");
        // The level that zstd compresses with.
        response.push(5);
        client.write(&response);
        assert_eq!(client.read()[0], 0, "the last packet that is not compressed");
        let zstd = capability == Capabilities::COMPRESS_ZSTD;
        Framed { client, zstd, frame: 0, received: Vec::new() }
    }

    /// Sends packets in one frame, compressed if that is asked for.
    fn send(&mut self, packets: &[u8], compressed: bool) {
        let (content, length) = match (compressed, self.zstd) {
            (false, _) => (packets.to_vec(), 0),
            (true, true) => (zstd::bulk::compress(packets, 3).unwrap(), packets.len()),
            (true, false) => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(packets).unwrap();
                (encoder.finish().unwrap(), packets.len())
            }
        };
        let mut frame = (content.len() as u32).to_le_bytes()[..3].to_vec();
        frame.push(self.frame);
        frame.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        frame.extend_from_slice(&content);
        self.client.stream.write_all(&frame).unwrap();
        self.frame += 1;
    }

    fn command(&mut self, text: &str, compressed: bool) {
        self.frame = 0;
        let mut packet = (text.len() as u32 + 1).to_le_bytes().to_vec();
        packet.push(3);
        packet.extend_from_slice(text.as_bytes());
        self.send(&packet, compressed);
    }

    fn read_frame(&mut self) {
        let mut header = [0; 7];
        self.client.stream.read_exact(&mut header).unwrap();
        let [a, b, c, frame, d, e, f] = header;
        assert_eq!(frame, self.frame, "frames in order");
        self.frame += 1;
        let mut content = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        self.client.stream.read_exact(&mut content).unwrap();
        let length = u32::from_le_bytes([d, e, f, 0]) as usize;
        if length > 0 {
            content = match self.zstd {
                true => zstd::bulk::decompress(&content, length).unwrap(),
                false => {
                    let mut plain = Vec::new();
                    flate2::read::ZlibDecoder::new(&content[..]).read_to_end(&mut plain).unwrap();
                    plain
                }
            };
            assert_eq!(content.len(), length);
        }
        self.received.extend(content);
    }

    /// The next packet's payload.
    fn read(&mut self) -> Vec<u8> {
        loop {
            if let [a, b, c, _, ..] = self.received[..] {
                let end = 4 + u32::from_le_bytes([a, b, c, 0]) as usize;
                if self.received.len() >= end {
                    return self.received.drain(..end).skip(4).collect();
                }
            }
            self.read_frame();
        }
    }
}

#[test]
fn a_conversation_in_frames() {
    for capability in [Capabilities::COMPRESS, Capabilities::COMPRESS_ZSTD] {
        let running = Running::new();
        let mut client = Framed::log_in(&running, capability);
        for compressed in [false, true] {
            client.command("one", compressed);
            assert_eq!(client.read(), [1]);
            client.read();
            assert_eq!(client.read(), b"\x011");
            assert_eq!(client.read()[0], 0xfe);
        }
        // No other thread may number frames.
        client.command("late first", false);
        assert!(client.read().ends_with(b"at once"));
        client.command("big 17000000", true);
        let lengths: Vec<_> = (0..4).map(|_| client.read().len()).collect();
        // The second packet of the row follows one that is full.
        assert_eq!((lengths[2], lengths[3]), (0xff_ffff, 17_000_009 - 0xff_ffff));
        assert_eq!(client.read()[0], 0xfe);
        client.command("rows 3000", true);
        (0..3).for_each(|_| drop(client.read()));
        assert!((0..3000).all(|_| client.read()[0] != 0xfe));
        assert_eq!(client.read()[0], 0xfe);
    }
}

#[test]
fn a_file_in_frames() {
    let running = Running::new();
    let mut client = Framed::log_in(&running, Capabilities::COMPRESS);
    client.command("infile data", false);
    assert_eq!(client.read(), b"\xfbdata");
    client.frame = 2;
    let mut packets = vec![0xe8, 3, 0, 2];
    packets.extend([b'x'; 1000]);
    packets.extend([0, 0, 0, 3]);
    client.send(&packets, true);
    client.frame = 3;
    assert_eq!(client.read()[..4], [0, 0xfc, 0xe8, 3]);
}

#[test]
fn a_frame_that_cannot_be_ends_the_connection() {
    let running = Running::new();
    let mut client = Framed::log_in(&running, Capabilities::COMPRESS);
    client.client.stream.write_all(b"\x03\0\0\0\x09\0\0abc").unwrap();
    client.frame = 1;
    assert_eq!(client.read()[..3], [0xff, 0x85, 0x04]);
    assert!(client.client.is_closed());
}
