//! Collections that may grow large: their elements are freed by a thread of their own.
//!
//! Millions of small allocations take a while to give back, and nobody is to wait for that: least of all the client
//! whose statement was killed. The statement's account of memory does not know of the moment between.

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};

/// So many elements are freed where they are.
const FEW: usize = 4_000;

/// Something with elements.
pub(crate) trait Collection: Default + Send + 'static {
    /// How many elements there are.
    fn count(&self) -> usize;
}

/// A collection whose end does not take long.
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

/// Takes so many elements and frees them elsewhere; few ones are left to the caller.
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
