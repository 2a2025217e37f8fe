//! Every decoder, applied to the same bytes: the entry point of the fuzzer.

#![allow(clippy::disallowed_types, reason = "bytes of a fuzz target, which no clock concerns")]

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_base::clock::SystemClock;

use crate::auth::{caching_sha2, native};
use crate::channel::{Channel, CompressionAlgorithm, MemoryStream, Patience};
use crate::command::{Bound, Command, CommandCode, Statements, take_attributes};
use crate::flags::Capabilities;
use crate::handshake::{ClientHello, decode_change_user};
use crate::packet::PayloadReader;

/// Decodes `bytes` with every decoder. It returns, whatever the bytes are.
pub fn decode_as_everything(bytes: &[u8]) {
    let _ = ClientHello::decode(bytes);
    for capabilities in [Capabilities::empty(), Capabilities::all()] {
        let _ = decode_change_user(bytes, capabilities);
    }
    decode_command(bytes);
    let _ = take_attributes(&mut PayloadReader::new(bytes));
    decode_executions(bytes);
    for algorithm in [None, Some(CompressionAlgorithm::Zlib), Some(CompressionAlgorithm::Zstd)] {
        decode_stream(bytes, algorithm);
    }
    let _ = native::verify(bytes, bytes, bytes);
    // Checking a password is slow, so bytes that may be a stored string are left out.
    if !bytes.starts_with(b"$A$") {
        let _ = caching_sha2::verify_password(bytes, b"x");
    }
}

fn decode_command(bytes: &[u8]) {
    if let [code, rest @ ..] = bytes
        && let Some(code) = CommandCode::from_code(*code)
    {
        let _ = Command::decode(code, rest);
    }
}

/// Decodes the same values twice; the second time, the types of the first are known.
fn decode_executions(bytes: &[u8]) {
    for (parameters, has_attributes) in [(0, true), (3, false), (9, true)] {
        let mut statements = Statements::default();
        let number = statements.next_number();
        statements.insert(number, parameters);
        for flags in [0, 8] {
            let Ok(statement) = statements.get(number, "") else { return };
            statement.add_long_data(u16::from(bytes.first().copied().unwrap_or(0)), bytes, 100);
            let long_data = statement.take_long_data();
            let mut values = PayloadReader::new(bytes);
            let _ = statement.bind(
                &mut values,
                flags,
                has_attributes,
                &long_data,
                &mut Bound::default(),
            );
        }
    }
}

fn decode_stream(bytes: &[u8], algorithm: Option<CompressionAlgorithm>) {
    let stream = MemoryStream { input: Cursor::new(bytes.to_vec()), ..MemoryStream::default() };
    let closing = Arc::new(AtomicBool::new(false));
    let mut channel = Channel::new(Box::new(stream), Arc::new(SystemClock), closing);
    if let Some(algorithm) = algorithm {
        channel.compress(algorithm, 3);
    }
    let mut payload = Vec::new();
    while channel.read_packet(&mut payload, Patience::Each(Duration::ZERO)).is_ok() {
        decode_command(&payload);
    }
}

#[cfg(test)]
mod tests;
