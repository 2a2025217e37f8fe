//! How the pages of a layout are divided: parts of all places, and the nodes of each.
//!
//! A cluster begins with parts of equal size. Those that grow are cut in the middle, so the layout
//! of a cluster that has run for a while may say where its parts begin:
//!
//! ```toml
//! page_bounds = [2147483647, 3221225471]      # three parts: their places begin at 0 and at these
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

use firn_api::PageFilter;
use firn_base::network::NodeId;
use firn_base::{Extents, PageNo};
use firn_control::{ChunkId, equal_parts, narrowed};
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

use super::{Layout, LayoutError, MAX_CHUNKS, PagePart, Reader};

/// The key that lists the nodes of each part of the pages.
pub(super) const PAGE_NODES: &str = "page_nodes";
/// The key that lists where parts begin, if they are not equal.
pub(super) const PAGE_BOUNDS: &str = "page_bounds";

/// The pages of a chunk that a node has, and where it has them. The order of the fields is part of
/// the format of the node's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldPart {
    pub first: PageNo,
    pub end: PageNo,
    pub extents: Extents,
    /// The cluster had no other chunk when the node got this one. It is in the page node's
    /// directory itself, and has the node's name among the log's readers.
    pub is_alone: bool,
}

impl HeldPart {
    /// The records and pages of the part.
    pub(crate) fn filter(&self) -> PageFilter {
        match self.places() {
            Range { start: PageNo(0), end: PageNo::NONE } => PageFilter::All,
            Range { start, end } => PageFilter::places(self.extents, start.0..end.0),
        }
    }

    pub(crate) fn places(&self) -> Range<PageNo> {
        self.first..self.end
    }

    /// Whether all pages of the other part are in this one.
    pub(crate) fn covers(&self, other: &HeldPart) -> bool {
        let is_within = self.first <= other.first && other.end <= self.end;
        // If all pages are there, it does not matter how they lie together.
        is_within && (self.extents == other.extents || self.filter() == PageFilter::All)
    }

    /// How many places it has.
    pub(crate) fn width(&self) -> u64 {
        u64::from(self.end.0.saturating_sub(self.first.0))
    }
}

impl PagePart {
    pub(super) fn places(&self) -> Range<PageNo> {
        self.first..self.end
    }
}

impl Layout {
    /// The part of a chunk, for a node that gets it now. `None` if there is no such chunk.
    pub(crate) fn held_part(&self, chunk: ChunkId) -> Option<HeldPart> {
        let PagePart { first, end, .. } = self.chunks.get(&chunk)?;
        let (first, end, extents) = (*first, *end, self.extents);
        Some(HeldPart { first, end, extents, is_alone: self.chunks.len() == 1 })
    }

    /// What a node keeps of a chunk, if that is less than it has: the chunk was cut in two, and the
    /// rest is in service as another chunk.
    pub(crate) fn kept_part(&self, chunk: ChunkId, held: &HeldPart) -> Option<HeldPart> {
        let own = self.chunks.get(&chunk)?.places();
        let others =
            self.chunks.iter().filter(|(id, part)| **id != chunk && !part.nodes.is_empty());
        let kept = narrowed(&held.places(), &own, others.map(|(_, part)| part.places()))?;
        let extents = self.extents;
        Some(HeldPart { first: kept.start, end: kept.end, extents, is_alone: held.is_alone })
    }

    /// The parts in the order of their places.
    pub(super) fn in_order(&self) -> Vec<&PagePart> {
        let mut parts: Vec<&PagePart> = self.chunks.values().collect();
        parts.sort_by_key(|part| part.first);
        parts
    }

    /// Where all parts but the first begin.
    fn bounds(&self) -> Vec<u32> {
        self.in_order().iter().skip(1).map(|part| part.first.0).collect()
    }

    /// How a layout says into which parts the pages are divided: nothing if there is one.
    pub(super) fn bounds_text(&self) -> Option<String> {
        let count = self.chunks.len() as u32;
        let are_equal =
            self.in_order().into_iter().map(|part| (part.first, part.end)).eq(equal_parts(count));
        match (count, are_equal) {
            (1, _) => None,
            (_, true) => Some(format!("page_chunks = {count}")),
            (_, false) => {
                let bounds: Vec<_> = self.bounds().iter().map(ToString::to_string).collect();
                Some(format!("{PAGE_BOUNDS} = [{}]", bounds.join(", ")))
            }
        }
    }

    /// The nodes of each part, as a layout says them.
    pub(super) fn places_text(&self) -> String {
        let place = |part: &PagePart| {
            let numbers: Vec<_> = part.nodes.iter().map(ToString::to_string).collect();
            format!("[{}]", numbers.join(", "))
        };
        self.in_order().into_iter().map(place).collect::<Vec<_>>().join(", ")
    }
}

/// The places of parts that begin at 0 and at these bounds. `None` if they do not go up.
pub(super) fn parts_between(bounds: &[u32]) -> Option<Vec<(PageNo, PageNo)>> {
    let all: Vec<u32> = [0].into_iter().chain(bounds.iter().copied()).chain([u32::MAX]).collect();
    let go_up = all.windows(2).all(|two| two[0] < two[1]);
    go_up.then(|| all.windows(2).map(|two| (PageNo(two[0]), PageNo(two[1]))).collect())
}

impl Reader<'_> {
    /// Where all parts but the first begin, if the text says it.
    pub(super) fn bounds(&self, table: &DeTable<'_>) -> Result<Option<Vec<u32>>, LayoutError> {
        let Some((_, value)) = table.iter().find(|(key, _)| key.get_ref() == PAGE_BOUNDS) else {
            return Ok(None);
        };
        let number = |value: &DeValue<'_>| match value {
            DeValue::Integer(digits) => digits.as_str().parse::<u32>().ok(),
            _ => None,
        };
        let bounds = match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|one| number(one.get_ref())).collect(),
            _ => None,
        };
        let fits = |bounds: &Vec<u32>| {
            (1..MAX_CHUNKS as usize).contains(&bounds.len()) && parts_between(bounds).is_some()
        };
        let refused = || {
            let what = format!(
                "{PAGE_BOUNDS} lists where parts of the pages begin: numbers that go up, above 0 \
                 and below {}, for at most {MAX_CHUNKS} parts",
                u32::MAX
            );
            self.refuse(&value.span(), what)
        };
        bounds.filter(fits).map(Some).ok_or_else(refused)
    }

    /// The nodes of each part of the pages, if the text says them.
    pub(super) fn places(
        &self,
        table: &DeTable<'_>,
    ) -> Result<Option<Vec<BTreeSet<NodeId>>>, LayoutError> {
        let Some((_, value)) = table.iter().find(|(key, _)| key.get_ref() == PAGE_NODES) else {
            return Ok(None);
        };
        let numbers = |list: &DeValue<'_>| {
            let DeValue::Array(numbers) = list else { return None };
            let number = |number: &DeValue<'_>| match number {
                DeValue::Integer(digits) => digits.as_str().parse().ok().map(NodeId),
                _ => None,
            };
            numbers.iter().map(|value| number(value.get_ref())).collect::<Option<BTreeSet<_>>>()
        };
        let lists = match value.get_ref() {
            DeValue::Array(lists) => lists.iter().map(|list| numbers(list.get_ref())).collect(),
            _ => None,
        };
        let refused = || {
            let what =
                format!("{PAGE_NODES} lists the numbers of nodes for each part: [[1, 2], [2, 3]]");
            self.refuse(&value.span(), what)
        };
        lists.map(Some).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests;
