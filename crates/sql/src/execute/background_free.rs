//! Collections that may grow large: a separate thread frees their elements.
//!
//! Freeing millions of small allocations takes a while, and no client should wait for it, least of
//! all one whose statement was killed. The statement's memory account does not include the memory
//! in the meantime.

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
    let remains = take();
    firn_base::task::run_aside("remains", move || drop(remains));
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
