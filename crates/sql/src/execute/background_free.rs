//! Collections that may grow large: the process's reaper frees their elements, see
//! [`firn_base::reaper`]. The statement's memory account does not include the memory in the
//! meantime.

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};

/// Up to this many elements are freed in place.
const FEW: usize = 4_000;

/// Something with elements.
pub(crate) trait Collection: Default + Send + 'static {
    /// How many elements there are.
    fn count(&self) -> usize;
}

/// A collection that is dropped quickly.
#[derive(Clone, Default)]
pub(crate) struct Bulk<C: Collection>(C);

impl<C: Collection> From<C> for Bulk<C> {
    fn from(collection: C) -> Bulk<C> {
        Bulk(collection)
    }
}

impl<C: Collection> Bulk<C> {
    /// Leaves it empty.
    pub(crate) fn discard(&mut self) {
        *self = Bulk::default();
    }
}

impl<C: Collection> Deref for Bulk<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C: Collection> DerefMut for Bulk<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.0
    }
}

impl<C: Collection> Drop for Bulk<C> {
    fn drop(&mut self) {
        free(self.0.count(), || std::mem::take(&mut self.0));
    }
}

/// Takes `count` elements and frees them elsewhere; a few are left to the caller.
pub fn free<T: Send + 'static>(count: usize, take: impl FnOnce() -> T) {
    if count <= FEW {
        return;
    }
    firn_base::reaper::drop_aside(take());
}

impl<T: Send + 'static> Collection for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<T: Send + 'static> Collection for std::vec::IntoIter<T>
where
    std::vec::IntoIter<T>: Default,
{
    fn count(&self) -> usize {
        self.len()
    }
}

impl<K: Send + 'static, V: Send + 'static, S: Default + Send + 'static> Collection
    for HashMap<K, V, S>
{
    fn count(&self) -> usize {
        self.len()
    }
}

impl<K: Send + 'static, S: Default + Send + 'static> Collection for HashSet<K, S> {
    fn count(&self) -> usize {
        self.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread::{ThreadId, current};

    use super::{Bulk, FEW};

    /// Tells which thread dropped it.
    struct Tells(Sender<ThreadId>);

    impl Drop for Tells {
        fn drop(&mut self) {
            // A test that has failed does not listen.
            let _ = self.0.send(current().id());
        }
    }

    fn elements(count: usize, told: &Sender<ThreadId>) -> Bulk<Vec<Tells>> {
        (0..count).map(|_| Tells(told.clone())).collect::<Vec<_>>().into()
    }

    #[test]
    fn one_thread_frees_all_large_collections() {
        let (told, dropped) = channel();
        (0..8).for_each(|_| drop(elements(FEW + 1, &told)));
        drop(told);
        let mut threads: Vec<ThreadId> = dropped.iter().collect();
        assert_eq!(threads.len(), 8 * (FEW + 1));
        threads.dedup();
        assert_eq!(threads.len(), 1, "{threads:?}");
        assert_ne!(threads[0], current().id());
    }

    #[test]
    fn a_few_elements_are_freed_in_place() {
        let (told, dropped) = channel();
        drop(elements(FEW, &told));
        drop(told);
        assert!(dropped.try_iter().all(|thread| thread == current().id()));
    }
}
