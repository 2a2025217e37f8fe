//! A bounded number of threads that do what is queued.
//!
//! Latch rule 6: the mutex of the queue is a leaf. The queue is as long as the credit of all
//! clients lets it be.

use std::collections::VecDeque;

use firn_base::event::Event;
use parking_lot::Mutex;

pub(super) struct Pool<T> {
    queue: Mutex<Queue<T>>,
    changed: Event,
}

struct Queue<T> {
    works: VecDeque<T>,
    is_closed: bool,
}

impl<T> Pool<T> {
    pub(super) fn new() -> Pool<T> {
        let queue = Queue { works: VecDeque::new(), is_closed: false };
        Pool { queue: Mutex::new(queue), changed: Event::new() }
    }

    /// Queues work. It is dropped if the pool was closed.
    pub(super) fn put(&self, work: T) {
        let refused = {
            let mut queue = self.queue.lock();
            match queue.is_closed {
                true => Some(work),
                false => {
                    queue.works.push_back(work);
                    None
                }
            }
        };
        match refused {
            // Dropped without the mutex: it may answer its client.
            Some(work) => drop(work),
            None => self.changed.notify_one(),
        }
    }

    /// Does what is queued, until the pool is closed. The body of a worker.
    pub(super) fn run(&self, execute: impl Fn(T)) {
        loop {
            let mut next = None;
            self.changed.wait_until(None, || {
                let mut queue = self.queue.lock();
                next = queue.works.pop_front();
                next.is_some() || queue.is_closed
            });
            match next {
                Some(work) => execute(work),
                None => return,
            }
        }
    }

    /// Ends the workers. Work that none of them has begun is dropped.
    pub(super) fn close(&self) {
        let works = {
            let mut queue = self.queue.lock();
            queue.is_closed = true;
            std::mem::take(&mut queue.works)
        };
        drop(works);
        self.changed.notify_all();
    }
}
