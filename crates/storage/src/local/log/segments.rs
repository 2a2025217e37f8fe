//! Which segment files there are.

use std::collections::VecDeque;
use std::sync::Arc;

use firn_base::Lsn;

use super::segment::Segment;

/// The segments in order, without a gap: `begun` of them have log, the rest are empty.
#[derive(Default)]
pub(super) struct Segments {
    all: VecDeque<Arc<Segment>>,
    begun: usize,
    released: VecDeque<Arc<Segment>>,
}

impl Segments {
    /// The segments of a log that ends in `current`.
    pub(super) fn new(all: VecDeque<Arc<Segment>>, current: &Arc<Segment>) -> Segments {
        let begun = all.iter().take_while(|segment| segment.first <= current.first).count();
        Segments { all, begun, released: VecDeque::new() }
    }

    /// The segment that holds `lsn`.
    pub(super) fn find(&self, lsn: Lsn) -> Option<Arc<Segment>> {
        let after = self.all.partition_point(|segment| segment.first <= lsn);
        let segment = self.all.get(after.checked_sub(1)?)?;
        segment.contains(lsn).then(|| segment.clone())
    }

    /// The segments with log in them, oldest first.
    pub(super) fn begun(&self) -> Vec<Arc<Segment>> {
        self.all.iter().take(self.begun).cloned().collect()
    }

    /// The segments with log from `from..to` in them, oldest first.
    pub(super) fn overlapping(&self, from: Lsn, to: Lsn) -> Vec<Arc<Segment>> {
        let overlaps = |segment: &&Arc<Segment>| segment.first < to && segment.end() > from;
        self.all.iter().filter(overlaps).cloned().collect()
    }

    /// Removes the segments before `kept`, which then is the oldest; they wait to be recycled.
    pub(super) fn release_before(&mut self, kept: Lsn) -> Vec<Arc<Segment>> {
        let count = self.all.iter().take_while(|segment| segment.first < kept).count();
        let count = count.min(self.begun.saturating_sub(1));
        self.begun -= count;
        let released: Vec<_> = self.all.drain(..count).collect();
        self.released.extend(released.iter().cloned());
        released
    }

    pub(super) fn oldest(&self) -> Arc<Segment> {
        self.all[0].clone()
    }

    /// The oldest segment that waits to be recycled.
    pub(super) fn next_released(&self) -> Option<Arc<Segment>> {
        self.released.front().cloned()
    }

    /// Removes the oldest segment that waited to be recycled.
    pub(super) fn drop_released(&mut self) {
        self.released.pop_front();
    }

    /// The end of the last segment file.
    pub(super) fn end(&self) -> Lsn {
        self.all.back().expect("a log has at least one segment").end()
    }

    /// Where the last segment file begins.
    pub(super) fn last_first(&self) -> Lsn {
        self.all.back().expect("a log has at least one segment").first
    }

    /// How many empty segments there are.
    pub(super) fn ahead(&self) -> usize {
        self.all.len() - self.begun
    }

    /// Takes the next empty segment for writing.
    ///
    /// # Panics
    /// If there is none: the appender makes sure first.
    pub(super) fn begin_next(&mut self) -> Arc<Segment> {
        let next = self.all.get(self.begun).expect("room was awaited before").clone();
        self.begun += 1;
        next
    }

    /// Declares that the log was cut and ends in `current` now: those behind are empty again.
    pub(super) fn cut(&mut self, current: &Segment) {
        self.begun = self.all.iter().take_while(|segment| segment.first <= current.first).count();
    }

    /// Adds an empty segment at the end.
    pub(super) fn push_ahead(&mut self, segment: Arc<Segment>) {
        assert_eq!(segment.first, self.end(), "segments follow each other without a gap");
        self.all.push_back(segment);
    }
}
