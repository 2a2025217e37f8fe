//! The files of a log after any damage: opening it never panics, and what can be read from it is
//! the log that was written, up to some group, or a part of it. Nothing else is ever read as log,
//! unless the damage has a valid checksum.

#![no_main]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use firn_api::log_store::conformance::Appender;
use firn_api::{LogStore, WriterEpoch};
use firn_base::task::{Spawner, TaskHandle};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_format::redo::GroupBuilder;
use firn_fuzz::{Contents, Input, MemoryDisk, damage};
use firn_storage::local::{LocalDirectory, LocalLog, LogOptions, OpenError};
use libfuzzer_sys::fuzz_target;

const DIRECTORY: &str = "database";
/// A sector, and a block of the log.
const BLOCK_BYTES: usize = 512;

fuzz_target!(|bytes: &[u8]| {
    let (contents, log) = written_log();
    let mut contents = contents.clone();
    let is_resealed = damage(&mut contents, Path::new(""), &mut Input::new(bytes), reseal);
    let environment = Environment { spawner: Arc::new(NoTasks), ..environment(contents) };
    let Ok(found) = open(&environment) else { return };
    let (start, read) = read_all(&found);
    assert!(!bytes.is_empty() || read == *log, "an undamaged log is read in full");
    if !is_resealed {
        let before = start.since(Lsn::FIRST) as usize;
        assert!(
            log.get(before..).is_some_and(|log| log.starts_with(&read)),
            "what was read from {start} was never written"
        );
    }
});

/// Makes the checksum of the block at `at`, or of the header, valid again; false if there is none.
fn reseal(file: &mut [u8], at: usize) -> bool {
    let start = at / BLOCK_BYTES * BLOCK_BYTES;
    let Some(block) = file.get_mut(start..start + BLOCK_BYTES) else { return false };
    if start == 0 {
        let checksum = crc32c::crc32c(&block[..508]);
        block[508..].copy_from_slice(&checksum.to_le_bytes());
    } else {
        let checksum = crc32c::crc32c(&block[4..]);
        block[..4].copy_from_slice(&checksum.to_le_bytes());
    }
    true
}

/// Runs nothing: the opened log is only read, and a background task would outlive the run.
struct NoTasks;

impl Spawner for NoTasks {
    fn spawn(&self, _name: &str, _body: Box<dyn FnOnce() + Send>) -> Box<dyn TaskHandle> {
        struct Never;
        impl TaskHandle for Never {
            fn join(self: Box<Self>) -> bool {
                true
            }
        }
        Box::new(Never)
    }
}

fn environment(contents: Contents) -> Environment {
    Environment { disk: Arc::new(MemoryDisk::with(contents)), ..Environment::system() }
}

fn open(environment: &Environment) -> Result<Arc<LocalLog>, OpenError> {
    let directory = LocalDirectory::open(environment, Path::new(DIRECTORY))?;
    let segment_size_bytes = 4096 + 16 * BLOCK_BYTES as u64;
    LocalLog::open(&directory, LogOptions { segment_size_bytes, ..LogOptions::default() })
}

/// Where the log begins, and its bytes up to the first unreadable one.
fn read_all(log: &LocalLog) -> (Lsn, Vec<u8>) {
    let start = log.truncated_lsn();
    let (mut bytes, mut position) = (Vec::new(), start);
    while position < log.durable_lsn() {
        match log.read(position, 1000, &mut bytes) {
            Ok(end) => {
                assert!(end > position, "a read that ends where it began");
                position = end;
            }
            Err(_) => break,
        }
    }
    (start, bytes)
}

/// The files of a log over several segments, and the log's bytes.
fn written_log() -> &'static (Contents, Vec<u8>) {
    static LOG: OnceLock<(Contents, Vec<u8>)> = OnceLock::new();
    LOG.get_or_init(|| {
        let disk = Arc::new(MemoryDisk::default());
        let environment = Environment { disk: disk.clone(), ..Environment::system() };
        let log = open(&environment).expect("an empty directory is a new database");
        let appender = Appender::open(&*log, WriterEpoch::Next).expect("nobody else writes");
        let mut written = Vec::new();
        for number in 0..40 {
            let group = group(number);
            let end = appender.append(&group);
            written.extend_from_slice(&group);
            if number % 7 == 0 {
                appender.wait(end).expect("a disk that never fails");
            }
        }
        appender.writer.close();
        log.close();
        (disk.contents(), written)
    })
}

fn group(number: u32) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let page = PageId::new(SpaceId(1), PageNo(number));
    let length = number as usize * 37 % 900;
    builder.push(1, page, |body| body.extend(std::iter::repeat_n(number as u8, length)));
    builder.finish().to_vec()
}
