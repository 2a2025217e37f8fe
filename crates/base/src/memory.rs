//! Memory that is reserved before it is allocated.
//!
//! ```text
//!   ask(64 MiB) ──► Keeper::has_room ──► Promise ──► the caller allocates and fills ──► the promise is dropped
//!                        └─► NoRoom: nothing is allocated, the statement ends with an error
//! ```
//!
//! Memory belongs to the process, so there is one keeper for the process. The keeper compares the
//! memory that the process really uses with its budget. A promise stands for memory that was
//! granted and is not filled yet; the caller drops it as soon as it has filled the memory. Without
//! a keeper there is always room.
//!
//! Only large allocations are reserved; short values cost nothing here.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

/// Smaller allocations are not reserved.
pub const UNASKED_BYTES: usize = 256 << 10;

/// Decides whether the process can take more memory.
pub trait Keeper: Send + Sync {
    /// Whether the process can take `size_bytes` more, besides the promised bytes that it may not
    /// have taken yet. Frees memory where it can. Blocks.
    fn has_room(&self, size_bytes: u64, promised_bytes: u64) -> bool;
}

/// Keeps data that can be computed again.
pub trait Cache: Send + Sync {
    /// Frees what it can without waiting: the caller may hold any lock.
    fn release(&self);
}

static IS_KEPT: AtomicBool = AtomicBool::new(false);
static KEEPER: RwLock<Option<Arc<dyn Keeper>>> = RwLock::new(None);
static CACHES: RwLock<Vec<Weak<dyn Cache>>> = RwLock::new(Vec::new());
static PROMISED_BYTES: AtomicU64 = AtomicU64::new(0);

/// The budget has no room for this many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "Out of memory: the server's memory budget has no room for {0} more bytes; raise memory_budget"
)]
pub struct NoRoom(pub u64);

/// Makes `keeper` the keeper of the process, in place of the former one.
pub fn install(keeper: Arc<dyn Keeper>) {
    *KEEPER.write() = Some(keeper);
    IS_KEPT.store(true, Ordering::Release);
}

/// Removes `keeper`, unless another one was installed after it.
pub fn uninstall(keeper: &Arc<dyn Keeper>) {
    let mut installed = KEEPER.write();
    if installed.as_ref().is_some_and(|other| Arc::ptr_eq(other, keeper)) {
        *installed = None;
        IS_KEPT.store(false, Ordering::Release);
    }
}

/// Registers a cache, which frees memory before a reservation is refused, for as long as the cache
/// lives.
pub fn register_cache(cache: &Arc<dyn Cache>) {
    let mut caches = CACHES.write();
    caches.retain(|other| other.strong_count() > 0);
    caches.push(Arc::downgrade(cache));
}

/// Makes all caches free what they can.
pub fn release_caches() {
    let caches: Vec<_> = CACHES.read().iter().filter_map(Weak::upgrade).collect();
    caches.iter().for_each(|cache| cache.release());
}

/// Bytes that were promised and perhaps not taken yet.
#[must_use]
pub fn promised_bytes() -> u64 {
    PROMISED_BYTES.load(Ordering::Relaxed)
}

/// Reserves `size_bytes`, which the caller is about to allocate.
///
/// # Errors
/// [`NoRoom`]: the caller must not allocate them.
#[inline]
pub fn ask(size_bytes: usize) -> Result<Promise, NoRoom> {
    if size_bytes < UNASKED_BYTES || !IS_KEPT.load(Ordering::Acquire) {
        return Ok(Promise::default());
    }
    ask_keeper(size_bytes as u64)
}

#[cold]
fn ask_keeper(size_bytes: u64) -> Result<Promise, NoRoom> {
    let Some(keeper) = KEEPER.read().clone() else { return Ok(Promise::default()) };
    // Added first, so that two concurrent callers each see the other.
    let others_bytes = PROMISED_BYTES.fetch_add(size_bytes, Ordering::SeqCst);
    let promise = Promise { size_bytes };
    match keeper.has_room(size_bytes, others_bytes) {
        true => Ok(promise),
        false => Err(NoRoom(size_bytes)),
    }
}

/// Bytes that were granted and are not filled yet.
#[derive(Debug, Default)]
#[must_use]
pub struct Promise {
    size_bytes: u64,
}

impl Promise {
    /// Reports that `size_bytes` of the promise have been filled. An empty promise, which every
    /// short value has, writes nothing that threads share.
    #[inline]
    pub fn filled(&mut self, size_bytes: usize) {
        if self.size_bytes == 0 {
            return;
        }
        let size_bytes = self.size_bytes.min(size_bytes as u64);
        self.size_bytes -= size_bytes;
        PROMISED_BYTES.fetch_sub(size_bytes, Ordering::Relaxed);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if self.size_bytes > 0 {
            PROMISED_BYTES.fetch_sub(self.size_bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Room(u64);

    impl Keeper for Room {
        fn has_room(&self, size_bytes: u64, promised_bytes: u64) -> bool {
            size_bytes + promised_bytes <= self.0
        }
    }

    #[test]
    fn caches_give_way_for_as_long_as_they_are_there() {
        struct Kept(AtomicU64);
        impl Cache for Kept {
            fn release(&self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (stays, goes) = (Arc::new(Kept(AtomicU64::new(0))), Arc::new(Kept(AtomicU64::new(0))));
        register_cache(&(Arc::clone(&stays) as Arc<dyn Cache>));
        register_cache(&(Arc::clone(&goes) as Arc<dyn Cache>));
        release_caches();
        assert_eq!((stays.0.load(Ordering::Relaxed), goes.0.load(Ordering::Relaxed)), (1, 1));
        drop(goes);
        release_caches();
        assert_eq!(stays.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_is_promised_counts_until_it_is_filled_or_dropped() {
        const MEBIBYTE: usize = 1 << 20;
        let keeper: Arc<dyn Keeper> = Arc::new(Room(10 << 20));
        install(Arc::clone(&keeper));
        let mut first = ask(6 * MEBIBYTE).unwrap();
        assert_eq!(ask(5 * MEBIBYTE).unwrap_err(), NoRoom(5 << 20));
        first.filled(2 * MEBIBYTE);
        let second = ask(5 * MEBIBYTE).unwrap();
        assert_eq!(promised_bytes(), 9 << 20);
        assert!(ask(2 * MEBIBYTE).is_err());
        // Short values are not reserved.
        assert!(ask(UNASKED_BYTES - 1).is_ok());
        first.filled(100 * MEBIBYTE);
        drop((first, second));
        assert_eq!(promised_bytes(), 0);
        uninstall(&keeper);
        assert!(ask(100 * MEBIBYTE).is_ok());
    }
}
