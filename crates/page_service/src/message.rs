//! What the two ends say to each other. `docs/formats/page_service.md` describes the bytes.
//!
//! ```text
//!   client                                             page node
//!   read: pages, each with the version wanted  ──────► pushes of pages as they become ready,
//!                                                      the last of them as the reply
//!   hold: all leases of the client             ──────► for each: kept, or why not
//!   applied: pages                             ──────► the applied position of each one's chunk
//!   spaces                                     ──────► the spaces that have pages
//! ```
//!
//! Every byte of a message is checked when it is read: each message has one encoding only.

mod failure;
#[cfg(test)]
mod tests;

use std::time::Duration;

use firn_api::{PageRead, PageRequest};
use firn_base::{Lsn, PageId, SpaceId};
use firn_format::page::PAGE_SIZE;

pub use self::failure::Failure;
pub use crate::codec::VERSION;
use crate::codec::{Damage, Reader, put_page, put_text, put_u32, put_u64};

/// The most pages that one request asks for.
pub const MAX_PAGES: usize = 1024;
/// The most leases that a client has.
pub const MAX_LEASES: usize = 4096;
/// The most spaces in an answer.
const MAX_SPACES: usize = 8 << 20;

const READ: u8 = 1;
const HOLD: u8 = 2;
const APPLIED: u8 = 3;
const SPACES: u8 = 4;
const PAGES: u8 = 5;
const HELD: u8 = 6;
const POSITIONS: u8 = 7;
const SPACE_LIST: u8 = 8;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Read(ReadRequest),
    Hold(HoldRequest),
    /// The applied positions of the chunks of these pages.
    Applied(Vec<PageId>),
    Spaces,
}

/// A batch of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// The client; see [`HoldRequest::holder`].
    pub holder: u64,
    /// How long the node may wait for log that has not arrived. Whole milliseconds.
    pub patience: Duration,
    pub pages: Vec<PageRequest>,
}

/// All leases of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRequest {
    /// The client: a random number that it keeps while it runs.
    pub holder: u64,
    /// Grows with each list that the client makes. An older list that arrives late ends no lease.
    pub round: u64,
    /// The leases end when no list has come for this long. Whole milliseconds.
    pub timeout: Duration,
    pub leases: Vec<LeaseRequest>,
}

/// A lease that a client wants to have or to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The client's number of the lease.
    pub number: u64,
    /// Versions from here on are kept.
    pub position: Lsn,
    /// The holder's name in listings.
    pub reader: String,
}

/// What became of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseAnswer {
    pub number: u64,
    /// `None`: versions from the lease's position on are kept. Otherwise the oldest position that
    /// the node can hold.
    pub refused: Option<Lsn>,
}

impl Request {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        match self {
            Request::Read(read) => read.put(&mut bytes),
            Request::Hold(hold) => hold.put(&mut bytes),
            Request::Applied(pages) => {
                bytes.push(APPLIED);
                put_u32(&mut bytes, pages.len() as u32);
                pages.iter().for_each(|page| put_page(&mut bytes, *page));
            }
            Request::Spaces => bytes.push(SPACES),
        }
        bytes
    }

    /// The request in `bytes`, which are untrusted.
    ///
    /// # Errors
    /// [`Damage`]
    pub fn decode(bytes: &[u8]) -> Result<Request, Damage> {
        let mut reader = Reader::new(bytes);
        let request = match kind(&mut reader)? {
            READ => Request::Read(ReadRequest::take(&mut reader)?),
            HOLD => Request::Hold(HoldRequest::take(&mut reader)?),
            APPLIED => Request::Applied(reader.list(MAX_PAGES, Reader::page)?),
            SPACES => Request::Spaces,
            _ => return Err(Damage::Message("it is no request")),
        };
        reader.end()?;
        Ok(request)
    }
}

/// Reads the version and returns the kind.
fn kind(reader: &mut Reader<'_>) -> Result<u8, Damage> {
    match reader.u8()? {
        VERSION => reader.u8(),
        other => Err(Damage::Version(other)),
    }
}

fn put_duration(bytes: &mut Vec<u8>, duration: Duration) {
    put_u32(bytes, u32::try_from(duration.as_millis()).unwrap_or(u32::MAX));
}

fn take_duration(reader: &mut Reader<'_>) -> Result<Duration, Damage> {
    reader.u32().map(|millis| Duration::from_millis(u64::from(millis)))
}

impl ReadRequest {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(READ);
        put_u64(bytes, self.holder);
        put_duration(bytes, self.patience);
        put_u32(bytes, self.pages.len() as u32);
        for request in &self.pages {
            put_page(bytes, request.page);
            bytes.push(u8::from(matches!(request.version, PageRead::AsOf(_))));
            put_u64(bytes, request.version.position().0);
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<ReadRequest, Damage> {
        let holder = reader.u64()?;
        let patience = take_duration(reader)?;
        let pages = reader.list(MAX_PAGES, |reader| {
            let page = reader.page()?;
            let is_as_of = reader.u8()?;
            let position = reader.lsn()?;
            let version = match is_as_of {
                0 => PageRead::Latest { at_least: position },
                1 => PageRead::AsOf(position),
                _ => return Err(Damage::Message("a version of an unknown kind")),
            };
            Ok(PageRequest { page, version })
        })?;
        Ok(ReadRequest { holder, patience, pages })
    }
}

impl HoldRequest {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(HOLD);
        put_u64(bytes, self.holder);
        put_u64(bytes, self.round);
        put_duration(bytes, self.timeout);
        put_u32(bytes, self.leases.len() as u32);
        for lease in &self.leases {
            put_u64(bytes, lease.number);
            put_u64(bytes, lease.position.0);
            put_text(bytes, &lease.reader);
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<HoldRequest, Damage> {
        let (holder, round) = (reader.u64()?, reader.u64()?);
        let timeout = take_duration(reader)?;
        let leases = reader.list(MAX_LEASES, |reader| {
            let (number, position) = (reader.u64()?, reader.lsn()?);
            Ok(LeaseRequest { number, position, reader: reader.text()? })
        })?;
        Ok(HoldRequest { holder, round, timeout, leases })
    }
}

/// Some answers of a batch, as they are written: the message is complete at any time.
#[derive(Debug)]
pub struct PagesWriter {
    bytes: Vec<u8>,
    count: u32,
}

/// Where a message of pages has its number of answers.
const COUNT_AT: usize = 3;

impl PagesWriter {
    /// An empty message. `has_waited` says that the node waited for log before it read these pages.
    #[must_use]
    pub fn new(has_waited: bool, capacity_bytes: usize) -> PagesWriter {
        let mut bytes = Vec::with_capacity(capacity_bytes + 16);
        bytes.extend_from_slice(&[VERSION, PAGES, u8::from(has_waited)]);
        put_u32(&mut bytes, 0);
        PagesWriter { bytes, count: 0 }
    }

    /// The length so far in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends the page that the request at `index` asked for. The image is sealed.
    pub fn put_image(&mut self, index: usize, as_of: Lsn, image: &[u8; PAGE_SIZE]) {
        self.begin(index);
        self.bytes.push(0);
        put_u64(&mut self.bytes, as_of.0);
        self.bytes.extend_from_slice(image);
    }

    /// Appends why the request at `index` has no page.
    pub fn put_failure(&mut self, index: usize, failure: &Failure) {
        self.begin(index);
        failure.put(&mut self.bytes);
    }

    fn begin(&mut self, index: usize) {
        put_u32(&mut self.bytes, index as u32);
        self.count += 1;
    }

    /// The message.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes[COUNT_AT..COUNT_AT + 4].copy_from_slice(&self.count.to_le_bytes());
        self.bytes
    }
}

/// Some answers of a batch. Images are not copied, and not checked.
#[derive(Debug, PartialEq, Eq)]
pub struct Pages<'a> {
    /// Whether the node waited for log before it read these pages.
    pub has_waited: bool,
    pub answers: Vec<(usize, PageAnswer<'a>)>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum PageAnswer<'a> {
    Image {
        /// See [`firn_api::PageVersion::as_of`].
        as_of: Lsn,
        image: &'a [u8; PAGE_SIZE],
    },
    Failed(Failure),
}

impl<'a> Pages<'a> {
    /// The answers in `bytes`, which are untrusted.
    ///
    /// # Errors
    /// [`Damage`]
    pub fn decode(bytes: &'a [u8]) -> Result<Pages<'a>, Damage> {
        let mut reader = Reader::new(bytes);
        if kind(&mut reader)? != PAGES {
            return Err(Damage::Message("it has no pages"));
        }
        let has_waited = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Damage::Message("an unknown mark")),
        };
        let answers = reader.list(MAX_PAGES, |reader| {
            let index = reader.u32()? as usize;
            let answer = match reader.u8()? {
                0 => PageAnswer::Image { as_of: reader.lsn()?, image: reader.image()? },
                tag => PageAnswer::Failed(Failure::take(tag, reader)?),
            };
            Ok((index, answer))
        })?;
        reader.end()?;
        Ok(Pages { has_waited, answers })
    }
}

/// The answer to [`Request::Hold`] as bytes.
#[must_use]
pub fn encode_held(answers: &[LeaseAnswer]) -> Vec<u8> {
    let mut bytes = vec![VERSION, HELD];
    put_u32(&mut bytes, answers.len() as u32);
    for answer in answers {
        put_u64(&mut bytes, answer.number);
        bytes.push(u8::from(answer.refused.is_some()));
        if let Some(kept_from) = answer.refused {
            put_u64(&mut bytes, kept_from.0);
        }
    }
    bytes
}

/// Reads the answer to [`Request::Hold`].
///
/// # Errors
/// [`Damage`]
pub fn decode_held(bytes: &[u8]) -> Result<Vec<LeaseAnswer>, Damage> {
    decode_list(bytes, HELD, MAX_LEASES, |reader| {
        let number = reader.u64()?;
        let refused = match reader.u8()? {
            0 => None,
            1 => Some(reader.lsn()?),
            _ => return Err(Damage::Message("an unknown mark")),
        };
        Ok(LeaseAnswer { number, refused })
    })
}

/// The answer to [`Request::Applied`] as bytes: a position for each page, in the request's order.
#[must_use]
pub fn encode_positions(positions: &[Lsn]) -> Vec<u8> {
    let mut bytes = vec![VERSION, POSITIONS];
    put_u32(&mut bytes, positions.len() as u32);
    positions.iter().for_each(|position| put_u64(&mut bytes, position.0));
    bytes
}

/// Reads the answer to [`Request::Applied`].
///
/// # Errors
/// [`Damage`]
pub fn decode_positions(bytes: &[u8]) -> Result<Vec<Lsn>, Damage> {
    decode_list(bytes, POSITIONS, MAX_PAGES, Reader::lsn)
}

/// The answer to [`Request::Spaces`] as bytes.
#[must_use]
pub fn encode_spaces(spaces: &[SpaceId]) -> Vec<u8> {
    let mut bytes = vec![VERSION, SPACE_LIST];
    put_u32(&mut bytes, spaces.len() as u32);
    spaces.iter().for_each(|space| put_u32(&mut bytes, space.0));
    bytes
}

/// Reads the answer to [`Request::Spaces`].
///
/// # Errors
/// [`Damage`]
pub fn decode_spaces(bytes: &[u8]) -> Result<Vec<SpaceId>, Damage> {
    decode_list(bytes, SPACE_LIST, MAX_SPACES, |reader| reader.u32().map(SpaceId))
}

fn decode_list<'a, T>(
    bytes: &'a [u8],
    wanted: u8,
    most: usize,
    read: impl FnMut(&mut Reader<'a>) -> Result<T, Damage>,
) -> Result<Vec<T>, Damage> {
    let mut reader = Reader::new(bytes);
    if kind(&mut reader)? != wanted {
        return Err(Damage::Message("it is no answer to the request"));
    }
    let list = reader.list(most, read)?;
    reader.end()?;
    Ok(list)
}

/// Any bytes are refused, or read and written back unchanged. For fuzzing.
///
/// # Panics
/// If that does not hold.
pub fn check_any_bytes(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    if let Ok(pages) = Pages::decode(bytes) {
        let mut writer = PagesWriter::new(pages.has_waited, 0);
        for (index, answer) in pages.answers {
            match answer {
                PageAnswer::Image { as_of, image } => writer.put_image(index, as_of, image),
                PageAnswer::Failed(failure) => writer.put_failure(index, &failure),
            }
        }
        assert_eq!(writer.finish(), bytes);
    }
    if let Ok(answers) = decode_held(bytes) {
        assert_eq!(encode_held(&answers), bytes);
    }
    if let Ok(positions) = decode_positions(bytes) {
        assert_eq!(encode_positions(&positions), bytes);
    }
    if let Ok(spaces) = decode_spaces(bytes) {
        assert_eq!(encode_spaces(&spaces), bytes);
    }
}
