//! Asking the operating system to begin with writing a part of a file to the disk (`sync_file_range`).
//!
//! Only the start is asked for, without waiting: nothing becomes durable by it, and no error is taken away from the sync
//! that follows, since the kernel tells of failed writes when they are waited for.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Has `length` bytes at `offset` written to the disk soon. Does not wait for them. What the system refuses is left to
/// the next sync.
pub(super) fn begin(file: &File, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (i64::try_from(offset), i64::try_from(length)) else { return };
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the call touches no memory of ours.
    let _ = unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE)
    };
}
