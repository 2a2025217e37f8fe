//! Batched key prepare (BKP, paper 001 §4.2): the pages behind a batch of keys are fetched in the
//! background, so that a join finds them cached.

use firn_base::PageId;

use crate::pages::Restart;
use crate::tree::{Target, Tree};

impl Tree<'_> {
    /// Starts to fetch the leaves for `keys`. Returns at once; inner nodes that are not cached are
    /// fetched instead of what is below them. Returns how many pages are being fetched.
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
}
