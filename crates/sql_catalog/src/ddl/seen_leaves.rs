//! The leaves in which a snapshot has seen a table's rows, so that a later one can skip unchanged
//! leaves.
//!
//! ```text
//!   snapshot 1  │ leaf a │ leaf b │ rows │ leaf d │  rows: some so new that a later snapshot
//!   snapshot 2  └─ held ──────────┘ read └─ held ─┘        may see others in the same leaf
//! ```

use std::ops::Range;
use std::sync::Arc;

use firn_api::rows::{LeafVersion, Scan};
use rustc_hash::FxHashMap;

/// Leaves with rows, in the table's order. About 100 bytes and two keys each.
#[derive(Default)]
pub(super) struct SeenLeaves {
    leaves: Vec<Leaf>,
    places: FxHashMap<LeafVersion, usize>,
    /// For [`SeenLeaves::held_from`]; built at its first call.
    versions: std::cell::OnceCell<Box<[LeafVersion]>>,
    /// Rows came since the last leaf that are in no leaf of the list.
    has_others: bool,
}

/// The first and the last key in a leaf.
struct FirstAndLast(Box<[u8]>, Box<[u8]>);

#[derive(Clone)]
struct Leaf {
    version: LeafVersion,
    keys: Arc<FirstAndLast>,
    /// The snapshot saw no row between the previous leaf in the list and this one.
    follows: bool,
}

impl SeenLeaves {
    /// Notes the current batch of a scan: all rows of `leaf` if one is named.
    pub(super) fn push_batch(&mut self, leaf: Option<LeafVersion>, scan: &dyn Scan) {
        if scan.is_empty() {
            return;
        }
        match leaf {
            Some(version) => {
                let key = |number: usize| Box::from(scan.row(number).key);
                let keys = Arc::new(FirstAndLast(key(0), key(scan.len() - 1)));
                self.push(Leaf { version, keys, follows: true });
            }
            None => self.has_others = true,
        }
    }

    /// Notes unchanged leaves of an earlier snapshot.
    pub(super) fn push_known(&mut self, known: &SeenLeaves, places: Range<usize>) {
        known.leaves[places].iter().for_each(|leaf| self.push(leaf.clone()));
    }

    fn push(&mut self, leaf: Leaf) {
        let follows = !std::mem::take(&mut self.has_others);
        self.places.insert(leaf.version, self.leaves.len());
        self.leaves.push(Leaf { follows, ..leaf });
    }

    /// Where a leaf is in the list.
    pub(super) fn place(&self, leaf: LeafVersion) -> Option<usize> {
        self.places.get(&leaf).copied()
    }

    /// The list from a place on, in the form for a scan.
    pub(super) fn held_from(&self, place: usize) -> &[LeafVersion] {
        let versions =
            self.versions.get_or_init(|| self.leaves.iter().map(|leaf| leaf.version).collect());
        &versions[place..]
    }

    /// Whether no row lies between the previous leaf in the list, or the table's start, and this
    /// one.
    pub(super) fn follows(&self, place: usize) -> bool {
        self.leaves[place].follows
    }

    /// The first key of a leaf.
    pub(super) fn first_key(&self, place: usize) -> &[u8] {
        &self.leaves[place].keys.0
    }

    /// The last key of a leaf.
    pub(super) fn last_key(&self, place: usize) -> &[u8] {
        &self.leaves[place].keys.1
    }
}
