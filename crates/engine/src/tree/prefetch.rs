//! Batched key prepare (BKP, paper 001 §4.2): the pages of a batch of keys are fetched in the
//! background, so that a join finds them cached. And read-ahead of the next leaves of a scan.

use firn_base::PageId;
use firn_format::page::PageBuf;

use crate::pages::Restart;
use crate::tree::{Target, TreeReader};

/// Where the leaves after the fetched ones begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// Leaves from this key on.
    From(Vec<u8>),
    End,
    /// Not known yet; ask again later.
    Unknown,
}

impl TreeReader<'_> {
    /// Starts fetching the leaves of `keys`. Returns at once. An inner node that is not cached is
    /// fetched instead of its descendants. Returns how many pages are being fetched.
    pub fn prefetch<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> usize {
        let epoch = crossbeam_epoch::pin();
        let mut wanted: Vec<PageId> = keys
            .into_iter()
            .filter_map(|key| match self.locate(Target::At(key), 0, &epoch) {
                Ok(leaf) if self.pages().pool.contains(leaf) => None,
                Ok(page) | Err(Restart::Need(page)) => Some(page),
                Err(_) => None,
            })
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        self.pages().pool.prefetch(&wanted);
        wanted.len()
    }

    /// Starts fetching up to `count` leaves from the leaf of `from` on, as far as one inner node
    /// lists them. Returns where the following leaves begin. Does not wait: an inner node that is
    /// not cached is fetched instead.
    pub(crate) fn prefetch_leaves(&self, from: &[u8], count: usize) -> Ahead {
        let pool = &self.pages().pool;
        let epoch = crossbeam_epoch::pin();
        let ahead = self.locate(Target::At(from), 1, &epoch).and_then(|parent| {
            match pool.optimistic(parent, &epoch)? {
                Some(image) => self.leaves_from(&image, from, count),
                None => self.leaves_from(&*pool.shared(parent)?, from, count),
            }
        });
        match ahead {
            Ok((leaves, next)) => {
                pool.prefetch(&leaves);
                next
            }
            Err(Restart::Need(page)) => {
                pool.prefetch(&[page]);
                Ahead::Unknown
            }
            Err(_) => Ahead::Unknown,
        }
    }

    /// The children of an inner node from the child for `from` on, and the key of the next one.
    fn leaves_from(
        &self,
        parent: &PageBuf,
        from: &[u8],
        count: usize,
    ) -> Result<(Vec<PageId>, Ahead), Restart> {
        let node = self.node(parent)?;
        let first = node.find_child(from).0;
        let end = (first + count).min(node.slot_count());
        let leaves = (first..end).map(|slot| self.page(node.child(slot))).collect();
        if end < node.slot_count() {
            let mut next = Vec::new();
            node.key_into(end, &mut next);
            return Ok((leaves, Ahead::From(next)));
        }
        let next = node.high_fence().map(|high| Ahead::From(high.to_vec()));
        Ok((leaves, next.unwrap_or(Ahead::End)))
    }
}
