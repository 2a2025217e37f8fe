//! What transactions take when they begin and give back when they end, such as their slot in a
//! registry.
//!
//! ```text
//!   thread 3, 19, …  ─► shard 3  [slot 8]     threads of different shards meet only where one of them
//!   thread 4, 20, …  ─► shard 4  [slot 2, 5]  has nothing left
//! ```
//!
//! One list for all would be written by every transaction on every core, twice. A thread gets back
//! what it gave last, which its core still has in its cache.

use crossbeam_utils::CachePadded;
use firn_base::task::thread_number;

use crate::sync::Mutex;

const SHARDS: usize = 16;

/// See the module's page.
#[derive(Debug)]
pub(crate) struct FreeList<T> {
    shards: Box<[CachePadded<Mutex<Vec<T>>>]>,
}

impl<T> FreeList<T> {
    /// An empty list.
    pub(crate) fn new() -> FreeList<T> {
        let shards = (0..SHARDS).map(|_| CachePadded::new(Mutex::new(Vec::new())));
        FreeList { shards: shards.collect() }
    }

    /// Takes anything; `None` if there was nothing anywhere.
    pub(crate) fn take(&self) -> Option<T> {
        let own = thread_number() % SHARDS;
        let found = self.shards[own].lock().pop();
        found.or_else(|| {
            (1..SHARDS).find_map(|step| self.shards[(own + step) % SHARDS].lock().pop())
        })
    }

    /// Gives something back.
    pub(crate) fn put(&self, free: T) {
        self.shards[thread_number() % SHARDS].lock().push(free);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn what_one_thread_gave_back_others_find() {
        let list = FreeList::new();
        assert_eq!(list.take(), None);
        (0..3).for_each(|number| list.put(number));
        assert_eq!(list.take(), Some(2), "the last first");
        let rest = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| list.take())).collect();
            let mut rest: Vec<_> =
                threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            rest.sort_unstable();
            rest
        });
        assert_eq!(rest, [None, Some(0), Some(1)]);
    }
}
