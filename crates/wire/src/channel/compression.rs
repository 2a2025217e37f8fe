//! The compressed protocol: a second framing below packets.
//!
//! ```text
//!   3 bytes             1 byte     3 bytes
//!   length of content   sequence   length before compression, 0 if it is not compressed   content
//! ```
//!
//! A frame holds any piece of the stream of packets, not necessarily whole packets. Content is
//! decompressed as it arrives. The last piece of a frame is held back until the whole frame has
//! proved correct.

use std::io::Write;

use firn_base::memory::{self, Promise};
use flate2::write::{ZlibDecoder, ZlibEncoder};

use super::Sender;
use super::input::Input;
use super::output::Output;
use super::stream::ByteStream;
use crate::error::{ServerError, WireError};
use crate::packet::MAX_PAYLOAD_LENGTH;

const FRAME_HEADER_LENGTH: usize = 7;

/// Below this, compression costs more than it saves.
const MIN_COMPRESSED_BYTES: usize = 50;

/// Content bytes of one frame: the maximum, because some clients accept no packet that spans more
/// than two frames.
const MAX_FRAME_BYTES: usize = MAX_PAYLOAD_LENGTH;

/// How content is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionAlgorithm {
    Zlib,
    Zstd,
}

/// How much of a frame is decompressed at a time.
const PIECE_BYTES: usize = 4 << 10;

/// The largest window of Zstandard that is accepted: 16 MiB, more than one frame's content.
const WINDOW_LOG_MAX: u32 = 24;

/// The compression of one connection.
pub(crate) struct Compression {
    algorithm: CompressionAlgorithm,
    level: i32,
    raw: Input,
    /// The frame whose content is arriving.
    frame: Option<Frame>,
    /// The next frame's number, in either direction.
    pub(crate) sequence: u8,
}

impl Compression {
    pub(crate) fn new(algorithm: CompressionAlgorithm, level: i32) -> Compression {
        Compression { algorithm, level, raw: Input::default(), frame: None, sequence: 0 }
    }

    /// Whether no part of a frame has been received.
    pub(crate) fn is_quiet(&self) -> bool {
        self.raw.len() == 0 && self.frame.is_none()
    }

    pub(crate) fn release(&mut self) {
        self.raw.release();
    }

    /// Moves received content to `plain`, or receives more if there is none.
    pub(crate) fn fill(
        &mut self,
        stream: &mut dyn ByteStream,
        plain: &mut Input,
    ) -> Result<(), WireError> {
        if let Some(frame) = &mut self.frame {
            if frame.missing == 0 {
                let frame = self.frame.take().and_then(|frame| frame.finish(plain));
                return frame.ok_or(WireError::Fatal(ServerError::cannot_uncompress()));
            }
            if self.raw.len() > 0 {
                return frame
                    .advance(&mut self.raw, plain)
                    .ok_or(WireError::Fatal(ServerError::cannot_uncompress()));
            }
        } else if self.raw.len() >= FRAME_HEADER_LENGTH {
            return self.begin_frame();
        }
        if self.raw.fill_from(stream)? == 0 { Err(WireError::closed()) } else { Ok(()) }
    }

    fn begin_frame(&mut self) -> Result<(), WireError> {
        let [a, b, c, sequence, d, e, f] = self.raw.take_array();
        if sequence != self.sequence {
            return Err(WireError::Fatal(ServerError::packets_out_of_order()));
        }
        self.sequence = sequence.wrapping_add(1);
        let missing = u32::from_le_bytes([a, b, c, 0]) as usize;
        let plain_length = u32::from_le_bytes([d, e, f, 0]) as usize;
        let mut promise = Promise::default();
        let decoder = match self.algorithm {
            _ if plain_length == 0 => Decoder::Plain,
            CompressionAlgorithm::Zlib => Decoder::Zlib(ZlibDecoder::new(Vec::new())),
            CompressionAlgorithm::Zstd => {
                // The decoder keeps the content that it has decompressed, because later content
                // refers to it.
                promise = memory::ask(plain_length)
                    .map_err(|no_room| WireError::Fatal(ServerError::out_of_memory(no_room)))?;
                Decoder::zstd().map_err(|_| WireError::Fatal(ServerError::cannot_uncompress()))?
            }
        };
        let held = Vec::new();
        self.frame = Some(Frame { missing, plain_length, decoder, held, _promise: promise });
        Ok(())
    }

    /// Sends the committed packets in frames.
    pub(crate) fn send(
        &mut self,
        output: &Output,
        sender: &mut Sender<'_>,
    ) -> Result<(), WireError> {
        let (mut content, mut length) = (Vec::new(), 0);
        for mut piece in output.committed() {
            while !piece.is_empty() {
                let (now, later) = piece.split_at(piece.len().min(MAX_FRAME_BYTES - length));
                content.push(now);
                length += now.len();
                piece = later;
                if length == MAX_FRAME_BYTES {
                    self.send_frame(&content, length, sender)?;
                    (content, length) = (Vec::new(), 0);
                }
            }
        }
        if length > 0 { self.send_frame(&content, length, sender) } else { Ok(()) }
    }

    fn send_frame(
        &mut self,
        content: &[&[u8]],
        length: usize,
        sender: &mut Sender<'_>,
    ) -> Result<(), WireError> {
        if let Some(mut frame) = self.compressed(content, length) {
            let header = self.header(frame.len() - FRAME_HEADER_LENGTH, length);
            frame[..FRAME_HEADER_LENGTH].copy_from_slice(&header);
            return sender.send(&frame);
        }
        let header = self.header(length, 0);
        // A short frame is sent uncompressed.
        if length < MIN_COMPRESSED_BYTES {
            return sender.send(&[&header, &content.concat()[..]].concat());
        }
        sender.send(&header)?;
        content.iter().try_for_each(|piece| sender.send(piece))
    }

    /// A frame with the content compressed, its header still blank; `None` if that makes it no
    /// shorter, or if there is no memory for it.
    fn compressed(&self, content: &[&[u8]], length: usize) -> Option<Vec<u8>> {
        if length < MIN_COMPRESSED_BYTES {
            return None;
        }
        let _promise = memory::ask(length).ok()?;
        let bytes = vec![0; FRAME_HEADER_LENGTH];
        let bounded = Bounded { bytes, limit: FRAME_HEADER_LENGTH + length - 1 };
        let finished = match self.algorithm {
            CompressionAlgorithm::Zlib => {
                let mut encoder = ZlibEncoder::new(bounded, flate2::Compression::default());
                content.iter().try_for_each(|piece| encoder.write_all(piece)).ok()?;
                encoder.finish()
            }
            CompressionAlgorithm::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(bounded, self.level).ok()?;
                encoder.set_pledged_src_size(Some(length as u64)).ok()?;
                content.iter().try_for_each(|piece| encoder.write_all(piece)).ok()?;
                encoder.finish()
            }
        };
        finished.ok().map(|bounded| bounded.bytes)
    }

    fn header(&mut self, length: usize, plain_length: usize) -> [u8; FRAME_HEADER_LENGTH] {
        let [a, b, c, _] = (length as u32).to_le_bytes();
        let [d, e, f, _] = (plain_length as u32).to_le_bytes();
        let header = [a, b, c, self.sequence, d, e, f];
        self.sequence = self.sequence.wrapping_add(1);
        header
    }
}

/// A frame that has arrived in part.
struct Frame {
    /// How much of the content has not been taken.
    missing: usize,
    /// Bytes of the announced content that were not decompressed yet; 0 for uncompressed content.
    plain_length: usize,
    decoder: Decoder,
    /// Decompressed, and not handed on yet.
    held: Vec<u8>,
    _promise: Promise,
}

impl Frame {
    /// Consumes some of the content. `None` if the content contradicts the header.
    fn advance(&mut self, raw: &mut Input, plain: &mut Input) -> Option<()> {
        let piece = raw.peek();
        let piece = &piece[..piece.len().min(self.missing)];
        let taken = match &mut self.decoder {
            Decoder::Plain => {
                plain.push(piece);
                piece.len()
            }
            Decoder::Zlib(decoder) => decoder.write(&piece[..piece.len().min(PIECE_BYTES)]).ok()?,
            Decoder::Zstd(decoder) => decoder.write(&piece[..piece.len().min(PIECE_BYTES)]).ok()?,
        };
        // Bytes behind the end of a compressed stream do not belong to it.
        if taken == 0 {
            return None;
        }
        raw.pass_over(taken);
        self.missing -= taken;
        let decompressed = match &mut self.decoder {
            Decoder::Plain => return Some(()),
            Decoder::Zlib(decoder) => std::mem::take(decoder.get_mut()),
            Decoder::Zstd(decoder) => std::mem::take(decoder.get_mut()),
        };
        self.hold(decompressed, plain)
    }

    /// Passes on the piece that was held back, now that more has arrived.
    fn hold(&mut self, decompressed: Vec<u8>, plain: &mut Input) -> Option<()> {
        if !decompressed.is_empty() {
            self.plain_length = self.plain_length.checked_sub(decompressed.len())?;
            plain.push(&self.held);
            self.held = decompressed;
        }
        Some(())
    }

    /// Passes on the rest. `None` if the content contradicts the header.
    fn finish(mut self, plain: &mut Input) -> Option<()> {
        let rest = match std::mem::replace(&mut self.decoder, Decoder::Plain) {
            Decoder::Plain => return Some(()),
            Decoder::Zlib(decoder) => decoder.finish().ok()?,
            Decoder::Zstd(mut decoder) => {
                decoder.flush().ok()?;
                decoder.into_inner()
            }
        };
        self.hold(rest, plain)?;
        (self.plain_length == 0).then(|| plain.push(&self.held))
    }
}

/// The decompressor of a frame.
enum Decoder {
    /// The content is not compressed.
    Plain,
    Zlib(ZlibDecoder<Vec<u8>>),
    Zstd(zstd::stream::write::Decoder<'static, Vec<u8>>),
}

impl Decoder {
    fn zstd() -> std::io::Result<Decoder> {
        let mut decoder = zstd::stream::write::Decoder::new(Vec::new())?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        Ok(Decoder::Zstd(decoder))
    }
}

/// A target that fails once more bytes come than the frame has announced.
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
