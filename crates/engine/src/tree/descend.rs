//! From the root to a page, without latches (rules 1 and 6).

use crossbeam_epoch::Guard as Epoch;
use firn_base::{IndexId, PageId, PageNo};
use firn_buffer::{ExclusiveGuard, SharedGuard};
use firn_format::page::PageBuf;
use firn_format::tree::{Position, TreePage};

use crate::error::EngineError;
use crate::pages::Restart;
use crate::tree::{Forest, Tree, TreeReader};

/// The page of a level that a descent looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'k> {
    /// The leaf of this key, present or not.
    At(&'k [u8]),
    /// The leaf of the greatest key below this one; the key is not empty.
    Before(&'k [u8]),
    Last,
}

/// The position of a page relative to the target.
enum Step {
    Here,
    Right(PageNo),
    Back,
}

impl Target<'_> {
    fn step(&self, node: &TreePage<'_>) -> Step {
        let is_left_of_target = match (self, node.high_fence()) {
            (_, None) => false,
            (Target::At(key), Some(high)) => *key >= high,
            (Target::Before(key), Some(high)) => *key > high,
            (Target::Last, Some(_)) => true,
        };
        if is_left_of_target {
            return Step::Right(node.right());
        }
        match self {
            Target::At(key) if node.covers(key) == Position::Before => Step::Back,
            Target::Before(key) if *key <= node.low_fence() => Step::Back,
            _ => Step::Here,
        }
    }

    fn child(&self, node: &TreePage<'_>) -> PageNo {
        match self {
            Target::At(key) => node.find_child(key).1,
            Target::Before(key) => node.child(node.lower_bound(key).saturating_sub(1)),
            Target::Last => node.child(node.slot_count().saturating_sub(1)),
        }
    }
}

/// A page that a descent arrived at, latched.
pub(super) struct Arrived<G> {
    pub(super) guard: G,
    /// The page was reached by a right link, so its separator may be missing in the parent.
    pub(super) by_link: bool,
}

impl<'f> TreeReader<'f> {
    /// The page of `level` that the inner nodes name for `target`; it may have moved right since.
    pub(super) fn locate(
        &self,
        target: Target<'_>,
        level: u8,
        epoch: &Epoch,
    ) -> Result<PageId, Restart> {
        let mut page = self.root();
        loop {
            let image = self.pages().pool.optimistic(page, epoch)?;
            // The image may be from an earlier life of the page. For the root, that would be taken
            // for a dropped tree.
            let image = image.filter(|image| page != self.root() || self.is_own(image));
            let next = match &image {
                Some(image) => self.towards(image, target, level)?,
                None => self.towards(&*self.pages().pool.shared(page)?, target, level)?,
            };
            match next {
                Towards::Arrived => return Ok(page),
                Towards::Child(child, true) => return Ok(child),
                Towards::Child(child, false) => page = child,
                Towards::Right(right) => {
                    self.forest.statistics.right_moves.add(1);
                    page = right;
                }
            }
        }
    }

    fn towards(&self, page: &PageBuf, target: Target<'_>, level: u8) -> Result<Towards, Restart> {
        let node = self.node(page)?;
        if node.level() < level {
            return Err(self.again());
        }
        match target.step(&node) {
            Step::Back => Err(self.again()),
            Step::Right(right) => Ok(Towards::Right(self.page(right))),
            Step::Here if node.level() == level => Ok(Towards::Arrived),
            Step::Here => {
                let child = self.page(target.child(&node));
                Ok(Towards::Child(child, node.level() == level + 1))
            }
        }
    }

    fn is_own(&self, page: &PageBuf) -> bool {
        TreePage::new(page).is_ok_and(|node| node.index() == self.index)
    }

    /// A live node of this tree, or the reason to start again.
    pub(super) fn node<'p>(&self, page: &'p PageBuf) -> Result<TreePage<'p>, Restart> {
        match TreePage::new(page) {
            Ok(node) if !node.is_dead() && node.index() == self.index => Ok(node),
            // The root stays where it is as long as the tree exists (rule 5).
            _ if page.page_id() == self.root() => {
                Err(Restart::Fail(EngineError::NoSuchTree(self.index)))
            }
            _ => Err(self.again()),
        }
    }

    /// Starts the descent again; in a dropped space, fails instead.
    pub(super) fn again(&self) -> Restart {
        if self.forest.dropped.contains(self.root().space) {
            return Restart::Fail(EngineError::NoSuchTree(self.index));
        }
        self.forest.statistics.restarts.add(1);
        Restart::Again
    }

    /// Descends to the page of `level` for `target`, and latches it with `latch`.
    fn arrive<G: std::ops::Deref<Target = PageBuf>>(
        &self,
        target: Target<'_>,
        level: u8,
        epoch: &Epoch,
        latch: impl Fn(PageId) -> Result<G, Restart>,
    ) -> Result<Arrived<G>, Restart> {
        let mut page = self.locate(target, level, epoch)?;
        let mut by_link = false;
        loop {
            let guard = latch(page)?;
            let node = self.node(&guard)?;
            if node.level() != level {
                return Err(self.again());
            }
            match target.step(&node) {
                Step::Here => return Ok(Arrived { guard, by_link }),
                Step::Back => return Err(self.again()),
                Step::Right(right) => {
                    self.forest.statistics.right_moves.add(1);
                    by_link = true;
                    page = self.page(right);
                }
            }
        }
    }

    pub(super) fn arrive_shared(
        &self,
        target: Target<'_>,
        level: u8,
        epoch: &Epoch,
    ) -> Result<Arrived<SharedGuard<'f>>, Restart> {
        let pool = &self.pages().pool;
        self.arrive(target, level, epoch, |page| Ok(pool.shared(page)?))
    }

    /// Passes the leaf for `target` to `look`, latched shared. `look` may be called again, and must
    /// not wait. Also returns the leaf's id if its separator may be missing in the parent.
    ///
    /// # Errors
    /// An error of the page store, or the error of `look`.
    pub fn read<R>(
        &self,
        target: Target<'_>,
        mut look: impl FnMut(&TreePage<'_>) -> Result<R, Restart>,
    ) -> Result<(R, Option<HalfDone>), EngineError> {
        self.pages().run(|| {
            let epoch = crossbeam_epoch::pin();
            let leaf = self.arrive_shared(target, 0, &epoch)?;
            let node = self.node(&leaf.guard)?;
            let result = look(&node)?;
            let half_done =
                leaf.by_link.then(|| HalfDone { tree: self.index, page: node.page_id() });
            Ok((result, half_done))
        })
    }
}

/// A page that a reader reached by a link, so that its separator may be missing in the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a node that writes posts the separator"]
pub struct HalfDone {
    tree: IndexId,
    page: PageId,
}

impl<'f> Tree<'f> {
    pub(super) fn arrive_exclusive(
        &self,
        target: Target<'_>,
        level: u8,
        epoch: &Epoch,
    ) -> Result<Arrived<ExclusiveGuard<'f>>, Restart> {
        let pool = &self.pages().pool;
        self.arrive(target, level, epoch, |page| Ok(pool.exclusive(page)?))
    }

    /// Like [`TreeReader::read`], and completes half-done splits on the way.
    ///
    /// # Errors
    /// As there, or a failed log.
    pub fn read<R>(
        &self,
        target: Target<'_>,
        look: impl FnMut(&TreePage<'_>) -> Result<R, Restart>,
    ) -> Result<R, EngineError> {
        let (result, half_done) = self.reader.read(target, look)?;
        if let Some(split) = half_done {
            self.post_separator(split.page)?;
        }
        Ok(result)
    }
}

impl Forest {
    /// Completes a split that a reader met.
    ///
    /// # Errors
    /// Errors of the page store and the log.
    #[cold]
    pub(crate) fn complete(&self, split: HalfDone) -> Result<(), EngineError> {
        self.tree(split.tree).post_separator(split.page)
    }
}

enum Towards {
    /// The page is found.
    Arrived,
    /// Descend to this child; true if it is on the target's level.
    Child(PageId, bool),
    Right(PageId),
}
