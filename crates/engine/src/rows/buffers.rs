//! Memory that a thread's transactions reuse one after the other: most are so short that they would
//! otherwise spend more time on allocation than on their rows.

use std::cell::Cell;

use crate::table::{RowBuffer, WriteBuffers};

/// The working memory of a transaction; the contents mean nothing between calls.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) write: WriteBuffers,
    pub(super) row: RowBuffer,
}

thread_local! {
    /// The buffers of this thread's last transaction.
    static SPARE: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Buffers that return to the thread when they are dropped. They are allocated at their first use.
#[derive(Debug, Default)]
pub(super) struct SpareBuffers(Option<Box<Buffers>>);

impl SpareBuffers {
    pub(super) fn get(&mut self) -> &mut Buffers {
        self.0.get_or_insert_with(|| SPARE.take().unwrap_or_default())
    }
}

impl Drop for SpareBuffers {
    fn drop(&mut self) {
        if let Some(mut buffers) = self.0.take() {
            buffers.write.shrink();
            // The slot is gone while the thread's other locals are being dropped at its end.
            let _ = SPARE.try_with(|spare| spare.set(Some(buffers)));
        }
    }
}
