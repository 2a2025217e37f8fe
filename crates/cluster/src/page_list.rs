//! The service by which a page node tells another one which pages of a chunk it has.
//!
//! The pages themselves are read as by any reader. The request names a position: the answer comes
//! once everything before it is in stored images, so that each page which existed then is listed.
//! It also names the places that the chunk has for who asks: a node whose chunk was cut has fewer,
//! and its list would lack pages.
//!
//! `docs/formats/cluster.md` describes the bytes.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_base::{Lsn, PageId, PageNo};
use firn_control::ChunkId;
use firn_link::{CallError, Caller, Peer, Request, Responder, Service, ServiceId};
use firn_storage::page_node::PageNode;
use serde::{Deserialize, Serialize};

use crate::layout::parts::HeldPart;
use crate::versioned::{decode, encode};

pub(crate) const SERVICE: ServiceId = ServiceId(0x0102);
const VERSION: u8 = 2;
/// The version of a question that names places. The answer is as before.
const WITH_PLACES: u8 = 3;
/// The most pages of one answer.
const MOST_PAGES: u32 = 65_536;
/// How long a node has until everything is in stored images.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The order of the fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ListRequest {
    chunk: ChunkId,
    position: Lsn,
    /// Only pages behind this one.
    after: Option<u64>,
    limit: u32,
}

/// A question with the places, from the first one to the end, that the chunk has.
type PlacedRequest = (ListRequest, (PageNo, PageNo));

/// The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum ListReply {
    /// In order; none if there are no more. With about how many the chunk has in all.
    Pages {
        pages: Vec<u64>,
        total: u64,
    },
    Failed(String),
}

/// Pages of another node.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) pages: Vec<PageId>,
    /// About how many the chunk has.
    pub(crate) total: u64,
}

/// Why a node does not tell its pages.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ListError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("{0}")]
    Failed(String),
    #[error("the list of pages cannot be read; the node may be of another release")]
    Malformed,
}

/// The chunk of a number, while it is open, and the pages that the node has of it.
pub(crate) type FindChunk = Box<dyn Fn(ChunkId) -> Option<(Arc<PageNode>, HeldPart)> + Send + Sync>;

/// Tells the pages of a node's chunks.
pub(crate) struct PageListService(pub(crate) FindChunk);

impl PageListService {
    fn answer(&self, request: &[u8]) -> ListReply {
        let placed = decode::<PlacedRequest>(WITH_PLACES, request);
        let placed = placed.map(|(request, (first, end))| (request, Some(first..end)));
        let bare = || decode::<ListRequest>(VERSION, request).map(|request| (request, None));
        let Some((request, places)) = placed.or_else(bare) else {
            return ListReply::Failed("the question is not one of this release".to_owned());
        };
        let Some((node, _)) = (self.0)(request.chunk) else {
            return ListReply::Failed(format!("chunk {} is not open here", request.chunk));
        };
        if let Err(error) = node.materialise_up_to(request.position) {
            return ListReply::Failed(error.to_string());
        }
        let limit = request.limit.min(MOST_PAGES) as usize;
        let pages = node.stored_pages(request.after.map(PageId::from_u64), limit);
        // After the list was made: pages of other places go once this is noted.
        let has_all = |places: &Range<PageNo>| {
            (self.0)(request.chunk)
                .is_some_and(|(_, part)| part.first <= places.start && places.end <= part.end)
        };
        if !places.as_ref().is_none_or(has_all) {
            return ListReply::Failed(format!("chunk {} has fewer pages here", request.chunk));
        }
        let status = node.status().pages;
        let total = status.slots.saturating_sub(status.free_slots);
        ListReply::Pages { pages: pages.into_iter().map(PageId::to_u64).collect(), total }
    }
}

impl Service for PageListService {
    fn serve(&self, _: &Peer, request: Request, responder: Responder) {
        responder.reply(encode(VERSION, &self.answer(&request.payload)));
    }
}

/// The pages of a chunk behind `after` that the node at the other end of a link had at `position`,
/// or some of them, and perhaps pages of other places. Blocks until the node has stored them.
///
/// # Errors
/// If the node does not answer, cannot store them, or does not have all of `places`.
pub(crate) fn list(
    caller: &Caller,
    chunk: ChunkId,
    places: &Range<PageNo>,
    position: Lsn,
    after: Option<PageId>,
) -> Result<Listed, ListError> {
    let after = after.map(PageId::to_u64);
    let request = ListRequest { chunk, position, after, limit: MOST_PAGES };
    let request: PlacedRequest = (request, (places.start, places.end));
    let answer = caller.call(SERVICE, encode(WITH_PLACES, &request), TIMEOUT)?;
    match decode::<ListReply>(VERSION, &answer).ok_or(ListError::Malformed)? {
        ListReply::Pages { pages, total } => {
            Ok(Listed { pages: pages.into_iter().map(PageId::from_u64).collect(), total })
        }
        ListReply::Failed(reason) => Err(ListError::Failed(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_these_bytes() {
        let chunk = ChunkId(3);
        let request = ListRequest { chunk, position: Lsn(300), after: Some(5), limit: 7 };
        assert_eq!(encode(VERSION, &request), [2, 3, 0xac, 2, 1, 5, 7]);
        assert_eq!(decode(VERSION, &encode(VERSION, &request)), Some(request.clone()));
        let placed: PlacedRequest = (request, (PageNo(4), PageNo(300)));
        let bytes = encode(WITH_PLACES, &placed);
        assert_eq!(bytes, [3, 3, 0xac, 2, 1, 5, 7, 4, 0xac, 2]);
        assert_eq!(decode(WITH_PLACES, &bytes), Some(placed));
        let reply = ListReply::Pages { pages: vec![6, 8], total: 9 };
        assert_eq!(encode(VERSION, &reply), [2, 0, 2, 6, 8, 9]);
        assert_eq!(decode(VERSION, &encode(VERSION, &reply)), Some(reply));
        let failed = ListReply::Failed("a".to_owned());
        assert_eq!(encode(VERSION, &failed), [2, 1, 1, b'a']);
        assert_eq!(decode::<ListReply>(VERSION, &[1, 1, 1, b'a']), None, "another version");
        assert_eq!(decode::<ListReply>(VERSION, &[2, 1, 1, b'a', 0]), None);
    }
}
