//! Threads of a library's pool, which a wait in Firn's code must not take from the pool.
//!
//! A pool has about as many threads as the machine has processors. A task of the pool that waits
//! here, for the disk, for the network or on an [`Event`](crate::event::Event), would keep its
//! thread from all other tasks. The code that waits does not know which thread it runs on. The
//! thread knows it: the pool installs a function on each of its threads, and this crate passes
//! every wait of such a thread to that function.
//!
//! ```text
//!   pool, at a thread's start ──► adopt(stack, hand_over)
//!   task ──► engine ──► File::read_at, Event::wait ──► wait ──► hand_over: another thread
//!                                                               continues with the pool's tasks
//! ```
//!
//! A thread that was not adopted waits where it is. Asking costs it one read of a thread-local
//! beside a system call.

use std::cell::Cell;

use crate::stack;

/// Lets another thread continue with the pool's tasks while this thread runs a wait. It must run
/// the wait exactly once, on the calling thread.
pub type HandOver = fn(&mut dyn FnMut());

thread_local! {
    static HAND_OVER: Cell<Option<HandOver>> = const { Cell::new(None) };
}

/// Makes the calling thread, which a library has started with a stack of `stack_bytes`, one of the
/// process's: recursive code knows how much stack it has, and waits go through `hand_over`. Call it
/// at the thread's start.
pub fn adopt(stack_bytes: usize, hand_over: HandOver) {
    stack::begin(stack_bytes);
    HAND_OVER.set(Some(hand_over));
}

/// Runs a wait: a call that may take long without work for the processor.
pub(crate) fn wait<T>(wait: impl FnOnce() -> T) -> T {
    let Some(hand_over) = HAND_OVER.get() else { return wait() };
    let (mut wait, mut result) = (Some(wait), None);
    hand_over(&mut || result = wait.take().map(|wait| wait()));
    result.expect("a pool runs the wait that it was given")
}

#[cfg(test)]
mod tests;
