//! The compressed protocol: a second framing below packets.
//!
//! ```text
//!   3 bytes             1 byte     3 bytes
//!   length of content   sequence   length before compression, 0 if it is not compressed   content
//! ```
//!
//! A frame holds any piece of the stream of packets, not necessarily whole ones.

use std::io::Write;

use firn_base::memory;
use flate2::write::{ZlibDecoder, ZlibEncoder};

use super::Sender;
use super::input::Input;
use super::stream::ByteStream;
use crate::error::{ServerError, WireError};
use crate::packet::MAX_PAYLOAD_LENGTH;

const FRAME_HEADER_LENGTH: usize = 7;

/// Below this, compression costs more than it saves.
const MIN_COMPRESSED_BYTES: usize = 50;

/// How much goes into one frame: as much as fits, since there are clients that take no packet from more
/// than two frames.
const MAX_FRAME_BYTES: usize = MAX_PAYLOAD_LENGTH;

/// How content is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionAlgorithm {
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

/// The compression of one connection.
pub(crate) struct Compression {
    algorithm: CompressionAlgorithm,
    level: i32,
    raw: Input,
    /// The next frame's number, in either direction.
    pub(crate) sequence: u8,
}

impl Compression {
    pub(crate) fn new(algorithm: CompressionAlgorithm, level: i32) -> Compression {
        Compression { algorithm, level, raw: Input::default(), sequence: 0 }
    }

    /// No part of a frame has been received.
    pub(crate) fn is_quiet(&self) -> bool {
        self.raw.len() == 0
    }

    pub(crate) fn release(&mut self) {
        self.raw.release();
    }

    /// Takes a frame's content over to `plain` if a whole frame is there; receives some more otherwise.
    pub(crate) fn fill(
        &mut self,
        stream: &mut dyn ByteStream,
        plain: &mut Input,
    ) -> Result<(), WireError> {
        if let Some(length) = self.frame_length()
            && self.raw.len() >= length
        {
            return self.take_frame(length, plain);
        }
        if self.raw.fill_from(stream)? == 0 { Err(WireError::closed()) } else { Ok(()) }
    }

    fn frame_length(&self) -> Option<usize> {
        let [a, b, c, ..] = *self.raw.peek().first_chunk::<FRAME_HEADER_LENGTH>()?;
        Some(FRAME_HEADER_LENGTH + u32::from_le_bytes([a, b, c, 0]) as usize)
    }

    fn take_frame(&mut self, length: usize, plain: &mut Input) -> Result<(), WireError> {
        let [_, _, _, sequence, a, b, c, content @ ..] = &self.raw.peek()[..length] else {
            return Err(WireError::Fatal(ServerError::cannot_uncompress()));
        };
        let (sequence, plain_length) = (*sequence, u32::from_le_bytes([*a, *b, *c, 0]) as usize);
        if sequence != self.sequence {
            return Err(WireError::Fatal(ServerError::packets_out_of_order()));
        }
        self.sequence = sequence.wrapping_add(1);
        // Decompressed, and once more in the queue of what has been received.
        let _promise = memory::ask(2 * plain_length.max(content.len()))
            .map_err(|no_room| WireError::Fatal(ServerError::out_of_memory(no_room)))?;
        if plain_length > 0 {
            let content = self
                .decompress(content, plain_length)
                .ok_or(WireError::Fatal(ServerError::cannot_uncompress()))?;
            plain.push(&content);
        } else {
            plain.push(content);
        }
        self.raw.pass_over(length);
        Ok(())
    }

    /// The content, if it is of that length exactly.
    fn decompress(&self, content: &[u8], length: usize) -> Option<Vec<u8>> {
        let plain = match self.algorithm {
            CompressionAlgorithm::Zlib => {
                let mut decoder = ZlibDecoder::new(Bounded { bytes: Vec::new(), limit: length });
                decoder.write_all(content).ok()?;
                decoder.finish().ok()?.bytes
            }
            CompressionAlgorithm::Zstd => zstd::bulk::decompress(content, length).ok()?,
        };
        (plain.len() == length).then_some(plain)
    }

    /// Sends `bytes`, framed.
    pub(crate) fn send(&mut self, bytes: &[u8], sender: &mut Sender<'_>) -> Result<(), WireError> {
        let mut frame = Vec::new();
        for piece in bytes.chunks(MAX_FRAME_BYTES) {
            frame.clear();
            let compressed = self.compress(piece);
            match compressed {
                Some(content) => self.put_frame(&mut frame, &content, piece.len()),
                None => self.put_frame(&mut frame, piece, 0),
            }
            sender.send(&frame)?;
        }
        Ok(())
    }

    /// The piece compressed, if that makes it shorter.
    fn compress(&self, piece: &[u8]) -> Option<Vec<u8>> {
        if piece.len() < MIN_COMPRESSED_BYTES {
            return None;
        }
        let compressed = match self.algorithm {
            CompressionAlgorithm::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(piece).ok()?;
                encoder.finish().ok()?
            }
            CompressionAlgorithm::Zstd => zstd::bulk::compress(piece, self.level).ok()?,
        };
        (compressed.len() < piece.len()).then_some(compressed)
    }

    fn put_frame(&mut self, frames: &mut Vec<u8>, content: &[u8], plain_length: usize) {
        let length = (content.len() as u32).to_le_bytes();
        frames.extend_from_slice(&length[..3]);
        frames.push(self.sequence);
        frames.extend_from_slice(&(plain_length as u32).to_le_bytes()[..3]);
        frames.extend_from_slice(content);
        self.sequence = self.sequence.wrapping_add(1);
    }
}

/// Takes no more than was promised, so that a small frame cannot fill the memory.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
