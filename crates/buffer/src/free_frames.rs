//! The stock of free frames.

use crate::frame::OwnedFrame;
use crate::memory::slots::PageSlot;
use crate::sync::{Event, Mutex};

/// The frames without an owner that cache nothing.
pub(crate) struct FreeFrames {
    frames: Mutex<Vec<OwnedFrame>>,
    pub(crate) freed: Event,
    low: usize,
}

impl FreeFrames {
    pub(crate) fn new(slots: Vec<PageSlot>) -> FreeFrames {
        // The cleaner's stock: 1/64 of the frames, but no more than one second of fast reads.
        let low = (slots.len() / 64).clamp(4, 4096);
        // The first slots are handed out first, so memory is touched from the front.
        let frames = slots.into_iter().enumerate().rev();
        let frames = frames.map(|(number, slot)| OwnedFrame { number: number as u32, slot });
        FreeFrames { frames: Mutex::new(frames.collect()), freed: Event::new(), low }
    }

    pub(crate) fn count(&self) -> usize {
        self.frames.lock().len()
    }

    pub(crate) fn take_all(&self) -> Vec<PageSlot> {
        self.frames.lock().drain(..).map(|frame| frame.slot).collect()
    }

    pub(crate) fn push(&self, frame: OwnedFrame) {
        self.frames.lock().push(frame);
        self.freed.notify_all();
    }

    pub(crate) fn is_low(&self) -> bool {
        self.count() < self.low
    }

    pub(crate) fn is_stocked(&self) -> bool {
        self.count() >= 2 * self.low
    }

    /// A frame, and whether the stock is low after taking it.
    pub(crate) fn pop(&self) -> (Option<OwnedFrame>, bool) {
        let mut frames = self.frames.lock();
        let frame = frames.pop();
        (frame, frames.len() < self.low)
    }
}
