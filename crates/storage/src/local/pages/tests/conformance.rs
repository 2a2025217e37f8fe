//! The local store passes the suite for page stores.

use firn_api::page_store::conformance::{Subject, check};
use firn_base::random::RandomSource;

use super::*;

struct Local {
    disk: Arc<FakeDisk>,
    log: Arc<FakeLog>,
    clock: Arc<FakeClock>,
    options: PageStoreOptions,
    random: SplitMix,
    pages: Arc<LocalPages>,
    materialiser: Materialiser,
}

impl Local {
    fn new(seed: u64, options: PageStoreOptions) -> Local {
        let (disk, clock, log) = (Arc::default(), Arc::default(), FakeLog::new());
        let opened = open_with(&disk, &clock, &log, &options, apply_record);
        let (pages, materialiser) = opened.unwrap();
        let (pages, random) = (Arc::new(pages), SplitMix::new(seed));
        Local { disk, log, clock, options, random, pages, materialiser }
    }
}

impl Subject for Local {
    fn store(&self) -> Arc<dyn PageStore> {
        Arc::clone(&self.pages) as _
    }

    fn append(&mut self, group: &[u8]) -> Lsn {
        self.log.append_group(group)
    }

    fn work(&mut self) {
        self.clock.0.fetch_add(self.random.next_u64() % 3000, Ordering::Relaxed);
        self.materialiser.round().unwrap();
    }

    /// The store itself releases its log, up to the position that its map names as applied.
    fn truncate_log(&mut self, position: Lsn) {
        assert!(self.log.kept_from() <= position);
    }

    fn restart(&mut self) {
        self.disk = Arc::new(self.disk.after_power_loss(&self.random));
        self.log = self.log.reopened(1 + (self.random.next_u64() % 3) as usize);
        let opened =
            open_with(&self.disk, &self.clock, &self.log, &self.options, apply_record).unwrap();
        (self.pages, self.materialiser) = (Arc::new(opened.0), opened.1);
    }
}

#[test]
fn the_local_store_keeps_its_promises() {
    for seed in 0..8 {
        let options = PageStoreOptions {
            history_window_ms: [0, 4000][seed as usize % 2],
            idle_pages_per_second: 40,
            ..small_options()
        };
        check(&mut Local::new(seed, options), seed, 600);
    }
}
