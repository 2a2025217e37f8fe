//! Why a page node has no page for a request, as bytes and as the seam's error.

use firn_api::{LogError, PageRead, PageRequest, PageStoreError};
use firn_base::Lsn;

use crate::codec::{Damage, Reader, put_text, put_u64};

/// Why a request has no page. The seam's error without what the client knows: the page, the
/// position, the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    Absent,
    /// There is no version at the position, which the client does not hold at this node: it may
    /// have been there.
    AbsentUnheld,
    Damaged {
        place: String,
        reason: String,
    },
    TooOld {
        kept_from: Lsn,
    },
    Unavailable {
        reason: String,
    },
    WrongChunk,
    OldEpoch {
        epoch: u64,
        current: u64,
    },
    StoreDamaged {
        place: String,
        reason: String,
    },
    /// The node's disk, or its copy of the log, cannot be read.
    Unreadable {
        place: String,
        reason: String,
    },
}

impl Failure {
    /// What a page store said to a read.
    #[must_use]
    pub fn of(error: &PageStoreError) -> Failure {
        match error.clone() {
            PageStoreError::Absent(_) => Failure::Absent,
            PageStoreError::Damaged { place, reason, .. } => Failure::Damaged { place, reason },
            // Page nodes write no log; a store that compares with its own one is not to be trusted.
            error @ PageStoreError::AheadOfLog { .. } => {
                Failure::Damaged { place: "page".to_owned(), reason: error.to_string() }
            }
            PageStoreError::TooOld { kept_from, .. }
            | PageStoreError::NotKept { kept_from, .. } => Failure::TooOld { kept_from },
            PageStoreError::Io { place, reason } => Failure::Unreadable { place, reason },
            PageStoreError::Unavailable { reason, .. } => Failure::Unavailable { reason },
            PageStoreError::WrongChunk { .. } => Failure::WrongChunk,
            PageStoreError::OldEpoch { epoch, current, .. } => Failure::OldEpoch { epoch, current },
            PageStoreError::StoreDamaged { place, reason } => {
                Failure::StoreDamaged { place, reason }
            }
            PageStoreError::Log(LogError::Unavailable { reason }) => {
                Failure::Unavailable { reason }
            }
            PageStoreError::Log(error) => {
                Failure::Unreadable { place: "log".to_owned(), reason: error.to_string() }
            }
        }
    }

    /// The error of the read. `node` is the node that said it.
    #[must_use]
    pub fn into_error(self, request: PageRequest, node: &str) -> PageStoreError {
        let PageRequest { page, version } = request;
        let at_node = |place: String| format!("{node}: {place}");
        let node = || node.to_owned();
        match self {
            Failure::Absent | Failure::AbsentUnheld => PageStoreError::Absent(page),
            Failure::Damaged { place, reason } => {
                PageStoreError::Damaged { page, place: at_node(place), reason }
            }
            Failure::TooOld { kept_from } => match version {
                PageRead::AsOf(wanted) => PageStoreError::TooOld { page, wanted, kept_from },
                PageRead::Latest { .. } => {
                    let reason = "it says that the newest version is too old".to_owned();
                    PageStoreError::Unavailable { page, place: node(), reason }
                }
            },
            Failure::Unavailable { reason } => {
                PageStoreError::Unavailable { page, place: node(), reason }
            }
            Failure::WrongChunk => PageStoreError::WrongChunk { page, place: node() },
            Failure::OldEpoch { epoch, current } => {
                PageStoreError::OldEpoch { place: node(), epoch, current }
            }
            Failure::StoreDamaged { place, reason } => {
                PageStoreError::StoreDamaged { place: at_node(place), reason }
            }
            Failure::Unreadable { place, reason } => {
                PageStoreError::Io { place: at_node(place), reason }
            }
        }
    }

    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        let mut put_texts = |tag: u8, texts: &[&str]| {
            bytes.push(tag);
            texts.iter().for_each(|text| put_text(bytes, text));
        };
        match self {
            Failure::Absent => put_texts(1, &[]),
            Failure::AbsentUnheld => put_texts(9, &[]),
            Failure::Damaged { place, reason } => put_texts(2, &[place, reason]),
            Failure::TooOld { kept_from } => {
                bytes.push(3);
                put_u64(bytes, kept_from.0);
            }
            Failure::Unavailable { reason } => put_texts(4, &[reason]),
            Failure::WrongChunk => put_texts(5, &[]),
            Failure::OldEpoch { epoch, current } => {
                bytes.push(6);
                put_u64(bytes, *epoch);
                put_u64(bytes, *current);
            }
            Failure::StoreDamaged { place, reason } => put_texts(7, &[place, reason]),
            Failure::Unreadable { place, reason } => put_texts(8, &[place, reason]),
        }
    }

    pub(super) fn take(tag: u8, reader: &mut Reader<'_>) -> Result<Failure, Damage> {
        Ok(match tag {
            1 => Failure::Absent,
            2 => Failure::Damaged { place: reader.text()?, reason: reader.text()? },
            3 => Failure::TooOld { kept_from: reader.lsn()? },
            4 => Failure::Unavailable { reason: reader.text()? },
            5 => Failure::WrongChunk,
            6 => Failure::OldEpoch { epoch: reader.u64()?, current: reader.u64()? },
            7 => Failure::StoreDamaged { place: reader.text()?, reason: reader.text()? },
            8 => Failure::Unreadable { place: reader.text()?, reason: reader.text()? },
            9 => Failure::AbsentUnheld,
            _ => return Err(Damage::Message("an unknown failure")),
        })
    }
}
