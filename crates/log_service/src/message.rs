//! What the two ends say to each other. `docs/formats/log_service.md` describes the bytes.
//!
//! A message is a version, the message itself as `postcard` writes it, and for some of them log
//! bytes behind. The link's frame has the length and the checksum.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use firn_api::log_store::LogEpoch;
use firn_api::{FollowOptions, LogError, LogPiece, PageFilter};
use firn_base::{Extents, Lsn, PageId};
use firn_link::{Body, Payload};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the messages.
pub const VERSION: u8 = 2;
/// The longest name of a reader, in bytes.
pub const MAX_NAME_BYTES: usize = 255;
/// The most readers of one message.
pub const MAX_READERS: usize = 1024;
/// The longest time that a push may let log gather.
pub const MAX_GATHER_US: u32 = 1_000_000;
/// The most ranges of one filter.
pub const MAX_RANGES: usize = 65_536;

/// The bytes are not a message of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error(
        "the other node speaks version {0} of the log service, this one speaks {VERSION}; update the older one"
    )]
    Version(u8),
    /// The bytes end early, continue after the message, or say something impossible.
    #[error("a message of the log service is damaged: {0}")]
    Message(&'static str),
}

/// What a member has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions {
    /// The start of the log that the member keeps.
    pub truncated: Lsn,
    /// The end of the log that the member knows to be durable. Members differ.
    pub durable: Lsn,
}

/// A reader and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldReader {
    pub name: String,
    /// Log from here on is kept for it.
    pub held: Lsn,
    /// See [`FollowOptions::hold_limit_bytes`].
    pub limit_bytes: u64,
    /// Whether it stays registered when its client is gone.
    pub stays: bool,
}

/// What a client asks of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Keeps log for these readers. A reader of the same client that does not stay and is not
    /// listed has let go. Answered by [`Reply::Held`].
    Hold {
        /// A random number that the client has for its lifetime.
        client: u64,
        readers: Vec<HeldReader>,
    },
    /// Ends the registration of a reader that stays. Answered by [`Reply::Forgotten`].
    Forget { name: String },
    /// A range of log. Answered by [`Reply::Log`].
    Read { from: Lsn, limit_bytes: u32 },
    /// Who holds log. Answered by [`Reply::Readers`].
    Readers,
    /// A stream of durable groups: pushes, and [`Reply::End`] at the end.
    Follow(FollowRequest),
}

/// How a client follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowRequest {
    pub name: String,
    /// A group boundary.
    pub from: Lsn,
    /// Where the stream ends.
    pub until: Option<Lsn>,
    pub pages: WantedPages,
    pub limit_bytes: u64,
    /// How much log a push has, about, in bytes.
    pub piece_bytes: u32,
    /// How long the member lets log gather for the next push once the stream has all that is
    /// durable, in microseconds.
    pub gather_us: u32,
}

/// A [`PageFilter`] in a message. The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WantedPages {
    All,
    /// The first and last page of each range.
    Ranges(Vec<(PageId, PageId)>),
    /// Pages whose extents have places in `first..end`.
    Places {
        extents: Extents,
        first: u32,
        end: u32,
    },
    /// Pages whose extents have places in one of the ranges, of which the ends are excluded.
    SeveralPlaces {
        extents: Extents,
        ranges: Vec<(u32, u32)>,
    },
}

/// What a member answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Held {
        positions: Positions,
        /// Where the log begins that is kept for each reader of the request. Above the held
        /// position: log that the reader wanted is gone at this member.
        kept_from: Vec<Lsn>,
        /// Where the log is written, if the member knows.
        leader: Option<String>,
    },
    Forgotten {
        positions: Positions,
    },
    /// Whole groups up to `end` are behind the message.
    Log {
        positions: Positions,
        end: Lsn,
    },
    Readers {
        positions: Positions,
        readers: Vec<HeldReader>,
    },
    /// The stream came to the end that was asked for.
    End {
        positions: Positions,
    },
    Failed {
        positions: Positions,
        failure: Failure,
    },
}

/// What a stream pushes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Push {
    /// The log from `from` to `to`, all of it behind the message.
    All { positions: Positions, from: Lsn, to: Lsn },
    /// The groups of `from` to `to` that pass the filter are behind the message. Of each: bytes of
    /// log between it and the one before, and its length in the log.
    Some { positions: Positions, from: Lsn, to: Lsn, groups: Vec<(u64, u64)> },
    /// Nothing more is durable, and the member is alive.
    Progress { positions: Positions },
}

/// A [`LogError`] in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    NoRoom { place: String, reason: String },
    Failed { place: String, reason: String },
    Fenced { by: u64 },
    NotLeader { hint: Option<String> },
    Unavailable { reason: String },
    OutOfRange { position: Lsn, from: Lsn, to: Lsn },
    ReaderDropped { name: String, held: Lsn, limit_bytes: u64 },
    Unreadable { at: String, reason: String },
    Damaged { at: String, what: String },
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Failure {
        match error {
            LogError::NoRoom { place, reason } => Failure::NoRoom { place, reason },
            LogError::Failed { place, reason } => Failure::Failed { place, reason },
            LogError::Fenced { by } => Failure::Fenced { by: by.0 },
            LogError::NotLeader { hint } => Failure::NotLeader { hint },
            LogError::Unavailable { reason } => Failure::Unavailable { reason },
            LogError::OutOfRange { position, from, to } => {
                Failure::OutOfRange { position, from, to }
            }
            LogError::ReaderDropped { name, held, limit_bytes } => {
                Failure::ReaderDropped { name, held, limit_bytes }
            }
            LogError::Unreadable { at, reason } => Failure::Unreadable { at, reason },
            LogError::Damaged { at, what } => Failure::Damaged { at, what },
        }
    }
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> LogError {
        match failure {
            Failure::NoRoom { place, reason } => LogError::NoRoom { place, reason },
            Failure::Failed { place, reason } => LogError::Failed { place, reason },
            Failure::Fenced { by } => LogError::Fenced { by: LogEpoch(by) },
            Failure::NotLeader { hint } => LogError::NotLeader { hint },
            Failure::Unavailable { reason } => LogError::Unavailable { reason },
            Failure::OutOfRange { position, from, to } => {
                LogError::OutOfRange { position, from, to }
            }
            Failure::ReaderDropped { name, held, limit_bytes } => {
                LogError::ReaderDropped { name, held, limit_bytes }
            }
            Failure::Unreadable { at, reason } => LogError::Unreadable { at, reason },
            Failure::Damaged { at, what } => LogError::Damaged { at, what },
        }
    }
}

impl FollowRequest {
    /// The request for a stream that goes on at `from`.
    #[must_use]
    pub fn new(
        options: &FollowOptions,
        from: Lsn,
        piece_bytes: u32,
        gather: Duration,
    ) -> FollowRequest {
        let pages = match &options.pages {
            PageFilter::All => WantedPages::All,
            PageFilter::Ranges(ranges) => {
                let range = |range: &RangeInclusive<PageId>| (*range.start(), *range.end());
                WantedPages::Ranges(ranges.iter().map(range).collect())
            }
            PageFilter::Places { extents, ranges } => match &**ranges {
                [Range { start, end }] => {
                    WantedPages::Places { extents: *extents, first: *start, end: *end }
                }
                ranges => {
                    let ranges = ranges.iter().map(|range| (range.start, range.end)).collect();
                    WantedPages::SeveralPlaces { extents: *extents, ranges }
                }
            },
        };
        FollowRequest {
            name: options.name.clone(),
            from,
            until: options.until,
            pages,
            limit_bytes: options.hold_limit_bytes,
            piece_bytes,
            gather_us: gather.as_micros().min(u128::from(MAX_GATHER_US)) as u32,
        }
    }

    /// See [`FollowRequest::gather_us`].
    #[must_use]
    pub fn gather(&self) -> Duration {
        Duration::from_micros(u64::from(self.gather_us))
    }

    /// What the member asks of its store.
    #[must_use]
    pub fn options(&self) -> FollowOptions {
        let range = |(first, last): &(PageId, PageId)| RangeInclusive::new(*first, *last);
        let pages = match &self.pages {
            WantedPages::All => PageFilter::All,
            WantedPages::Ranges(ranges) => PageFilter::Ranges(ranges.iter().map(range).collect()),
            WantedPages::Places { extents, first, end } => {
                PageFilter::places(*extents, *first..*end)
            }
            WantedPages::SeveralPlaces { extents, ranges } => {
                let ranges = ranges.iter().map(|(first, end)| *first..*end).collect();
                PageFilter::Places { extents: *extents, ranges }
            }
        };
        FollowOptions {
            name: self.name.clone(),
            from: self.from,
            until: self.until,
            pages,
            hold_limit_bytes: self.limit_bytes,
        }
    }
}

impl Request {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        plain(self)
    }

    /// Reads a request.
    ///
    /// # Errors
    /// If the bytes are not exactly those of a request of this version, within its limits.
    pub fn decode(bytes: &[u8]) -> Result<Request, Damage> {
        let (request, rest) = exact::<Request>(bytes)?;
        let is_name = |name: &str| name.len() <= MAX_NAME_BYTES;
        let is_sound = match &request {
            Request::Hold { readers, .. } => {
                readers.len() <= MAX_READERS && readers.iter().all(|reader| is_name(&reader.name))
            }
            Request::Forget { name } => is_name(name),
            Request::Read { .. } | Request::Readers => true,
            Request::Follow(follow) => {
                let are_sound = match &follow.pages {
                    WantedPages::All => true,
                    WantedPages::Ranges(ranges) => ranges.len() <= MAX_RANGES,
                    WantedPages::Places { extents, .. } => extents.pages > 0,
                    WantedPages::SeveralPlaces { extents, ranges } => {
                        extents.pages > 0 && ranges.len() <= MAX_RANGES
                    }
                };
                is_name(&follow.name) && are_sound && follow.gather_us <= MAX_GATHER_US
            }
        };
        match (is_sound, rest) {
            (true, []) => Ok(request),
            (true, _) => Err(Damage::Message("bytes behind a request")),
            (false, _) => Err(Damage::Message("a request is over its limits")),
        }
    }
}

impl Reply {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        plain(self)
    }

    /// The reply with the log that it brings.
    #[must_use]
    pub fn with_log(&self, log: Vec<u8>) -> Body {
        let mut body = Body::from(self.encode());
        body.push(log);
        body
    }

    /// Reads a reply, and returns it with the log behind it.
    ///
    /// # Errors
    /// If the bytes do not begin with a reply of this version, or have log where none belongs.
    pub fn decode(bytes: &[u8]) -> Result<(Reply, &[u8]), Damage> {
        let (reply, rest) = exact::<Reply>(bytes)?;
        match (&reply, rest) {
            (Reply::Log { .. }, _) | (_, []) => Ok((reply, rest)),
            _ => Err(Damage::Message("bytes behind a reply")),
        }
    }

    /// What the member had when it answered.
    #[must_use]
    pub fn positions(&self) -> Positions {
        match self {
            Reply::Held { positions, .. }
            | Reply::Forgotten { positions }
            | Reply::Log { positions, .. }
            | Reply::Readers { positions, .. }
            | Reply::End { positions }
            | Reply::Failed { positions, .. } => *positions,
        }
    }
}

impl Push {
    /// The message for a piece of log.
    #[must_use]
    pub fn of_piece(positions: Positions, piece: &LogPiece, filter: &PageFilter) -> Body {
        let (from, to) = (piece.from, piece.to);
        let push = if *filter == PageFilter::All {
            Push::All { positions, from, to }
        } else {
            let mut before = from;
            let place = |group: firn_api::FollowedGroup<'_>| {
                let gap = group.start.since(before);
                before = group.end;
                (gap, group.end.since(group.start))
            };
            Push::Some { positions, from, to, groups: piece.groups().map(place).collect() }
        };
        let mut body = Body::from(push.encode());
        if !piece.bytes().is_empty() {
            body.push(piece.bytes().to_vec());
        }
        body
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        plain(self)
    }

    /// Reads a push, and returns it with the log behind it.
    ///
    /// # Errors
    /// As [`Reply::decode`].
    pub fn decode(bytes: &[u8]) -> Result<(Push, &[u8]), Damage> {
        let (push, rest) = exact::<Push>(bytes)?;
        match (&push, rest) {
            (Push::All { .. } | Push::Some { .. }, _) | (_, []) => Ok((push, rest)),
            _ => Err(Damage::Message("bytes behind a push")),
        }
    }

    /// What the member had when it pushed.
    #[must_use]
    pub fn positions(&self) -> Positions {
        match self {
            Push::All { positions, .. }
            | Push::Some { positions, .. }
            | Push::Progress { positions } => *positions,
        }
    }
}

/// A message of a stream, with its piece of log.
///
/// # Errors
/// If the bytes are no push of this version, or its log is not whole groups in their places, or
/// goes beyond what the member says is durable.
pub fn read_push(payload: Payload) -> Result<(Positions, Option<LogPiece>), Damage> {
    let (push, log) = Push::decode(&payload)?;
    let positions = push.positions();
    let at = payload.len() - log.len();
    let (from, to, groups) = match push {
        Push::Progress { .. } => return Ok((positions, None)),
        Push::All { from, to, .. } => (from, to, None),
        Push::Some { from, to, groups, .. } => (from, to, Some(groups)),
    };
    if to > positions.durable {
        return Err(Damage::Message("log that is not durable"));
    }
    let length = payload.len();
    let log = payload.part(at..length);
    drop(payload);
    let log = log.into_vec();
    let piece = match groups {
        None => LogPiece::new(from, log, &PageFilter::All),
        Some(groups) => LogPiece::of_groups(from, to, places(from, groups)?, log),
    };
    match piece {
        Ok(piece) if piece.to == to => Ok((positions, Some(piece))),
        _ => Err(Damage::Message("its log is not whole groups")),
    }
}

/// Where groups begin and end.
fn places(from: Lsn, groups: Vec<(u64, u64)>) -> Result<Vec<(Lsn, Lsn)>, Damage> {
    let mut position = from.0;
    let place = |(gap, length): (u64, u64)| {
        let start = position.checked_add(gap)?;
        position = start.checked_add(length)?;
        Some((Lsn(start), Lsn(position)))
    };
    let places: Option<Vec<_>> = groups.into_iter().map(place).collect();
    places.ok_or(Damage::Message("a group beyond every position"))
}

fn plain<T: Serialize>(message: &T) -> Vec<u8> {
    postcard::to_extend(message, vec![VERSION]).expect("plain fields can always be encoded")
}

/// The message at the start of `bytes`, in the one way to write it, and the bytes behind it.
fn exact<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), Damage> {
    let (version, rest) = bytes.split_first().ok_or(Damage::Message("it is empty"))?;
    if *version != VERSION {
        return Err(Damage::Version(*version));
    }
    let read = postcard::take_from_bytes::<T>(rest);
    let (message, behind) = read.map_err(|_| Damage::Message("it cannot be read"))?;
    let length = bytes.len() - behind.len();
    if plain(&message) != bytes[..length] {
        return Err(Damage::Message("it is written in another way"));
    }
    Ok((message, behind))
}

/// For the fuzz target: any bytes are refused, or are written back unchanged.
///
/// # Panics
/// If what was read is written differently.
pub fn check_any_bytes(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    if let Ok((reply, log)) = Reply::decode(bytes) {
        assert_eq!([reply.encode().as_slice(), log].concat(), bytes);
    }
    if let Ok((push, log)) = Push::decode(bytes) {
        assert_eq!([push.encode().as_slice(), log].concat(), bytes);
    }
    if let Ok((positions, Some(piece))) = read_push(Payload::from(bytes.to_vec())) {
        assert!(piece.from <= piece.to && piece.to <= positions.durable);
        let ends = piece.groups().map(|group| group.end);
        assert!(ends.is_sorted(), "groups are out of order");
    }
}

#[cfg(test)]
mod tests;
