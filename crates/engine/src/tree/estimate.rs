//! Estimates the number of entries between two keys from the two paths that lead to them.
//!
//! A key's position is a fraction: its slot on each level over the number of slots, level by level,
//! like the digits of a number. The estimate is the difference of two fractions times the tree's
//! estimated size. If both keys are in one leaf it is exact.
//!
//! The tree's estimated size is its size if all pages had as many slots as those on a path. The
//! ends of a long range are often the tree's edges, whose pages are emptier than others, so a few
//! paths between them are used instead.

use firn_api::rows::Estimate;
use firn_base::PageId;
use firn_format::tree::TreePage;
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::pages::Restart;
use crate::tree::{Target, TreeReader};

/// Where a path went on one level.
#[derive(Debug, Clone, Copy)]
struct Turn {
    page: PageId,
    slot: usize,
    slots: usize,
}

type Path = SmallVec<[Turn; 8]>;
type Paths = SmallVec<[Path; SAMPLES]>;

/// Paths that are read within a long range.
const SAMPLES: usize = 3;

impl TreeReader<'_> {
    /// The number of entries with `low ≤ key < high`; without `high`, up to the end. Reads one leaf
    /// for each bound, and [`SAMPLES`] more in a long range.
    ///
    /// # Errors
    /// A page was not available.
    pub fn estimate(&self, low: &[u8], high: Option<&[u8]>) -> Result<Estimate, EngineError> {
        let from = self.path(Target::At(low), |leaf| leaf.lower_bound(low))?;
        let to = match high {
            Some(high) => self.path(Target::At(high), |leaf| leaf.lower_bound(high))?,
            None => self.path(Target::Last, |leaf| leaf.slot_count())?,
        };
        let (from_leaf, to_leaf) = (from[from.len() - 1], to[to.len() - 1]);
        if from_leaf.page == to_leaf.page {
            let entries = to_leaf.slot.saturating_sub(from_leaf.slot) as f64;
            return Ok(Estimate { entries, leaves: 1.0, is_exact: true });
        }
        let share = (fraction(&to) - fraction(&from)).max(0.0);
        let mut paths = self.paths_between(&from, &to)?;
        if paths.is_empty() {
            paths.extend([from, to]);
        }
        let mean =
            |leaves| paths.iter().map(|path| size(path, leaves)).sum::<f64>() / paths.len() as f64;
        Ok(Estimate { entries: share * mean(false), leaves: share * mean(true), is_exact: false })
    }

    /// Some paths between two others; empty if the range is short.
    fn paths_between(&self, from: &Path, to: &Path) -> Result<Paths, EngineError> {
        let parted = from.iter().zip(to).find(|(from, to)| from.slot != to.slot);
        let Some((from, to)) = parted.filter(|(from, to)| from.page == to.page) else {
            return Ok(Paths::new());
        };
        let keys = self.pages().run(|| {
            let guard = self.pages().pool.shared(from.page)?;
            let node = self.node(&guard)?;
            // The page may have changed in the meantime.
            let slots = from.slot + 1..to.slot.min(node.slot_count());
            let step = slots.len().div_ceil(SAMPLES).max(1);
            Ok(slots.step_by(step).map(|slot| node.key(slot)).collect::<Vec<_>>())
        })?;
        keys.iter().map(|key| self.path(Target::At(key), |leaf| leaf.lower_bound(key))).collect()
    }

    /// The path to a leaf; `place` finds the slot there.
    fn path(
        &self,
        target: Target<'_>,
        place: impl Fn(&TreePage<'_>) -> usize,
    ) -> Result<Path, EngineError> {
        self.pages().run(|| {
            let epoch = crossbeam_epoch::pin();
            let leaf = self.arrive_shared(target, 0, &epoch)?.guard;
            let node = self.node(&leaf)?;
            let mut path = Path::new();
            path.push(Turn {
                page: node.page_id(),
                slot: place(&node),
                slots: node.slot_count().max(1),
            });
            drop(leaf);
            self.climb(target, &epoch, &mut path)?;
            path.reverse();
            Ok(path)
        })
    }

    /// Adds the positions on the levels above the leaf, lowest first.
    fn climb(
        &self,
        target: Target<'_>,
        epoch: &crossbeam_epoch::Guard,
        path: &mut Path,
    ) -> Result<(), Restart> {
        let top = self.node(&*self.pages().pool.shared(self.root())?)?.level();
        for level in 1..=top {
            let guard = self.arrive_shared(target, level, epoch)?.guard;
            let node = self.node(&guard)?;
            let slot = match target {
                Target::At(key) => node.find_child(key).0,
                Target::Before(key) => node.lower_bound(key).saturating_sub(1),
                Target::Last => node.slot_count().saturating_sub(1),
            };
            path.push(Turn { page: node.page_id(), slot, slots: node.slot_count().max(1) });
        }
        Ok(())
    }
}

/// The number of leaves or entries of the whole tree, if all pages were like those on the path.
fn size(path: &Path, leaves: bool) -> f64 {
    let levels = path.len() - usize::from(leaves);
    path[..levels].iter().map(|turn| turn.slots as f64).product()
}

fn fraction(path: &Path) -> f64 {
    path.iter().rev().fold(0.0, |below, turn| (turn.slot as f64 + below) / turn.slots as f64)
}
