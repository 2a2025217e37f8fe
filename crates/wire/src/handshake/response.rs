//! The client's answer to the greeting, and `COM_CHANGE_USER`, which has the same content.

use crate::flags::Capabilities;
use crate::packet::{Malformed, PayloadReader};

/// How many connection attributes are kept of one client.
const MAX_ATTRIBUTES: usize = 512;

/// The compression level of zstd for a client that names no valid one.
const DEFAULT_ZSTD_LEVEL: u8 = 3;

/// A client's first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientHello {
    /// TLS begins; the response follows.
    SslRequest,
    Response(HandshakeResponse),
}

/// The user and the authentication that the client claims.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HandshakeResponse {
    pub(crate) capabilities: Capabilities,
    pub(crate) collation: u16,
    pub(crate) user: String,
    pub(crate) auth_response: Vec<u8>,
    pub(crate) schema: Option<String>,
    /// The plugin that the response was made with.
    pub(crate) plugin: Option<String>,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) zstd_level: u8,
}

impl ClientHello {
    pub(crate) fn decode(payload: &[u8]) -> Result<ClientHello, Malformed> {
        let mut reader = PayloadReader::new(payload);
        let capabilities = Capabilities::from_bits_retain(reader.u32()?);
        if !capabilities.contains(Capabilities::PROTOCOL_41) {
            return Err(Malformed);
        }
        let _max_packet = reader.u32()?;
        let collation = u16::from(reader.u8()?);
        reader.take(23)?;
        if capabilities.contains(Capabilities::SSL) && reader.is_empty() {
            return Ok(ClientHello::SslRequest);
        }
        let mut response = HandshakeResponse { capabilities, collation, ..Default::default() };
        response.decode_user(&mut reader)?;
        Ok(ClientHello::Response(response))
    }
}

impl HandshakeResponse {
    fn decode_user(&mut self, reader: &mut PayloadReader<'_>) -> Result<(), Malformed> {
        self.user = text(reader.zero_terminated()?);
        self.auth_response = if self.has(Capabilities::PLUGIN_AUTH_LENENC_DATA) {
            reader.length_encoded_bytes()?.to_vec()
        } else if self.has(Capabilities::SECURE_CONNECTION) {
            let length = usize::from(reader.u8()?);
            reader.take(length)?.to_vec()
        } else {
            reader.zero_terminated()?.to_vec()
        };
        if self.has(Capabilities::CONNECT_WITH_DB) && !reader.is_empty() {
            self.schema = named(reader.zero_terminated_or_rest());
        }
        self.decode_plugin(reader)?;
        self.zstd_level = match reader.u8() {
            Ok(level @ 1..=22) => level,
            _ => DEFAULT_ZSTD_LEVEL,
        };
        Ok(())
    }

    fn has(&self, capability: Capabilities) -> bool {
        self.capabilities.contains(capability)
    }

    fn decode_plugin(&mut self, reader: &mut PayloadReader<'_>) -> Result<(), Malformed> {
        if self.has(Capabilities::PLUGIN_AUTH) && !reader.is_empty() {
            self.plugin = named(reader.zero_terminated_or_rest());
        }
        if self.has(Capabilities::CONNECT_ATTRS) && !reader.is_empty() {
            self.attributes = decode_attributes(reader.length_encoded_bytes()?)?;
        }
        Ok(())
    }
}

/// `COM_CHANGE_USER` without its code. The capabilities stay as they were.
pub(crate) fn decode_change_user(
    payload: &[u8],
    capabilities: Capabilities,
) -> Result<HandshakeResponse, Malformed> {
    let mut reader = PayloadReader::new(payload);
    let mut response = HandshakeResponse { capabilities, ..Default::default() };
    response.user = text(reader.zero_terminated()?);
    response.auth_response = if response.has(Capabilities::SECURE_CONNECTION) {
        let length = usize::from(reader.u8()?);
        reader.take(length)?.to_vec()
    } else {
        reader.zero_terminated()?.to_vec()
    };
    response.schema = named(reader.zero_terminated_or_rest());
    if !reader.is_empty() {
        response.collation = reader.u16()?;
    }
    response.decode_plugin(&mut reader)?;
    Ok(response)
}

fn decode_attributes(bytes: &[u8]) -> Result<Vec<(String, String)>, Malformed> {
    let mut reader = PayloadReader::new(bytes);
    let mut attributes = Vec::new();
    while !reader.is_empty() && attributes.len() < MAX_ATTRIBUTES {
        let name = text(reader.length_encoded_bytes()?);
        attributes.push((name, text(reader.length_encoded_bytes()?)));
    }
    Ok(attributes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn named(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| text(bytes))
}
