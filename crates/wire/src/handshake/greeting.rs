//! The server's first packet.

use crate::auth::{AuthPlugin, SCRAMBLE_LENGTH};
use crate::flags::{Capabilities, Status};
use crate::packet::PayloadWriter;

/// What this server can do; [`Capabilities::SSL`] is added where there is a certificate.
pub(crate) const SUPPORTED: Capabilities = Capabilities::LONG_PASSWORD
    .union(Capabilities::FOUND_ROWS)
    .union(Capabilities::LONG_FLAG)
    .union(Capabilities::CONNECT_WITH_DB)
    .union(Capabilities::NO_SCHEMA)
    .union(Capabilities::COMPRESS)
    .union(Capabilities::ODBC)
    .union(Capabilities::LOCAL_FILES)
    .union(Capabilities::IGNORE_SPACE)
    .union(Capabilities::PROTOCOL_41)
    .union(Capabilities::INTERACTIVE)
    .union(Capabilities::IGNORE_SIGPIPE)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::RESERVED)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::MULTI_STATEMENTS)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::CONNECT_ATTRS)
    .union(Capabilities::PLUGIN_AUTH_LENENC_DATA)
    .union(Capabilities::EXPIRED_PASSWORDS)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::DEPRECATE_EOF)
    .union(Capabilities::COMPRESS_ZSTD)
    .union(Capabilities::QUERY_ATTRIBUTES);

/// The first eight bytes of the challenge are separate from the others.
const FIRST_PART: usize = 8;

pub(crate) fn put_greeting(
    buffer: &mut Vec<u8>,
    server_version: &str,
    connection_id: u32,
    scramble: &[u8; SCRAMBLE_LENGTH],
    capabilities: Capabilities,
    collation: u8,
) {
    let [low, low_high, high, high_high] = capabilities.bits().to_le_bytes();
    buffer.put_u8(10);
    buffer.put_zero_terminated(server_version.as_bytes());
    buffer.put_u32(connection_id);
    buffer.put_zero_terminated(&scramble[..FIRST_PART]);
    buffer.put(&[low, low_high, collation]);
    buffer.put_u16(Status::AUTOCOMMIT.bits());
    buffer.put(&[high, high_high]);
    buffer.put_u8(SCRAMBLE_LENGTH as u8 + 1);
    buffer.put(&[0; 10]);
    buffer.put_zero_terminated(&scramble[FIRST_PART..]);
    buffer.put_zero_terminated(AuthPlugin::default().name().as_bytes());
}
