//! How much of its stack a thread has left, for code that recurses as deep as its input nests.
//!
//! ```text
//!   begin ├──────── used ────────┤ here ├──────── left ────────┤ end
//! ```
//!
//! A thread that overruns its stack ends the whole process. Recursive code therefore asks before it
//! goes deeper, and refuses its input while enough is left for the walks that do not ask.

use std::cell::Cell;

/// The stack of every thread that [`crate::task::ThreadSpawner`] starts. The system backs only the
/// pages that are touched.
pub const THREAD_STACK_BYTES: usize = 8 << 20;

/// What a thread of unknown origin is taken to have: Rust's default.
const UNKNOWN_STACK_BYTES: usize = 2 << 20;

/// Where this thread's stack begins, as far as it is known, and how long it is.
#[derive(Clone, Copy)]
struct Stack {
    begin: usize,
    size_bytes: usize,
}

thread_local! {
    static STACK: Cell<Option<Stack>> = const { Cell::new(None) };
}

/// Tells that this thread begins here, with a stack of `size_bytes`.
pub fn begin(size_bytes: usize) {
    STACK.set(Some(Stack { begin: address(), size_bytes }));
}

/// The size of this thread's stack and how much of it is in use, in bytes.
#[must_use]
pub fn size_and_used_bytes() -> (usize, usize) {
    let stack = STACK.get().unwrap_or_else(|| {
        begin(UNKNOWN_STACK_BYTES);
        Stack { begin: address(), size_bytes: UNKNOWN_STACK_BYTES }
    });
    (stack.size_bytes, stack.begin.abs_diff(address()))
}

/// Roughly where the stack is now.
#[inline(never)]
fn address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}
