//! The files of a page store after any damage, beside a good log: opening and reading never panic,
//! and a page that is read is the page that was stored, unless the damage has a valid checksum.

#![no_main]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use firn_api::log_store::conformance::Appender;
use firn_api::{PageRead, PageStore, PageStoreError, PageVersion, WriterEpoch};
use firn_base::{Environment, PageId, PageNo, SpaceId};
use firn_format::page::{PAGE_HEADER_BYTES, PageBuf, PageKind};
use firn_format::redo::{Change, GroupBuilder};
use firn_fuzz::{Contents, Input, MemoryDisk, damage};
use firn_storage::local::pages::{LocalPages, PageStoreOptions};
use firn_storage::local::{LocalDirectory, LocalLog, LogOptions};
use libfuzzer_sys::fuzz_target;

const DIRECTORY: &str = "database";
const SECTOR_BYTES: usize = 512;
const PAGES: u32 = 10;
/// Bytes of a batch of the page map before its checksummed part, and the place of its length.
const BATCH_CHECKED_FROM: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let (contents, expected) = written_pages();
    let mut contents = contents.clone();
    let pages_directory = Path::new(DIRECTORY).join("pages");
    let is_resealed = damage(&mut contents, &pages_directory, &mut Input::new(bytes), reseal);
    let Some(store) = Store::open(MemoryDisk::with(contents)) else { return };
    for (number, expected) in expected.iter().enumerate() {
        let mut image = PageBuf::boxed();
        let found = store.read(number as u32, &mut image);
        assert!(!bytes.is_empty() || found.is_ok(), "an undamaged page is read: {found:?}");
        if found.is_ok() && !is_resealed {
            let body = |page: &PageBuf| page.bytes()[PAGE_HEADER_BYTES..].to_vec();
            assert!(image.lsn() == expected.lsn() && body(&image) == body(expected), "{image:?}");
        }
    }
});

/// Makes the checksum of the batch or the header in the sector at `at` valid again; false if there
/// is none.
fn reseal(file: &mut [u8], at: usize) -> bool {
    let start = at / SECTOR_BYTES * SECTOR_BYTES;
    let Some(sector) = file.get_mut(start..) else { return false };
    if sector.starts_with(b"FIRNPMAP") && sector.len() >= SECTOR_BYTES {
        let checksum = crc32c::crc32c(&sector[..508]);
        sector[508..512].copy_from_slice(&checksum.to_le_bytes());
        return true;
    }
    let Some(length) = sector.get(8..12) else { return false };
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    let Some(checked) = sector.get(BATCH_CHECKED_FROM..length) else { return false };
    let checksum = crc32c::crc32c(checked);
    sector[4..8].copy_from_slice(&checksum.to_le_bytes());
    true
}

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

/// An open log with the pages beside it.
struct Store {
    log: Arc<LocalLog>,
    pages: Arc<LocalPages>,
}

impl Store {
    fn open(disk: MemoryDisk) -> Option<Store> {
        let environment = Environment { disk: Arc::new(disk), ..Environment::system() };
        Store::open_in(&environment)
    }

    fn open_in(environment: &Environment) -> Option<Store> {
        let directory = LocalDirectory::open(environment, Path::new(DIRECTORY)).ok()?;
        let segment_size_bytes = 4096 + 64 * SECTOR_BYTES as u64;
        let options = LogOptions { segment_size_bytes, ..LogOptions::default() };
        let log = LocalLog::open(&directory, options).ok()?;
        let options = PageStoreOptions {
            grow_bytes: 256 << 10,
            retry_delay_ms: 1,
            ..PageStoreOptions::default()
        };
        let pages = LocalPages::open(&directory, options, log.clone()).ok()?;
        Some(Store { log, pages })
    }

    fn read(&self, number: u32, into: &mut PageBuf) -> Result<PageVersion, PageStoreError> {
        let at_least = self.log.durable_lsn();
        self.pages.read(page(number), PageRead::Latest { at_least }, into)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.pages.close();
        self.log.close();
    }
}

/// The files of a store with pages that are materialised, and the pages.
fn written_pages() -> &'static (Contents, Vec<Box<PageBuf>>) {
    static PAGES_WRITTEN: OnceLock<(Contents, Vec<Box<PageBuf>>)> = OnceLock::new();
    PAGES_WRITTEN.get_or_init(|| {
        let disk = Arc::new(MemoryDisk::default());
        let environment = Environment { disk: disk.clone(), ..Environment::system() };
        let store = Store::open_in(&environment).expect("an empty directory is a new database");
        let appender = Appender::open(&*store.log, WriterEpoch::Next).expect("nobody else writes");
        for round in 0..4 {
            let end = appender.append(&changes_of_round(round));
            appender.wait(end).expect("a disk that never fails");
            store.pages.materialise_up_to(end).expect("a disk that never fails");
        }
        let images = (0..PAGES).map(|number| {
            let mut image = PageBuf::boxed();
            store.read(number, &mut image).expect("it was stored");
            image
        });
        let images = images.collect();
        drop(store);
        (disk.contents(), images)
    })
}

/// A group of log for each change of each page.
fn changes_of_round(round: u32) -> Vec<u8> {
    let mut log = Vec::new();
    for number in 0..PAGES {
        if round == 0 {
            log.extend(group(number, &Change::Format { kind: PageKind::SpaceHeader }));
        }
        let bytes = [round as u8 + 1; 3000];
        let at = 100 + (number * 40 + round * 1000) as u16;
        log.extend(group(number, &Change::WriteBytes { at, bytes: &bytes }));
    }
    log
}

fn group(number: u32, change: &Change<'_>) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    change.encode(page(number), &mut builder);
    builder.finish().to_vec()
}
