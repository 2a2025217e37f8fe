//! How much stack a thread has left, for code that recurses as deep as its input nests.
//!
//! ```text
//!   begin ├──────── used ────────┤ here ├──────── left ────────┤ end
//! ```
//!
//! A thread that overruns its stack ends the whole process. Recursive code therefore checks before
//! it goes deeper, and refuses its input while enough stack is left for the functions that do not
//! check.

use std::cell::Cell;

/// Stack size of every thread that [`crate::task::ThreadSpawner`] starts. The system backs only the
/// pages that were touched.
pub const THREAD_STACK_BYTES: usize = 32 << 20;

/// A thread that has used more stack than this should end rather than wait for more work: the
/// system backs the touched pages as long as the thread lives.
const DEEP_BYTES: usize = 4 << 20;

/// Assumed stack size of a thread of unknown origin: Rust's default.
const UNKNOWN_STACK_BYTES: usize = 2 << 20;

/// Start of this thread's stack, as far as it is known, and its size.
#[derive(Clone, Copy)]
struct Stack {
    begin: usize,
    size_bytes: usize,
}

thread_local! {
    static STACK: Cell<Option<Stack>> = const { Cell::new(None) };
    static WAS_DEEP: Cell<bool> = const { Cell::new(false) };
}

/// Records that this thread starts here, with a stack of `size_bytes`.
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
    let used_bytes = stack.begin.abs_diff(address());
    if used_bytes > DEEP_BYTES {
        WAS_DEEP.set(true);
    }
    (stack.size_bytes, used_bytes)
}

/// Whether recursive code of this thread has ever used so much stack that the thread holds memory
/// for it.
#[must_use]
pub fn was_deep() -> bool {
    WAS_DEEP.get()
}

/// Approximate address of the top of the stack.
#[inline(never)]
fn address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}
