//! A loop that only writes and syncs: the disk's limit for this pattern.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_base::clock::{Clock, SystemClock};
use firn_base::disk::{Disk, File, OpenMode, SystemDisk};

use crate::BenchError;

/// The file that the loop writes to.
pub(super) struct DiskLoop {
    file: Arc<dyn File>,
    /// The bytes to write.
    content: Vec<u8>,
}

const LOOP_FILE_BYTES: u64 = 64 << 20;
/// Most bytes written for one sync.
const MOST_BYTES: usize = 4 << 20;
/// The log pads its writes to whole pages of memory.
const WRITE_UNIT: usize = 4096;
/// A write that begins before this position fits into the file.
const LAST_POSITION: u64 = LOOP_FILE_BYTES - (MOST_BYTES + 2 * WRITE_UNIT) as u64;

impl DiskLoop {
    /// Creates the file and writes all of it, so that a sync has no blocks to allocate. Blocks for
    /// I/O.
    pub(super) fn open(path: &Path) -> Result<DiskLoop, BenchError> {
        let file = SystemDisk.open(path, OpenMode::CreateNew)?;
        file.allocate(LOOP_FILE_BYTES)?;
        let zeros = vec![0; 1 << 20];
        for offset in (0..LOOP_FILE_BYTES).step_by(zeros.len()) {
            file.write_at(&zeros, offset)?;
        }
        file.sync_data()?;
        Ok(DiskLoop { file, content: vec![7; MOST_BYTES + 2 * WRITE_UNIT] })
    }

    /// Writes `bytes`, one after the other as a log does, and syncs, for `duration`. Returns how
    /// long each write and sync took, in seconds; at least one. Blocks for I/O.
    pub(super) fn sync_times(
        &self,
        bytes: usize,
        duration: Duration,
    ) -> Result<Vec<f64>, BenchError> {
        let (mut position, mut times) = (0_u64, Vec::new());
        let began = SystemClock.monotonic();
        let mut last = began;
        loop {
            self.write_and_sync(position, bytes)?;
            position += bytes as u64;
            let now = SystemClock.monotonic();
            times.push(now.saturating_sub(last).as_secs_f64());
            if now.saturating_sub(began) >= duration {
                return Ok(times);
            }
            last = now;
        }
    }

    /// Writes `bytes` at `position` of an endless log, which wraps round in the file, and syncs.
    /// Blocks for I/O.
    pub(super) fn write_and_sync(&self, position: u64, bytes: usize) -> Result<(), BenchError> {
        let bytes = bytes.clamp(1, MOST_BYTES);
        let (start, end) = written_range(position % LAST_POSITION, bytes);
        self.file.write_at(&self.content[..(end - start) as usize], start)?;
        Ok(self.file.sync_data()?)
    }
}

/// The whole pages of memory that contain `bytes` bytes at `position`.
fn written_range(position: u64, bytes: usize) -> (u64, u64) {
    let unit = WRITE_UNIT as u64;
    (position / unit * unit, (position + bytes as u64).next_multiple_of(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_writes_whole_pages() {
        assert_eq!(written_range(0, 1), (0, 4096));
        assert_eq!(written_range(4000, 200), (0, 8192));
        assert_eq!(written_range(8192, 4096), (8192, 12288));
    }
}
