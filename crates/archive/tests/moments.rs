//! A model of all versions of all pages. A load runs while it is archived; random moments of it are
//! restored and cloned, and each page must be as it was.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::{FollowOptions, LogStore, PageFilter, PageRead, PageStore, PageStoreError};
use firn_archive::{
    Archive, ArchiveError, ArchiveOptions, ArchiveSource, ArchiveStatus, ArchivedBase, Archiver,
    BaseDescription, LocalWriter, Moment, Progress, Restore, TakenOver, verify,
};
use firn_base::random::{RandomSource, SplitMix};
use firn_base::task::{monotonic, sleep};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PAGE_HEADER_BYTES, PageBuf, PageKind};
use firn_format::redo::change::no_page;
use firn_format::redo::{Change, GroupBuilder, apply};
use firn_objects::{MemoryObjects, ObjectError, ObjectStore};
use firn_storage::local::{LocalOptions, LocalStorage, LogOptions};

const PAGES: u32 = 60;
/// How long a test waits for what the archiver does in its own time.
const PATIENCE: Duration = Duration::from_secs(180);
const URL: &str = "file:///nowhere";

fn local_options() -> LocalOptions {
    let log = LogOptions { segment_size_bytes: 256 << 10, ..LogOptions::default() };
    LocalOptions { log, hold_log_bytes: Some(1 << 30), ..LocalOptions::default() }
}

fn archive_options() -> ArchiveOptions {
    ArchiveOptions {
        interval_ms: 20,
        piece_bytes: 32 << 10,
        images_after_bytes: 128 << 10,
        pack_images: 8,
        longest_pause_ms: 50,
        ..ArchiveOptions::default()
    }
}

fn writer(environment: &Environment, storage: &LocalStorage) -> Arc<LocalWriter> {
    let (clock, log) = (Arc::clone(&environment.clock), Arc::clone(&storage.log));
    Arc::new(LocalWriter { clock, log })
}

/// Every version of every page, and when each group was known to be durable.
#[derive(Default)]
struct Model {
    versions: BTreeMap<PageId, Vec<(Lsn, Box<PageBuf>)>>,
    dropped: BTreeMap<SpaceId, Lsn>,
    /// Before the group was written, its end, after it was durable; in milliseconds.
    groups: Vec<(u64, Lsn, u64)>,
}

impl Model {
    fn as_of(&self, page: PageId, lsn: Lsn) -> Option<&PageBuf> {
        if self.dropped.get(&page.space).is_some_and(|end| *end <= lsn) {
            return None;
        }
        let versions = self.versions.get(&page)?;
        versions.iter().rev().find(|(end, _)| *end <= lsn).map(|(_, page)| &**page)
    }
}

/// A database that is archived.
struct Subject {
    environment: Environment,
    directory: tempfile::TempDir,
    storage: Option<LocalStorage>,
    archiver: Option<Archiver>,
    objects: MemoryObjects,
    model: Model,
    random: SplitMix,
    spaces: Vec<SpaceId>,
    next_space: u32,
    options: ArchiveOptions,
}

impl Subject {
    fn new(seed: u64, options: ArchiveOptions) -> Subject {
        let mut subject = Subject {
            environment: Environment::system(),
            directory: tempfile::tempdir().unwrap(),
            storage: None,
            archiver: None,
            objects: MemoryObjects::new(seed),
            model: Model::default(),
            random: SplitMix::new(seed),
            spaces: vec![SpaceId(1), SpaceId(2)],
            next_space: 3,
            options,
        };
        subject.open();
        subject
    }

    fn open(&mut self) {
        let path = self.directory.path().join("data");
        let storage = LocalStorage::open(&self.environment, &path, local_options()).unwrap();
        let source = ArchiveSource {
            database: storage.database,
            log: Arc::clone(&storage.log) as _,
            pages: Arc::clone(&storage.pages) as _,
            writer: writer(&self.environment, &storage),
            epoch: 0,
            taken_over: None,
            hold: storage.take_hold(),
        };
        let store = Arc::new(self.objects.clone());
        self.archiver =
            Some(Archiver::start(&self.environment, store, source, self.options.clone()));
        self.storage = Some(storage);
    }

    fn storage(&self) -> &LocalStorage {
        self.storage.as_ref().unwrap()
    }

    fn archiver(&self) -> &Archiver {
        self.archiver.as_ref().unwrap()
    }

    fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.objects.clone())
    }

    fn restart(&mut self) {
        self.archiver.take().unwrap().close();
        self.storage.take().unwrap().close();
        self.open();
    }

    /// Like a crash: the archiver sends nothing more.
    fn crash(&mut self) {
        self.objects.set_down(true);
        self.archiver.take().unwrap().close();
        self.storage.take().unwrap().close();
        self.objects.set_down(false);
        self.open();
    }

    fn write(&mut self) {
        let mut builder = GroupBuilder::new();
        let mut changed: BTreeMap<PageId, Box<PageBuf>> = BTreeMap::new();
        let mut dropped = None;
        if self.random.below(400) == 0 {
            let space = self.spaces.remove(0);
            Change::SpaceDropped.encode(no_page(space), &mut builder);
            dropped = Some(space);
            self.spaces.push(SpaceId(self.next_space));
            self.next_space += 1;
        } else {
            for _ in 0..=self.random.below(3) {
                let space = self.spaces[self.random.below(2) as usize];
                let page = PageId::new(space, PageNo(self.random.below(u64::from(PAGES)) as u32));
                let newest = || self.model.as_of(page, Lsn::MAX).cloned();
                let before = changed.get(&page).map(|page| PageBuf::clone(page)).or_else(newest);
                let mut image =
                    Box::new(before.unwrap_or_else(|| PageBuf::clone(&PageBuf::boxed())));
                if image.lsn() == Lsn(0) && !changed.contains_key(&page) {
                    let format = Change::Format { kind: PageKind::SpaceHeader };
                    format.encode(page, &mut builder);
                    apply(&mut image, page, &format).unwrap();
                }
                let bytes: Vec<u8> = (0..200).map(|_| self.random.next_u64() as u8).collect();
                let offset = PAGE_HEADER_BYTES as u16 + self.random.below(1000) as u16;
                let change = Change::WriteBytes { at: offset, bytes: &bytes };
                change.encode(page, &mut builder);
                apply(&mut image, page, &change).unwrap();
                changed.insert(page, image);
            }
        }
        let before = self.environment.clock.wall_time_ms();
        let end = self.storage().log.import(builder.finish()).unwrap();
        let after = self.environment.clock.wall_time_ms();
        self.model.groups.push((before, end, after));
        for (page, mut image) in changed {
            image.set_lsn(end);
            self.model.versions.entry(page).or_default().push((end, image));
        }
        if let Some(space) = dropped {
            self.model.dropped.insert(space, end);
        }
    }

    fn load(&mut self, groups: u64) {
        for number in 0..groups {
            self.write();
            if number.is_multiple_of(50) {
                sleep(Duration::from_millis(5));
            }
        }
    }

    fn wait_until_archived(&self) {
        let end = self.storage().log.durable_lsn();
        let status = wait_for(self.archiver(), |status| {
            let is_archived = status.archived == Some(end)
                && status.progress.behind_bytes == 0
                && status.progress.sets > 0;
            is_archived || status.has_stopped
        });
        assert!(!status.has_stopped, "{status:?}");
    }

    /// The pages of a directory are those of the model at a position.
    fn check_pages(&self, pages: &dyn PageStore, end: Lsn) {
        let mut found = PageBuf::boxed();
        for space in 1..self.next_space {
            for number in 0..PAGES {
                let page = PageId::new(SpaceId(space), PageNo(number));
                let read = pages.read(page, PageRead::Latest { at_least: end }, &mut found);
                match (self.model.as_of(page, end), read) {
                    (None, Err(PageStoreError::Absent(_))) => {}
                    (Some(wanted), Ok(_)) => {
                        assert_eq!(found.lsn(), wanted.lsn(), "{page} as of {end}");
                        let (found, wanted) = (&found.bytes()[16..], &wanted.bytes()[16..]);
                        assert_eq!(found, wanted, "{page} as of {end}");
                    }
                    (wanted, read) => {
                        panic!("{page} as of {end}: {:?}, {read:?}", wanted.map(PageBuf::lsn));
                    }
                }
            }
        }
    }

    /// The groups that were durable at a time are there; those that began later are not. The end of
    /// the archive may have later ones: its time says only what is surely there.
    fn check_time(&self, time_ms: u64, end: Lsn, moment: Moment) {
        for (before, lsn, after) in &self.model.groups {
            assert!(
                *after >= time_ms || *lsn <= end,
                "{lsn} was durable at {after}, {time_ms} ends at {end}"
            );
            assert!(
                *before <= time_ms || *lsn > end || moment == Moment::Newest,
                "{lsn} began at {before}, {time_ms} ends at {end}"
            );
        }
    }

    fn restore(&self, moment: Moment, is_clone: bool) {
        let archive = Archive::open(&self.store()).unwrap();
        let plan = archive.plan(moment).unwrap();
        let restore = Restore {
            environment: &self.environment,
            archive: &archive,
            url: URL,
            plan: &plan,
            options: local_options(),
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("restored");
        let restored = match is_clone {
            true => restore.clone_to(&path, &mut |_| {}).unwrap(),
            false => restore.restore_to(&path, &mut |_| {}).unwrap(),
        };
        if let Some(time_ms) = plan.time_ms {
            self.check_time(time_ms, restored.end, moment);
        }
        // What the clone has copied does not need the archive again.
        for is_again in [false, true] {
            let storage = self.open_restored(&path, !is_clone);
            self.check_pages(&*storage.pages, restored.end);
            if is_clone && !is_again {
                storage.pages.copy_base(&mut |_| {}).unwrap();
                assert!(storage.pages.is_whole());
            }
            storage.close();
        }
        self.objects.set_down(true);
        let storage = self.open_restored(&path, true);
        self.check_pages(&*storage.pages, restored.end);
        storage.close();
        self.objects.set_down(false);
        assert!(self.objects.list("pins").unwrap().is_empty());
    }

    fn open_restored(&self, path: &Path, is_whole: bool) -> LocalStorage {
        let description = BaseDescription::read(self.environment.disk.as_ref(), path).unwrap();
        assert!(description.is_none() || !is_whole, "the directory still needs its base");
        let base = description.map(|description| {
            let base =
                ArchivedBase::open(&self.environment, path, description, self.store()).unwrap();
            Arc::new(base) as _
        });
        LocalStorage::open_over(&self.environment, path, local_options(), base).unwrap()
    }
}

/// Restores and clones random moments of a load.
fn check_moments(subject: &Subject, moments: usize) {
    let archive = Archive::open(&subject.store()).unwrap();
    let mut checked = 0;
    for coverage in archive.coverage() {
        for number in 0..moments {
            let (from, to) = (coverage.from, coverage.to);
            let moment = match subject.random.below(2) {
                0 => Moment::Lsn(Lsn(from.lsn.0 + subject.random.below(to.lsn.0 - from.lsn.0 + 1))),
                _ if to.time_ms > from.time_ms => {
                    let time = subject.random.below(to.time_ms - from.time_ms);
                    Moment::Time(from.time_ms + time)
                }
                _ => continue,
            };
            subject.restore(moment, number % 2 == 0);
            checked += 1;
        }
    }
    assert!(checked > 0, "no moment was covered: {:?}", archive.manifest());
}

#[test]
fn every_moment_of_a_load_comes_back() {
    let mut subject = Subject::new(1, archive_options());
    subject.load(300);
    subject.wait_until_archived();
    subject.load(2500);
    subject.wait_until_archived();
    check_moments(&subject, 8);
    subject.restore(Moment::Newest, true);
    // There is log enough for another two sets, and each is made in the archiver's own time.
    wait_for(subject.archiver(), |status| status.progress.sets > 2);
    let archive = Archive::open(&subject.store()).unwrap();
    let report = verify(&archive, &mut |_, _| {}).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    assert!(report.images > 100 && report.groups > 2000, "{report:?}");
}

#[test]
fn a_store_that_fails_often_and_restarts_change_nothing() {
    let mut subject = Subject::new(2, archive_options());
    subject.objects.set_failing(20);
    subject.load(300);
    for round in 0..6 {
        subject.load(300);
        match round % 3 {
            0 => subject.restart(),
            1 => subject.crash(),
            _ => sleep(Duration::from_millis(100)),
        }
    }
    subject.wait_until_archived();
    subject.objects.set_failing(0);
    check_moments(&subject, 6);
    let archive = Archive::open(&subject.store()).unwrap();
    assert!(archive.manifest().gaps.is_empty(), "{:?}", archive.manifest().gaps);
    assert!(verify(&archive, &mut |_, _| {}).unwrap().findings.is_empty());
}

#[test]
fn a_store_that_is_away_too_long_leaves_a_gap_that_is_named() {
    let options = ArchiveOptions { hold_log_bytes: 64 << 10, ..archive_options() };
    let mut subject = Subject::new(3, options);
    subject.load(300);
    subject.wait_until_archived();
    subject.objects.set_room(subject.objects.size_bytes());
    for _ in 0..60 {
        subject.load(60);
        // The log is truncated as pages become durable, whatever the archive does.
        let durable = subject.storage().log.durable_lsn();
        subject.storage().pages.materialise_up_to(durable).unwrap();
    }
    wait_for(subject.archiver(), |status| status.progress.error.is_some());
    let kept = || {
        let log = &subject.storage().log;
        log.durable_lsn().since(log.truncated_lsn())
    };
    wait_for(subject.archiver(), |_| kept() < 1 << 20);
    subject.objects.set_room(u64::MAX);
    wait_for(subject.archiver(), |status| status.last_gap.is_some());
    subject.load(300);
    subject.wait_until_archived();
    // The set behind the gap is made in the archiver's own time. If that was slow, the gap reaches
    // the newest log, and what comes now is behind it.
    let end = monotonic() + PATIENCE;
    while Archive::open(&subject.store()).unwrap().coverage().len() < 2 {
        assert!(monotonic() < end, "not in time: {:?}", subject.archiver().status());
        subject.load(10);
        subject.wait_until_archived();
    }
    let archive = Archive::open(&subject.store()).unwrap();
    let gap = *archive.manifest().gaps.last().expect("a gap");
    assert!(gap.from < gap.to, "{gap:?}");
    let refused = archive.plan(Moment::Lsn(Lsn((gap.from.0 + gap.to.0) / 2)));
    assert!(matches!(refused, Err(ArchiveError::NotCovered { .. })), "{refused:?}");
    check_moments(&subject, 3);
}

#[test]
fn what_no_moment_of_the_window_needs_is_removed() {
    let options = ArchiveOptions { window_ms: 1, ..archive_options() };
    let mut subject = Subject::new(4, options);
    for _ in 0..4 {
        subject.load(800);
        subject.wait_until_archived();
    }
    let before = Archive::open(&subject.store()).unwrap();
    // A new archiver looks for what has expired at once, and removes what no manifest names.
    subject.objects.put("log/orphan", b"x").unwrap();
    subject.restart();
    subject.load(300);
    subject.wait_until_archived();
    let has_only_what_is_named = || {
        let after = Archive::open(&subject.store()).unwrap();
        let is_all = |folder, named| subject.objects.list(folder).unwrap().len() == named;
        after.manifest().log[0].from > before.manifest().log[0].from
            && is_all("log", after.manifest().log.len())
            && is_all("sets", after.manifest().sets.len())
    };
    wait_for(subject.archiver(), |_| has_only_what_is_named());
    // Else it could remove the next object while the restore reads it.
    subject.archiver().close();
    subject.restore(Moment::Newest, false);
}

#[test]
fn two_archivers_of_one_database_end_with_one() {
    let mut subject = Subject::new(5, archive_options());
    subject.load(100);
    subject.wait_until_archived();
    let storage = subject.storage();
    let source = ArchiveSource {
        database: storage.database,
        log: Arc::clone(&storage.log) as _,
        pages: Arc::clone(&storage.pages) as _,
        writer: writer(&subject.environment, storage),
        epoch: 0,
        taken_over: None,
        hold: None,
    };
    let other = Archiver::start(&subject.environment, subject.store(), source, archive_options());
    wait_for(&other, |status| status.archived.is_some());
    // The first one learns of the other when it has something to write.
    subject.load(50);
    wait_for(subject.archiver(), |status| status.has_stopped);
    assert!(!other.status().has_stopped);
    other.close();
    let archive = Archive::open(&subject.store()).unwrap();
    assert!(verify(&archive, &mut |_, _| {}).unwrap().findings.is_empty());
}

#[test]
fn another_database_is_refused() {
    let mut subject = Subject::new(6, archive_options());
    subject.load(100);
    subject.wait_until_archived();
    let mut other = Subject::new(7, archive_options());
    other.archiver.take().unwrap().close();
    other.objects = subject.objects.clone();
    other.restart_archiver();
    let status = wait_for(other.archiver(), |status| status.has_stopped);
    let error = status.progress.error.unwrap();
    assert!(error.contains(&subject.storage().database.to_string()), "{error}");
}

/// Waits until an archiver says so, and returns what it says.
fn wait_for(archiver: &Archiver, is_so: impl Fn(&ArchiveStatus) -> bool) -> ArchiveStatus {
    let end = monotonic() + PATIENCE;
    loop {
        let status = archiver.status();
        if is_so(&status) {
            return status;
        }
        assert!(monotonic() < end, "not in time: {status:?}");
        sleep(Duration::from_millis(10));
    }
}

impl Subject {
    fn restart_archiver(&mut self) {
        self.storage.take().unwrap().close();
        self.open();
    }
}

#[test]
fn damage_is_found_and_named() {
    let mut subject = Subject::new(8, archive_options());
    subject.load(600);
    subject.wait_until_archived();
    subject.archiver().close();
    for folder in ["log", "pages", "sets"] {
        let objects = subject.objects.copied();
        let name = objects.list(folder).unwrap().remove(0);
        let length = objects.get(&name).unwrap().len();
        objects.damage(&name, length - 1);
        let store: Arc<dyn ObjectStore> = Arc::new(objects.clone());
        let archive = Archive::open(&store).unwrap();
        let report = verify(&archive, &mut |_, _| {}).unwrap();
        let named: Vec<&str> =
            report.findings.iter().map(|finding| finding.name.as_str()).collect();
        assert_eq!(named, [name.as_str()], "{:?}", report.findings);
        objects.delete(&name).unwrap();
        let report = verify(&archive, &mut |_, _| {}).unwrap();
        assert_eq!(report.findings[0].what, "it is missing");
    }
    // Without the newest manifest, the one before it counts.
    let newest = subject.objects.list("manifest").unwrap().pop().unwrap();
    subject.objects.damage(&newest, 30);
    let archive = Archive::open(&subject.store()).unwrap();
    let report = verify(&archive, &mut |_, _| {}).unwrap();
    assert_eq!(report.findings[0].name, newest);
}

#[test]
fn a_restore_tells_how_far_it_is_and_takes_no_place_that_is_taken() {
    let mut subject = Subject::new(9, archive_options());
    subject.load(600);
    subject.wait_until_archived();
    let archive = Archive::open(&subject.store()).unwrap();
    let plan = archive.plan(Moment::Newest).unwrap();
    let restore = Restore {
        environment: &subject.environment,
        archive: &archive,
        url: URL,
        plan: &plan,
        options: local_options(),
    };
    let directory = tempfile::tempdir().unwrap();
    let taken = restore.restore_to(&subject.directory.path().join("data"), &mut |_| {});
    assert!(matches!(taken, Err(ArchiveError::NotEmpty { .. })), "{taken:?}");
    let mut steps = Vec::new();
    restore.restore_to(&directory.path().join("new"), &mut |step| steps.push(step)).unwrap();
    assert!(
        steps.iter().any(|step| matches!(step, Progress::Log { done, total } if done == total))
    );
    assert!(steps.iter().any(|step| matches!(step, Progress::Pages { done, .. } if *done > 0)));
}

/// The way of one process to the store, which can be cut.
struct Way {
    objects: MemoryObjects,
    is_cut: AtomicBool,
}

impl Way {
    fn check(&self, name: &str) -> Result<(), ObjectError> {
        let (location, name) = (self.location().to_owned(), name.to_owned());
        match self.is_cut.load(Ordering::SeqCst) {
            true => Err(ObjectError::Unavailable { location, name, reason: "cut".to_owned() }),
            false => Ok(()),
        }
    }
}

impl ObjectStore for Way {
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectError> {
        self.check(name)?;
        self.objects.put(name, bytes)
    }

    fn get(&self, name: &str) -> Result<Vec<u8>, ObjectError> {
        self.check(name)?;
        self.objects.get(name)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, ObjectError> {
        self.check(name)?;
        self.objects.get_range(name, range)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, ObjectError> {
        self.check(folder)?;
        self.objects.list(folder)
    }

    fn delete(&self, name: &str) -> Result<(), ObjectError> {
        self.check(name)?;
        self.objects.delete(name)
    }

    fn location(&self) -> &str {
        self.objects.location()
    }
}

/// An archiver as the process of a cluster that was chosen in `epoch` has it.
fn chosen(subject: &Subject, epoch: u64) -> (Arc<Way>, Archiver) {
    chosen_after(subject, epoch, None)
}

/// The same, in a cluster that has perhaps been taken over.
fn chosen_after(
    subject: &Subject,
    epoch: u64,
    taken_over: Option<TakenOver>,
) -> (Arc<Way>, Archiver) {
    let storage = subject.storage();
    let source = ArchiveSource {
        database: storage.database,
        log: Arc::clone(&storage.log) as _,
        pages: Arc::clone(&storage.pages) as _,
        writer: writer(&subject.environment, storage),
        epoch,
        taken_over,
        hold: None,
    };
    let way = Arc::new(Way { objects: subject.objects.clone(), is_cut: AtomicBool::new(false) });
    let store = Arc::clone(&way) as Arc<dyn ObjectStore>;
    let options = subject.options.clone();
    (way, Archiver::start(&subject.environment, store, source, options))
}

#[test]
fn archivers_that_follow_each_other_leave_no_gap() {
    let mut subject = Subject::new(10, archive_options());
    subject.archiver.take().unwrap().close();
    // What the log's members do: they keep what is not archived.
    let _kept = subject.storage().log.follow(FollowOptions {
        name: "members".to_owned(),
        from: subject.storage().log.truncated_lsn(),
        until: None,
        pages: PageFilter::All,
        hold_limit_bytes: u64::MAX,
    });
    subject.load(50);
    let (mut running, mut epoch) = (vec![chosen(&subject, 1)], 1);
    subject.objects.set_failing(10);
    for _ in 0..25 {
        subject.objects.set_delay(Duration::from_millis(subject.random.below(8)));
        subject.load(80);
        match subject.random.below(3) {
            // The process dies before another one is chosen.
            0 => {
                for (way, archiver) in running.drain(..) {
                    way.is_cut.store(true, Ordering::SeqCst);
                    archiver.close();
                }
            }
            // It goes on: it does not know yet that another one is chosen.
            1 => {}
            // It was cut off from the store for a while.
            _ => {
                for (way, _) in &running {
                    way.is_cut.fetch_not(Ordering::SeqCst);
                }
            }
        }
        epoch += 1 + subject.random.below(3);
        running.push(chosen(&subject, epoch));
        sleep(Duration::from_millis(subject.random.below(80)));
    }
    subject.objects.set_failing(0);
    subject.objects.set_delay(Duration::from_millis(1));
    epoch += 1;
    let last = chosen(&subject, epoch);
    subject.load(300);
    subject.archiver = Some(last.1);
    subject.wait_until_archived();
    // One that was chosen earlier does not come back.
    let (_, old) = chosen(&subject, epoch - 1);
    subject.load(20);
    let found = wait_for(&old, |status| status.has_stopped);
    assert!(found.progress.error.unwrap().contains("was chosen later"));
    let status = subject.archiver().status();
    assert!(!status.has_stopped, "{status:?}");
    drop(running);
    subject.wait_until_archived();
    check_moments(&subject, 12);
    let archive = Archive::open(&subject.store()).unwrap();
    assert!(archive.manifest().gaps.is_empty(), "{:?}", archive.manifest().gaps);
    assert_eq!(archive.manifest().epoch, epoch);
    assert!(verify(&archive, &mut |_, _| {}).unwrap().findings.is_empty());
}

#[test]
fn a_slow_store_does_not_slow_the_database() {
    let mut subject = Subject::new(11, archive_options());
    subject.load(300);
    subject.wait_until_archived();
    // No call ends, so a database that waited for the store would stay here.
    subject.objects.set_delay(Duration::from_secs(3600));
    subject.load(500);
    wait_for(subject.archiver(), |status| {
        status.progress.behind_bytes > 0 && status.progress.behind_ms > 100
    });
    let status = subject.archiver().status();
    assert!(status.progress.error.is_none(), "{status:?}");
    subject.objects.set_delay(Duration::ZERO);
    subject.wait_until_archived();
    wait_for(subject.archiver(), |status| status.progress.behind_ms < 100);
    check_moments(&subject, 3);
}

#[test]
fn a_cluster_that_was_taken_over_adds_nothing_to_log_that_it_lost() {
    let mut subject = Subject::new(11, archive_options());
    subject.archiver.take().unwrap().close();
    let (_, first) = chosen(&subject, 7);
    subject.load(50);
    let end = subject.storage().log.durable_lsn();
    wait_for(&first, |status| status.archived >= Some(end));
    first.close();
    let known = Archive::open(&subject.store()).unwrap().manifest().number;
    let taken_over = |at| Some(TakenOver { first_epoch: 100, at });
    // The archive has more of the lost log than the cluster had when it was taken over.
    let (_, refused) = chosen_after(&subject, 101, taken_over(Lsn(end.0 - 1)));
    wait_for(&refused, |status| status.has_stopped);
    let error = refused.status().progress.error.unwrap_or_default();
    assert!(error.contains("Give it a URL of its own"), "{error}");
    refused.close();
    assert_eq!(Archive::open(&subject.store()).unwrap().manifest().number, known);
    // It has no more, and goes on. From then on it is the cluster's.
    let (_, goes_on) = chosen_after(&subject, 101, taken_over(end));
    subject.load(50);
    let end = subject.storage().log.durable_lsn();
    wait_for(&goes_on, |status| status.archived >= Some(end));
    goes_on.close();
    let (_, again) = chosen_after(&subject, 102, taken_over(Lsn(end.0 - 1)));
    subject.load(10);
    let end = subject.storage().log.durable_lsn();
    wait_for(&again, |status| status.archived >= Some(end));
    again.close();
}
