//! Which page nodes have which pages, as control says it, and what this process knows of them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use firn_base::network::NodeId;
use firn_base::{Extents, Lsn, PageId};
use firn_link::Caller;
use parking_lot::Mutex;

use super::node::Node;

/// The most nodes of a chunk.
pub const MAX_COPIES: usize = 8;
/// Neighbouring pages that prefer the same node of their chunk: reads ahead go to one node, and
/// large reads to all.
const STRIPE_PAGES: u32 = 64;

/// A page node and the link to it.
#[derive(Clone)]
pub struct PageNodeLink {
    pub node: NodeId,
    pub caller: Arc<Caller>,
    /// Whether it is asked after those that are near: it is in another zone.
    pub is_far: bool,
}

/// A range of pages, and the nodes that have it. It lies within one chunk of each node's store:
/// all its pages have one applied position there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedChunk {
    pub pages: RangeInclusive<PageId>,
    pub nodes: Vec<NodeId>,
}

/// Why a table is no placement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    #[error("a chunk from {from} on is empty, has no page node, or has more than {MAX_COPIES}")]
    Empty { from: PageId },
    #[error("two chunks have {page}")]
    Overlap { page: PageId },
    #[error("page node {node} is not listed, or is listed twice")]
    Node { node: NodeId },
}

/// A part of all pages, and the nodes that have it: the extents with places in `first..end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedPart {
    pub first: u32,
    pub end: u32,
    pub nodes: Vec<NodeId>,
}

/// Where pages are: chunks, and links to their nodes.
#[derive(Clone)]
pub struct Placement {
    links: BTreeMap<NodeId, PageNodeLink>,
    /// Sorted, without overlap.
    chunks: Vec<PlacedChunk>,
    /// With extents, the ranges of the chunks are of places, written as page ids.
    extents: Option<Extents>,
}

impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Placement").field("chunks", &self.chunks).finish_non_exhaustive()
    }
}

impl Placement {
    /// A placement. Pages of no chunk cannot be read.
    ///
    /// # Errors
    /// If a chunk is empty or overlaps another one, or names a node without a link or twice.
    pub fn new(
        links: Vec<PageNodeLink>,
        mut chunks: Vec<PlacedChunk>,
    ) -> Result<Placement, PlacementError> {
        let mut by_node = BTreeMap::new();
        for link in links {
            let node = link.node;
            if by_node.insert(node, link).is_some() {
                return Err(PlacementError::Node { node });
            }
        }
        chunks.sort_by_key(|chunk| *chunk.pages.start());
        for chunk in &chunks {
            if chunk.pages.is_empty() || !(1..=MAX_COPIES).contains(&chunk.nodes.len()) {
                return Err(PlacementError::Empty { from: *chunk.pages.start() });
            }
            let mut nodes = chunk.nodes.iter().enumerate();
            let is_bad = |(index, node): &(usize, &NodeId)| {
                !by_node.contains_key(node) || chunk.nodes[..*index].contains(node)
            };
            if let Some((_, node)) = nodes.find(is_bad) {
                return Err(PlacementError::Node { node: *node });
            }
        }
        let mut pairs = chunks.windows(2);
        if let Some(pair) = pairs.find(|pair| pair[0].pages.end() >= pair[1].pages.start()) {
            return Err(PlacementError::Overlap { page: *pair[1].pages.start() });
        }
        Ok(Placement { links: by_node, chunks, extents: None })
    }

    /// A placement of parts of all pages.
    ///
    /// # Errors
    /// As [`Placement::new`].
    pub fn spread(
        links: Vec<PageNodeLink>,
        extents: Extents,
        parts: Vec<PlacedPart>,
    ) -> Result<Placement, PlacementError> {
        let chunk = |part: PlacedPart| match part.end.checked_sub(1) {
            Some(last) => Ok(PlacedChunk { pages: key(part.first)..=key(last), nodes: part.nodes }),
            None => Err(PlacementError::Empty { from: key(part.first) }),
        };
        let chunks = parts.into_iter().map(chunk).collect::<Result<_, _>>()?;
        Ok(Placement { extents: Some(extents), ..Placement::new(links, chunks)? })
    }

    /// All pages at each of these nodes.
    ///
    /// # Errors
    /// If there is no node, or one twice.
    pub fn everywhere(links: Vec<PageNodeLink>) -> Result<Placement, PlacementError> {
        let pages = PageId::from_u64(0)..=PageId::from_u64(u64::MAX);
        let nodes = links.iter().map(|link| link.node).collect();
        Placement::new(links, vec![PlacedChunk { pages, nodes }])
    }

    #[must_use]
    pub fn chunks(&self) -> &[PlacedChunk] {
        &self.chunks
    }
}

/// A place as a chunk's range has it.
fn key(place: u32) -> PageId {
    PageId::from_u64(u64::from(place))
}

/// A page of the range of a chunk.
fn sample(extents: Option<Extents>, pages: &RangeInclusive<PageId>) -> PageId {
    let place = |page: &PageId| page.to_u64() as u32;
    let found = extents.and_then(|extents| {
        extents.page_within(place(pages.start()), place(pages.end()).saturating_add(1))
    });
    found.unwrap_or(*pages.start())
}

/// A placement in use.
pub(super) struct Map {
    /// Sorted by their numbers.
    pub(super) nodes: Vec<Arc<Node>>,
    chunks: Vec<Arc<Chunk>>,
    /// See [`Placement`].
    extents: Option<Extents>,
}

/// A chunk in use.
pub(super) struct Chunk {
    pages: RangeInclusive<PageId>,
    /// One of its pages.
    sample: PageId,
    pub(super) nodes: Vec<Arc<Node>>,
    /// See [`PageNodeLink::is_far`].
    are_far: Vec<bool>,
    /// Latch rule 1: the mutex is a leaf.
    applied: Mutex<Applied>,
}

struct Applied {
    /// Of each node, as last heard.
    at_nodes: Vec<Lsn>,
    /// What callers were told: never goes back.
    covered: Lsn,
}

impl Map {
    /// Puts a placement into use. What is known of its nodes and chunks is taken over.
    pub(super) fn new(placement: Placement, before: Option<&Map>) -> Map {
        let known = |id, caller: &Arc<Caller>| {
            let known = before?.nodes.iter().find(|node| node.id == id)?;
            Arc::ptr_eq(&known.caller, caller).then(|| Arc::clone(known))
        };
        let node = |link: &PageNodeLink| {
            let known = known(link.node, &link.caller);
            known.unwrap_or_else(|| Arc::new(Node::new(link.node, Arc::clone(&link.caller))))
        };
        let links = placement.links;
        let nodes: Vec<Arc<Node>> = links.values().map(node).collect();
        let find = |id: &NodeId| {
            let at = nodes.binary_search_by_key(id, |node| node.id).expect("it was checked");
            Arc::clone(&nodes[at])
        };
        let extents = placement.extents;
        let chunk = |placed: PlacedChunk| {
            let of_chunk: Vec<Arc<Node>> = placed.nodes.iter().map(find).collect();
            let covered = before.map_or(Lsn(0), |before| before.covered_in(extents, &placed.pages));
            let applied = Applied { at_nodes: vec![Lsn(0); of_chunk.len()], covered };
            let (pages, sample) = (placed.pages.clone(), sample(extents, &placed.pages));
            let are_far = placed.nodes.iter().map(|node| links[node].is_far).collect();
            let applied = Mutex::new(applied);
            Arc::new(Chunk { pages, sample, nodes: of_chunk, are_far, applied })
        };
        let chunks = placement.chunks.into_iter().map(chunk).collect();
        Map { nodes, chunks, extents }
    }

    /// The chunk that has `page`.
    pub(super) fn chunk(&self, page: PageId) -> Option<&Arc<Chunk>> {
        self.with_key(self.extents.map_or(page, |extents| key(extents.place(page))))
    }

    /// The chunk whose range has `key`.
    fn with_key(&self, key: PageId) -> Option<&Arc<Chunk>> {
        let after = self.chunks.partition_point(|chunk| *chunk.pages.start() <= key);
        let chunk = &self.chunks[after.checked_sub(1)?];
        chunk.pages.contains(&key).then_some(chunk)
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        self.chunks.iter()
    }

    /// The chunks that `node` has, with its place in each.
    pub(super) fn chunks_of(&self, node: &Node) -> Vec<(Arc<Chunk>, usize)> {
        let place = |chunk: &Arc<Chunk>| chunk.nodes.iter().position(|other| other.id == node.id);
        self.chunks.iter().filter_map(|chunk| Some((Arc::clone(chunk), place(chunk)?))).collect()
    }

    /// What callers were told of the chunk that has all of these pages, by these extents. Chunks
    /// are moved and split; one that joins several has to be heard of first.
    fn covered_in(&self, extents: Option<Extents>, pages: &RangeInclusive<PageId>) -> Lsn {
        if self.extents != extents {
            // A chunk of all pages has them however they lie.
            return match &*self.chunks {
                [all] if all.has_everything() => all.covered(),
                _ => Lsn(0),
            };
        }
        let chunk = self.with_key(*pages.start()).filter(|chunk| chunk.pages.contains(pages.end()));
        chunk.map_or(Lsn(0), |chunk| chunk.covered())
    }
}

impl Chunk {
    fn has_everything(&self) -> bool {
        self.pages == (PageId::from_u64(0)..=PageId::from_u64(u64::MAX))
    }

    /// One of the chunk's pages: what holds for it holds for all.
    pub(super) fn sample(&self) -> PageId {
        self.sample
    }

    /// Every node of the chunk has this much durable (P6).
    pub(super) fn covered(&self) -> Lsn {
        self.applied.lock().covered
    }

    /// The node at `place` says how far it is.
    pub(super) fn note_applied(&self, place: usize, position: Lsn) {
        let mut applied = self.applied.lock();
        let at_node = &mut applied.at_nodes[place];
        *at_node = position.max(*at_node);
        let all = applied.at_nodes.iter().copied().min().unwrap_or_default();
        applied.covered = applied.covered.max(all);
    }

    /// The places of the nodes in the order in which they are asked for `page`: those that are
    /// avoided for longest come last, and of the others those that are far.
    pub(super) fn order(&self, page: PageId, now: Duration) -> Vec<usize> {
        let count = self.nodes.len();
        let first = (page.page_no.0 / STRIPE_PAGES) as usize % count;
        let mut order: Vec<usize> = (0..count).map(|place| (first + place) % count).collect();
        let rank = |place: usize| (self.nodes[place].avoided_until().max(now), self.are_far[place]);
        order.sort_by_key(|place| rank(*place));
        order
    }
}
