//! What a link's messages consist of after the first ones. `docs/formats/link.md` describes the
//! bytes.
//!
//! A message of the network has one item or several: what several threads send at the same time
//! goes out in one write.

use crate::payload::{Body, Payload};

/// The length of an item's header in bytes.
pub(crate) const ITEM_HEADER_BYTES: usize = 24;

/// A service of a node. The crates that define services choose the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub u16);

/// What an item is for, without its payload. Requests go to the server, all that answers them comes
/// back with their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request that one reply or refusal answers.
    Call {
        number: u64,
        service: ServiceId,
        /// Microseconds that the caller still waits.
        time_left: u64,
    },
    /// A request without an answer.
    Cast {
        number: u64,
        service: ServiceId,
    },
    /// A request that pushes answer, and at the end one reply or refusal.
    Follow {
        number: u64,
        service: ServiceId,
        /// Bytes of pushes that the client takes at first.
        window: u64,
    },
    /// As [`Kind::Follow`], on a connection that has no other request before its end.
    Exchange {
        number: u64,
        service: ServiceId,
        /// Bytes of pushes that the client takes at first.
        window: u64,
    },
    Reply {
        number: u64,
    },
    /// The payload is a text.
    Refused {
        number: u64,
        code: u16,
    },
    Push {
        number: u64,
    },
    /// The client wants no answer any more.
    Cancel {
        number: u64,
    },
    /// More bytes may be sent: of pushes with this number, or of requests if it is 0.
    Credit {
        number: u64,
        bytes: u64,
    },
    Ping,
    Pong,
}

/// A received item.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    pub(crate) payload: Payload,
}

impl Item {
    /// What it counts for credit in bytes.
    pub(crate) fn cost(&self) -> u64 {
        cost(self.payload.len())
    }
}

/// What an item with this payload counts for credit in bytes.
pub(crate) fn cost(payload_bytes: usize) -> u64 {
    (ITEM_HEADER_BYTES + payload_bytes) as u64
}

/// The bytes are not items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of the link is malformed")]
pub(crate) struct Malformed;

impl Kind {
    /// The header of an item with this payload.
    pub(crate) fn header(self, body: &Body) -> [u8; ITEM_HEADER_BYTES] {
        let (tag, code, number, value) = match self {
            Kind::Call { number, service, time_left } => (1, service.0, number, time_left),
            Kind::Cast { number, service } => (2, service.0, number, 0),
            Kind::Follow { number, service, window } => (3, service.0, number, window),
            Kind::Reply { number } => (4, 0, number, 0),
            Kind::Refused { number, code } => (5, code, number, 0),
            Kind::Push { number } => (6, 0, number, 0),
            Kind::Cancel { number } => (7, 0, number, 0),
            Kind::Credit { number, bytes } => (8, 0, number, bytes),
            Kind::Ping => (9, 0, 0, 0),
            Kind::Pong => (10, 0, 0, 0),
            Kind::Exchange { number, service, window } => (11, service.0, number, window),
        };
        let mut header = [0; ITEM_HEADER_BYTES];
        header[0] = tag;
        header[2..4].copy_from_slice(&u16::to_le_bytes(code));
        header[4..8].copy_from_slice(&(body.len() as u32).to_le_bytes());
        header[8..16].copy_from_slice(&u64::to_le_bytes(number));
        header[16..].copy_from_slice(&u64::to_le_bytes(value));
        header
    }

    /// Reads a header; returns the payload's length too.
    fn decode(header: &[u8; ITEM_HEADER_BYTES]) -> Result<(Kind, usize), Malformed> {
        let word = |at: usize| {
            u64::from_le_bytes(header[at..at + 8].try_into().expect("a slice of eight bytes"))
        };
        let code = u16::from_le_bytes([header[2], header[3]]);
        let (number, value) = (word(8), word(16));
        let service = ServiceId(code);
        let kind = match header[0] {
            1 => Kind::Call { number, service, time_left: value },
            2 => Kind::Cast { number, service },
            3 => Kind::Follow { number, service, window: value },
            4 => Kind::Reply { number },
            5 => Kind::Refused { number, code },
            6 => Kind::Push { number },
            7 => Kind::Cancel { number },
            8 => Kind::Credit { number, bytes: value },
            9 => Kind::Ping,
            10 => Kind::Pong,
            11 => Kind::Exchange { number, service, window: value },
            _ => return Err(Malformed),
        };
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let has_payload =
            !matches!(kind, Kind::Cancel { .. } | Kind::Credit { .. } | Kind::Ping | Kind::Pong);
        if header[1] != 0
            || (length != 0 && !has_payload)
            || !kind.has_no_other_field(code, number, value)
        {
            return Err(Malformed);
        }
        Ok((kind, length))
    }

    /// Whether the fields that the kind does not have are zero.
    fn has_no_other_field(self, code: u16, number: u64, value: u64) -> bool {
        match self {
            Kind::Call { .. } | Kind::Follow { .. } | Kind::Exchange { .. } => number != 0,
            Kind::Cast { .. } | Kind::Refused { .. } => number != 0 && value == 0,
            Kind::Reply { .. } | Kind::Push { .. } | Kind::Cancel { .. } => {
                number != 0 && code == 0 && value == 0
            }
            Kind::Credit { .. } => code == 0,
            Kind::Ping | Kind::Pong => code == 0 && number == 0 && value == 0,
        }
    }
}

/// The items of a message, in their order. Payloads share the message's memory.
pub(crate) struct Items {
    message: Payload,
    position: usize,
}

impl Items {
    pub(crate) fn of(message: Vec<u8>) -> Items {
        Items { message: message.into(), position: 0 }
    }

    /// Whether the message has more than its first item.
    pub(crate) fn has_several(&self) -> bool {
        let header = self.message.first_chunk::<ITEM_HEADER_BYTES>();
        let first = header.and_then(|header| Kind::decode(header).ok());
        first.is_some_and(|(_, length)| ITEM_HEADER_BYTES + length < self.message.len())
    }

    fn read(&mut self) -> Result<Item, Malformed> {
        let rest = &self.message[self.position..];
        let (header, rest) = rest.split_first_chunk::<ITEM_HEADER_BYTES>().ok_or(Malformed)?;
        let (kind, length) = Kind::decode(header)?;
        if length > rest.len() {
            return Err(Malformed);
        }
        let start = self.position + ITEM_HEADER_BYTES;
        self.position = start + length;
        Ok(Item { kind, payload: self.message.part(start..start + length) })
    }
}

impl Iterator for Items {
    type Item = Result<Item, Malformed>;

    /// After an error the rest of the message has no meaning.
    fn next(&mut self) -> Option<Result<Item, Malformed>> {
        if self.position == self.message.len() {
            return None;
        }
        let item = self.read();
        if item.is_err() {
            self.position = self.message.len();
        }
        Some(item)
    }
}

/// Any bytes are refused, or read and written back unchanged. For fuzzing.
///
/// # Panics
/// If that does not hold.
pub fn check_any_bytes(bytes: &[u8]) {
    let Ok(items) = Items::of(bytes.to_vec()).collect::<Result<Vec<Item>, Malformed>>() else {
        return;
    };
    let mut written = Vec::new();
    for item in items {
        written.extend_from_slice(&item.kind.header(&Body::from(item.payload.clone())));
        written.extend_from_slice(&item.payload);
    }
    assert_eq!(written, bytes);
}

#[cfg(test)]
mod tests;
