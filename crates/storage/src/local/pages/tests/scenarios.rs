//! Scenarios, one in each test.

use firn_base::disk::SECTOR_BYTES;

use super::*;

const A: PageId = PageId::new(SpaceId(1), PageNo(7));
const B: PageId = PageId::new(SpaceId(1), PageNo(8));

/// Where the newest image of a page is.
fn newest_image(store: &Store, page: PageId) -> (std::path::PathBuf, usize) {
    let version = *store.pages.shared.table.view(page).versions.last().unwrap();
    (Path::new("/db/pages/0000.pages").to_owned(), version.slot.0 as usize * PAGE_SIZE)
}

fn damage_newest(store: &Store, page: PageId) {
    let (path, offset) = newest_image(store, page);
    store.disk.damage(&path, offset + 5000, 3);
}

#[test]
fn a_page_that_is_only_in_the_log_is_read_from_it() {
    let mut store = Store::new(small_options());
    assert!(matches!(store.read_latest(A), Err(PageStoreError::Absent(_))));
    store.change(&[A, B], 1);
    store.change(&[A], 2);
    store.check_all();
    assert_eq!(store.pages.applied_lsn(A), Lsn::FIRST);
}

#[test]
fn pages_of_log_that_was_not_told_yet_are_listed() {
    let mut store = Store::new(small_options());
    let known = store.change(&[A], 1);
    let end = store.change_unindexed(B, 1);
    assert_eq!(store.pages.pages_after(known, None, 10).unwrap(), [A]);
    assert_eq!(store.pages.pages_after(end, None, 10).unwrap(), [A, B]);
    assert_eq!(store.pages.pages_after(end, Some(A), 10).unwrap(), [B]);
    assert_eq!(store.pages.pages_after(end, Some(B), 10).unwrap(), []);
}

#[test]
fn settling_stores_images_and_releases_the_log() {
    let mut store = Store::new(small_options());
    for value in 0..20 {
        store.change(&[A, B, page(2, value as u32)], value);
    }
    store.settle();
    assert_eq!(store.log.kept_from(), store.log.durable_lsn());
    assert_eq!(store.pages.spaces(), [SpaceId(1), SpaceId(2)]);
    store.check_all();
    store.restart(&SplitMix::new(1), 1);
    store.check_all();
    assert_eq!(store.pages.verify_all(&mut |_| ()).unwrap(), 22);
}

#[test]
fn an_offered_image_is_read_at_once_and_stored_by_the_next_round() {
    let mut store = Store::new(small_options());
    store.change(&[A], 1);
    assert_eq!(store.offer(A), Offer::Taken);
    assert_eq!(store.offer(A), Offer::NotNeeded);
    store.check_latest(A);
    store.change(&[A], 2);
    store.check_latest(A);
    assert_eq!(store.offer(A), Offer::Taken);
    assert_eq!(store.round().unwrap(), 1);
    assert_eq!(store.offer(A), Offer::NotNeeded);
    assert_eq!(store.pages.status().images_offered, 1);
    assert_eq!(store.pages.applied_lsn(A), store.log.durable_lsn());
    store.check_all();
}

#[test]
fn an_image_that_is_ahead_of_the_log_that_was_told_is_taken() {
    let mut store = Store::new(small_options());
    store.change(&[A], 1);
    store.settle();
    store.change_unindexed(A, 2);
    assert_eq!(store.offer(A), Offer::Taken);
    store.round().unwrap();
    let end = store.change_unindexed(A, 3);
    assert_eq!(store.offer(A), Offer::Taken);
    store.round().unwrap();
    store.log.tell();
    assert_eq!(store.pages.applied_lsn(A), end);
    store.check_all();
}

#[test]
fn an_image_that_the_log_does_not_back_is_not_taken() {
    let mut store = Store::new(small_options());
    store.change(&[A], 1);
    let mut image = store.newest(A).clone();
    image.set_lsn(store.log.durable_lsn().advance(8));
    assert_eq!(store.pages.offer(&image), Offer::Full);
}

#[test]
fn a_full_queue_refuses_until_a_round_has_made_room() {
    let mut store = Store::new(small_options());
    let pages: Vec<PageId> = (0..7).map(|number| page(1, number)).collect();
    store.change(&pages, 1);
    assert!(pages[..6].iter().all(|page| store.offer(*page) == Offer::Taken));
    assert_eq!(store.offer(pages[6]), Offer::Full);
    store.pages.wait_for_room();
    store.change(&pages[..1], 2);
    assert_eq!(store.offer(pages[0]), Offer::Taken, "a newer image takes the older one's place");
    store.round().unwrap();
    assert_eq!(store.offer(pages[6]), Offer::Taken);
    store.settle();
    assert_eq!(store.pages.status().queued_bytes, 0);
    store.check_all();
}

#[test]
fn a_lease_keeps_what_can_be_read_at_its_position() {
    let mut store = Store::new(small_options());
    store.change(&[A, B], 1);
    store.settle();
    let held = store.change(&[A], 2);
    let lease = store.pages.hold("replica", held).unwrap();
    for value in 3..12 {
        store.change(&[A, B, page(1, value as u32)], value);
        store.settle();
    }
    assert_eq!(store.pages.status().oldest_lease, Some(("replica".to_owned(), held)));
    assert!(store.pages.status().horizon_lsn <= held);
    let now = store.log.durable_lsn();
    for position in (held.0..=now.0).step_by(8).map(Lsn) {
        let versions: Vec<PageId> = store.versions.keys().copied().collect();
        for page in versions {
            let found = store.read(page, PageRead::AsOf(position));
            assert_same(page, &found, store.expected(page, position));
        }
    }
    lease.advance(held.advance(8));
    lease.advance(held);
    assert_eq!(lease.position(), held.advance(8));
    drop(lease);
    store.change(&[A, B], 12);
    store.settle();
    assert!(store.pages.status().horizon_lsn > held);
    assert_eq!(store.pages.status().oldest_lease, None);
    let error = store.pages.hold("late", held).err();
    assert!(matches!(error, Some(PageStoreError::NotKept { position, .. }) if position == held));
    let error = store.read(A, PageRead::AsOf(held)).unwrap_err();
    assert!(matches!(error, PageStoreError::TooOld { .. }), "{error}");
}

#[test]
fn a_space_that_was_dropped_is_readable_at_a_position_that_is_held() {
    let mut store = Store::new(small_options());
    let held = store.change(&[A], 1);
    let lease = store.pages.hold("replica", held).unwrap();
    store.change(&[A], 2);
    store.drop_space(A.space);
    (3..6).for_each(|value| {
        store.change(&[page(2, 1)], value);
        store.settle();
    });
    assert_same(A, &store.read(A, PageRead::AsOf(held)), store.expected(A, held));
    drop(lease);
    store.change(&[page(2, 1)], 7);
    store.settle();
    assert!(store.read(A, PageRead::AsOf(held)).is_err());
}

#[test]
fn a_damaged_image_is_built_again_from_the_log_that_created_it_and_repaired() {
    let mut store = Store::new(PageStoreOptions { history_window_ms: 60_000, ..small_options() });
    store.round().unwrap();
    store.change(&[A], 1);
    store.settle();
    store.change(&[A], 2);
    store.settle();
    damage_newest(&store, A);
    assert!(store.pages.verify_all(&mut |_| ()).is_err());
    store.check_latest(A);
    store.round().unwrap();
    assert_eq!(store.pages.status().images_repaired, 1);
    store.check_all();
    store.restart(&SplitMix::new(1), 1);
    store.check_all();
}

#[test]
fn damage_with_nothing_left_to_build_from_names_the_place() {
    let mut store = Store::new(small_options());
    store.change(&[A], 1);
    store.settle();
    damage_newest(&store, A);
    let error = store.read_latest(A).unwrap_err();
    let PageStoreError::Damaged { page, place, reason } = &error else { panic!("{error}") };
    assert_eq!((*page, place.as_str()), (A, "/db/pages/0000.pages at byte 0"));
    assert!(reason.contains("checksum"), "{reason}");
}

#[test]
fn a_page_that_cannot_be_built_keeps_its_log_and_nothing_else() {
    let mut store = Store::new(small_options());
    store.change(&[A], 1);
    store.settle();
    damage_newest(&store, A);
    let before = store.change(&[A], 2);
    store.change(&[B], 3);
    store.pages.shared.hurry_to.store(u64::MAX, Ordering::Relaxed);
    store.round().unwrap();
    let status = store.pages.status();
    assert_eq!((status.stuck_pages, status.pending_pages), (1, 1));
    assert!(status.last_error.unwrap().contains("page 7 of space 1"));
    assert!(store.log.kept_from() < before);
    store.check_latest(B);
    // A cache that still has the page in memory.
    struct Cache(PageBuf);
    impl ImageSource for Cache {
        fn copy_image(&self, page: PageId, into: &mut PageBuf) -> bool {
            into.bytes_mut().copy_from_slice(self.0.bytes());
            page == A
        }
    }
    store.pages.attach(Arc::new(Cache(store.newest(A).clone())));
    store.clock.0.fetch_add(2000, Ordering::Relaxed);
    store.round().unwrap();
    assert_eq!(store.pages.status().images_copied, 1);
    store.check_all();
}

#[test]
fn reads_of_the_past_reach_back_as_far_as_the_window_and_no_slot_is_kept_longer() {
    let mut store = Store::new(PageStoreOptions { history_window_ms: 10_000, ..small_options() });
    let mut ends = Vec::new();
    for value in 0..40 {
        ends.push(store.change(&[A], value));
        store.settle();
        store.clock.0.fetch_add(1000, Ordering::Relaxed);
        ends.iter().rev().take(9).for_each(|end| store.check_as_of(A, *end));
    }
    let status = store.pages.status();
    assert!(
        status.horizon_lsn >= ends[ends.len() - 12] && status.horizon_lsn < ends[ends.len() - 9]
    );
    assert!(store.pages.shared.table.view(A).versions.len() <= 13);
    let error = store.read(A, PageRead::AsOf(ends[3])).unwrap_err();
    assert!(matches!(error, PageStoreError::TooOld { .. }), "{error}");
    store.restart(&SplitMix::new(4), 3);
    ends.iter().for_each(|end| store.check_as_of(A, *end));
}

#[test]
fn a_full_disk_pauses_the_store_and_loses_nothing() {
    let mut store = Store::new(small_options());
    store.change(&[A, B], 1);
    store.settle();
    store.disk.faults.capacity.store(0, Ordering::Relaxed);
    let pages: Vec<PageId> = (0..30).map(|number| page(3, number)).collect();
    store.change(&pages, 2);
    store.pages.shared.hurry_to.store(u64::MAX, Ordering::Relaxed);
    let refused = (0..30).filter(|_| store.round().is_err()).count();
    assert!(refused >= 20, "{refused}");
    let status = store.pages.status();
    assert!(status.is_paused && status.slots == 8, "{status:?}");
    assert!(status.last_error.unwrap().contains("/db/pages/0000.pages"));
    store.check_all();
    while store.offer(pages[29]) == Offer::Taken {}
    store.disk.faults.capacity.store(u64::MAX, Ordering::Relaxed);
    store.settle();
    assert!(!store.pages.status().is_paused);
    store.check_all();
}

#[test]
fn a_nearly_full_disk_takes_what_it_has_room_for() {
    const ROOM_BYTES: u64 = 5 * PAGE_SIZE as u64;
    let mut store = Store::new(small_options());
    store.change(&[A, B], 1);
    store.settle();
    let used = store.disk.faults.used.load(Ordering::Relaxed);
    store.disk.faults.capacity.store(used + ROOM_BYTES, Ordering::Relaxed);
    let slots = store.pages.status().slots;
    let pages: Vec<PageId> = (0..9).map(|number| page(3, number)).collect();
    store.change(&pages, 2);
    store.settle();
    let grown = store.pages.status().slots - slots;
    assert!((1..=5).contains(&grown), "{grown}");
    store.check_all();
}

/// Fills a disk to the last byte.
fn fill(store: &Store) {
    let used = store.disk.faults.used.load(Ordering::Relaxed);
    store.disk.faults.capacity.store(used, Ordering::Relaxed);
}

#[test]
fn a_full_disk_with_one_free_slot_brings_every_old_page_up_to_date() {
    let mut store = Store::new(small_options());
    let pages: Vec<PageId> = (0..7).map(|number| page(1, number)).collect();
    store.change(&pages, 1);
    store.settle();
    assert_eq!((store.pages.status().slots, store.pages.status().free_slots), (8, 1));
    fill(&store);
    for value in 2..9 {
        store.change(&pages, value);
        assert_eq!(store.offer(pages[6]), Offer::Taken);
        store.settle();
    }
    store.check_all();
}

#[test]
fn a_full_disk_without_a_free_slot_is_freed_by_dropping_a_space() {
    let mut store = Store::new(small_options());
    let pages: Vec<PageId> = (0..8).map(|number| page(number % 2 + 1, number)).collect();
    store.change(&pages, 1);
    store.settle();
    assert_eq!(store.pages.status().free_slots, 0);
    fill(&store);
    store.change(&pages, 2);
    store.pages.shared.hurry_to.store(u64::MAX, Ordering::Relaxed);
    assert!(store.round().is_err());
    store.drop_space(SpaceId(2));
    store.settle();
    assert_eq!(store.pages.status().free_slots, 4);
    store.check_all();
}

#[test]
fn what_is_kept_in_reserve_stores_all_that_was_admitted_on_a_full_disk() {
    let options = PageStoreOptions { reserve_bytes: 8 * PAGE_SIZE as u64, ..small_options() };
    let mut store = Store::new(options);
    store.round().unwrap();
    assert_eq!(store.log.page_room(), Some(Room::Plenty));
    fill(&store);
    let mut made = 0;
    while store.log.page_room() == Some(Room::Plenty) {
        store.change(&[page(1, made)], 1);
        made += 1;
        store.settle();
    }
    assert_eq!(store.log.page_room(), Some(Room::Low));
    // The page map has separate room: many more changes of existing pages fit.
    for value in 0..100 {
        store.change(&[A, B], value);
        store.settle();
    }
    store.check_all();
    store.disk.faults.capacity.store(u64::MAX, Ordering::Relaxed);
    store.clock.0.fetch_add(1000, Ordering::Relaxed);
    store.round().unwrap();
    store.round().unwrap();
    assert_eq!(store.log.page_room(), Some(Room::Plenty));
}

#[test]
fn what_a_failed_sync_leaves_open_is_written_again() {
    for (good, failing) in (0..3).flat_map(|good| (1..6).map(move |failing| (good, failing))) {
        let mut store = Store::new(small_options());
        store.change(&[A, B], 1);
        store.settle();
        store.change(&[A], 2);
        assert_eq!(store.offer(A), Offer::Taken);
        store.disk.faults.good_syncs.store(good, Ordering::Relaxed);
        store.disk.faults.failing_syncs.store(failing, Ordering::Relaxed);
        for value in 4..14 {
            store.change(&[B], value);
            store.offer(B);
            drop(store.round());
        }
        assert!(store.pages.status().failures > 0);
        store.settle();
        store.check_all();
        store.restart(&SplitMix::new(u64::from(failing)), 1);
        store.check_all();
        store.change(&[A, B], 3);
        store.settle();
        store.check_all();
    }
}

#[test]
fn a_dropped_space_is_gone_and_its_slots_are_free() {
    let mut store = Store::new(small_options());
    let pages: Vec<PageId> = (0..4).map(|number| page(5, number)).collect();
    store.change(&pages, 1);
    store.change(&[A], 1);
    store.settle();
    store.change(&pages[..1], 2);
    store.change(&pages[1..2], 3);
    assert_eq!(store.offer(pages[1]), Offer::Taken);
    store.drop_space(SpaceId(5));
    assert!(store.pages.applied_lsn(A) < store.log.durable_lsn());
    store.check_all();
    store.round().unwrap();
    assert_eq!(store.offer(pages[0]), Offer::NotNeeded);
    assert_eq!(store.pages.applied_lsn(A), store.log.durable_lsn());
    let status = store.pages.status();
    assert_eq!((status.free_slots, status.queued_bytes), (status.slots - 1, 0));
    assert_eq!(store.pages.spaces(), [SpaceId(1)]);
    store.restart(&SplitMix::new(9), 1);
    store.check_all();
    assert_eq!(store.pages.spaces(), [SpaceId(1)]);
}

#[test]
fn the_history_keeps_a_dropped_space_for_a_while() {
    let mut store = Store::new(PageStoreOptions { history_window_ms: 5_000, ..small_options() });
    store.round().unwrap();
    let created = store.change(&[A, B], 1);
    store.settle();
    let changed = store.change(&[A], 2);
    store.drop_space(SpaceId(1));
    store.round().unwrap();
    for told_as_one in [1, 4] {
        assert_eq!(store.pages.applied_lsn(A), store.log.durable_lsn());
        for (page, end) in [(A, created), (A, changed), (B, created), (B, changed)] {
            assert!(store.read(page, PageRead::AsOf(end)).is_ok());
            store.check_as_of(page, end);
        }
        store.check_latest(A);
        store.restart(&SplitMix::new(3), told_as_one);
    }
    store.change(&[page(2, 1)], 1);
    for _ in 0..80 {
        store.round().unwrap();
    }
    let error = store.read(A, PageRead::AsOf(created)).unwrap_err();
    assert!(matches!(error, PageStoreError::Absent(_)), "{error}");
    assert_eq!(store.pages.status().free_slots, store.pages.status().slots - 1);
    assert_eq!(store.log.kept_from(), store.log.durable_lsn());
}

#[test]
fn the_task_brings_the_pages_up_to_date_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let log = FakeLog::new();
    let directory = LocalDirectory::open(&Environment::system(), folder.path()).unwrap();
    let follow = Arc::clone(&log) as Arc<dyn PageLog>;
    let pages = LocalPages::open(&directory, PageStoreOptions::default(), follow).unwrap();
    pages.materialise_up_to(log.durable_lsn()).unwrap();
    // A record that the real `apply` refuses: the call must return the error.
    let end = log.append(&[(A, 99, 1)]);
    let error = pages.materialise_up_to(end).unwrap_err();
    assert!(matches!(error, PageStoreError::Damaged { .. }), "{error}");
    pages.close();
}

#[test]
fn page_files_without_a_map_are_refused() {
    let mut store = Store::new(small_options());
    store.change(&[A], 1);
    store.settle();
    let map = store.disk.paths().into_iter().find(|path| path.to_string_lossy().contains("map-"));
    firn_base::disk::Disk::remove(&*store.disk, &map.unwrap()).unwrap();
    let error = open(&store.disk, &store.clock, &store.log.reopened(1), &store.options).err();
    assert!(error.unwrap().to_string().contains("the page map is missing"));
}

#[test]
fn a_directory_that_lost_its_pages_is_refused_once_log_was_released() {
    let folder = tempfile::tempdir().unwrap();
    let directory = LocalDirectory::open(&Environment::system(), folder.path()).unwrap();
    let log = FakeLog::new();
    let end = log.append(&[(A, CREATE, 1)]);
    log.release_before(end);
    let open = || LocalPages::open(&directory, PageStoreOptions::default(), log.reopened(1) as _);
    let error = open().err().unwrap();
    assert!(error.to_string().contains("the page map is missing"), "{error}");
}

/// Changes the page twice. Each time it waits until the page is stored and the log before it is
/// released. Then it damages the last batch of the map.
fn store_that_lost_the_last_batch(store: &mut Store) {
    for value in 1..3 {
        store.change(&[A], value);
        store.settle();
    }
    let map = store.disk.paths().into_iter().find(|path| path.to_string_lossy().contains("map-"));
    let map = map.unwrap();
    let last = (store.disk.contents_end(&map) - 1) / SECTOR_BYTES * SECTOR_BYTES;
    store.disk.damage(&map, last, SECTOR_BYTES);
}

#[test]
fn a_map_that_lost_batches_whose_log_was_released_is_refused() {
    let mut store = Store::new(small_options());
    store_that_lost_the_last_batch(&mut store);
    let error = open(&store.disk, &store.clock, &store.log.reopened(1), &store.options).err();
    let error = error.expect("the second change is in no image and in no log");
    let PageStoreError::StoreDamaged { place, .. } = &error else { panic!("{error}") };
    assert_eq!(place, "/db/pages/map-0000000001 at byte 1536");
    assert!(error.to_string().contains("restore it from a backup"), "{error}");
}

#[test]
fn a_map_that_knows_of_log_that_is_gone_is_refused() {
    let mut store = Store::new(small_options());
    store.change(&[A], 1);
    store.settle();
    let lost = FakeLog::new();
    let error = open(&store.disk, &store.clock, &lost, &store.options).err();
    let error = error.expect("the log has lost what the image has").to_string();
    assert!(error.contains("log that was durable is lost"), "{error}");
}

#[test]
fn a_map_that_lost_batches_whose_log_is_there_catches_up() {
    let mut store = Store::new(PageStoreOptions { history_window_ms: 60_000, ..small_options() });
    store.round().unwrap();
    store_that_lost_the_last_batch(&mut store);
    store.restart(&SplitMix::new(1), 1);
    store.check_all();
    store.settle();
    store.check_all();
}

#[test]
fn log_that_changes_no_stored_page_any_more_is_released_when_nothing_is_to_do() {
    let mut store = Store::new(small_options());
    let end = store.change_unindexed(A, 1);
    assert_eq!(store.offer(A), Offer::Taken);
    store.round().unwrap();
    assert!(store.log.kept_from() < end);
    store.log.tell();
    for _ in 0..11 {
        store.round().unwrap();
    }
    assert_eq!((store.pages.applied_lsn(A), store.log.kept_from()), (end, end));
    let batches = store.pages.status().batches;
    (0..30).for_each(|_| assert_eq!(store.round().unwrap(), 0));
    assert_eq!(store.pages.status().batches, batches, "what is named is not named again");
}

#[test]
fn damage_of_an_image_that_is_ahead_of_the_log_waits_for_the_log() {
    let mut store = Store::new(PageStoreOptions { history_window_ms: 60_000, ..small_options() });
    store.round().unwrap();
    store.change(&[A], 1);
    store.settle();
    store.change_unindexed(A, 2);
    assert_eq!(store.offer(A), Offer::Taken);
    store.round().unwrap();
    damage_newest(&store, A);
    store.check_latest(A);
}
