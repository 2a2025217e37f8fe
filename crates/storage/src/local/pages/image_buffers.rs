//! Memory for page images on their way to the disk, kept for reuse.
//!
//! The thread that evicts a page copies its image in, and the materialiser frees it. General
//! allocators keep most of the memory that one thread allocates and another frees. The store
//! therefore keeps its own stock: as many buffers as were ever in use at once, which the queue's
//! limit bounds.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use firn_format::page::{PAGE_SIZE, PageBuf};
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(super) struct PageStock {
    spare: Mutex<Vec<Box<PageBuf>>>,
    /// The number of buffers, including those in use.
    made: AtomicUsize,
}

/// A buffer of a stock; it returns there when it is dropped.
#[derive(Debug)]
pub(super) struct StockedPage {
    buffer: Option<Box<PageBuf>>,
    stock: Arc<PageStock>,
}

impl PageStock {
    /// A buffer. Its content is left from an earlier use.
    pub(super) fn take(self: &Arc<PageStock>) -> StockedPage {
        let spare = self.spare.lock().pop();
        let buffer = spare.unwrap_or_else(|| {
            self.made.fetch_add(1, Ordering::Relaxed);
            PageBuf::boxed()
        });
        StockedPage { buffer: Some(buffer), stock: Arc::clone(self) }
    }

    /// A buffer with the content of `image`.
    pub(super) fn copy(self: &Arc<PageStock>, image: &PageBuf) -> StockedPage {
        let mut copy = self.take();
        copy.bytes_mut().copy_from_slice(image.bytes());
        copy
    }

    /// Memory of all buffers.
    pub(super) fn size_bytes(&self) -> u64 {
        (self.made.load(Ordering::Relaxed) * PAGE_SIZE) as u64
    }
}

impl Deref for StockedPage {
    type Target = PageBuf;

    fn deref(&self) -> &PageBuf {
        self.buffer.as_ref().expect("a buffer is there until it is dropped")
    }
}

impl DerefMut for StockedPage {
    fn deref_mut(&mut self) -> &mut PageBuf {
        self.buffer.as_mut().expect("a buffer is there until it is dropped")
    }
}

impl Drop for StockedPage {
    fn drop(&mut self) {
        self.stock.spare.lock().extend(self.buffer.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again() {
        let stock = Arc::new(PageStock::default());
        let mut image = PageBuf::zeroed();
        image.put_u64(100, 7);
        for _ in 0..10 {
            let (one, two) = (stock.copy(&image), stock.take());
            assert_eq!(one.get_u64(100), 7);
            drop((one, two));
        }
        assert_eq!(stock.size_bytes(), 2 * PAGE_SIZE as u64);
    }
}
