//! Memory that a thread's transactions use one after the other: most are so short that they would otherwise
//! spend more on getting it than on their rows.

use std::cell::Cell;

use crate::table::{RowBuffer, WriteBuffers};

/// What a transaction works with; the contents mean nothing between calls.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) write: WriteBuffers,
    pub(super) row: RowBuffer,
}

thread_local! {
    /// Those of this thread's last transaction.
    static SPARE: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Buffers that go back to the thread when they are dropped. They are had when they are first used.
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
            // The slot is gone while a thread's other locals are being dropped at its end.
            let _ = SPARE.try_with(|spare| spare.set(Some(buffers)));
        }
    }
}
