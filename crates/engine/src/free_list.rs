//! Slots and other things that a transaction takes at its begin and returns at its end.
//!
//! ```text
//!   thread 3, 19, …  ─► shard 3  [slot 8]     threads of different shards meet only where one of them
//!   thread 4, 20, …  ─► shard 4  [slot 2, 5]  has nothing left
//! ```
//!
//! With one list for all, every transaction on every core would write the same memory twice. A
//! thread takes what it returned last, which is still in its core's cache.

use crossbeam_utils::CachePadded;
use firn_base::task::thread_number;

use crate::sync::Mutex;

const SHARDS: usize = 16;

#[derive(Debug)]
pub(crate) struct FreeList<T> {
    shards: Box<[CachePadded<Mutex<Vec<T>>>]>,
}

impl<T> FreeList<T> {
    pub(crate) fn new() -> FreeList<T> {
        let shards = (0..SHARDS).map(|_| CachePadded::new(Mutex::new(Vec::new())));
        FreeList { shards: shards.collect() }
    }

    /// Takes an element; `None` if all shards are empty.
    pub(crate) fn take(&self) -> Option<T> {
        let own = thread_number() % SHARDS;
        let found = self.shards[own].lock().pop();
        found.or_else(|| {
            (1..SHARDS).find_map(|step| self.shards[(own + step) % SHARDS].lock().pop())
        })
    }

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
