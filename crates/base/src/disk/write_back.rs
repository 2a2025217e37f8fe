//! Asking the operating system to start writing a part of a file to the disk (`sync_file_range`).
//!
//! The call only starts the write and does not wait. It makes nothing durable and takes no error
//! away from the sync that follows: the kernel reports failed writes to a call that waits for them.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Starts writing `length` bytes at `offset` to the disk, without waiting. A refusal by the system
/// has no consequence: the next sync writes the bytes.
pub(super) fn begin(file: &File, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (i64::try_from(offset), i64::try_from(length)) else { return };
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the call touches no memory
    // of ours.
    let _ = unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE)
    };
}
