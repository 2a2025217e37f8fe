//! The archiver's turns. Everything here is done by one task.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use firn_api::report::ArchiveProgress;
use firn_api::{Followed, LogError, LogFollower, LogStore};
use firn_base::{Environment, Lsn, PageId, SpaceId};
use firn_objects::{ObjectError, ObjectStore, put_once};
use firn_storage::local::DatabaseId;

use super::imaging::{Imaging, Step};
use super::log_buffer::LogBuffer;
use super::retention::{is_full_due, without_expired};
use super::takeover;
use super::{ArchiveOptions, ArchiveSource, ArchiveStatus, ArchivedPages, ArchivedWriter, Shared};
use crate::error::ArchiveError;
use crate::format::{Gap, ImageSet, LogEntry, Manifest, Mark};
use crate::names;

/// How often a moment is noted.
const TICK: Duration = Duration::from_millis(100);
/// Log that is taken at once, in bytes.
const TAKEN_BYTES: usize = 1 << 20;
/// Objects of new log that lie side by side before one takes their place.
const MOST_SMALL: usize = 64;
/// How often a manifest says that nothing was written.
const IDLE_MANIFEST: Duration = Duration::from_secs(60);
/// How often expired objects are looked for.
const RETENTION: Duration = Duration::from_secs(60);
/// Manifests that are kept; older ones are removed.
const KEPT_MANIFESTS: u64 = 100;
/// How long the archiver tries to send the rest of the log when it is closed.
const CLOSING: Duration = Duration::from_secs(5);

/// Runs an archiver until it is closed or has to stop.
pub(super) fn run(
    environment: &Environment,
    store: &Arc<dyn ObjectStore>,
    mut source: ArchiveSource,
    options: ArchiveOptions,
    shared: &Arc<Shared>,
) {
    let mut pause = Pause::new(options.longest_pause_ms);
    let mut turns = loop {
        if shared.is_closing() {
            return;
        }
        match takeover::begin(environment, store, &source, &options, shared) {
            Ok(turns) => break turns,
            Err(error) => match note(shared, &error, error.may_begin_again()) {
                true => shared.pause(pause.next()),
                false => return,
            },
        }
    };
    // From here on, the follower holds the log.
    drop(source.hold.take());
    while !shared.is_closing() {
        match turns.turn() {
            Ok(is_busy) => {
                pause.reset();
                turns.tell();
                if !is_busy {
                    turns.wait(TICK);
                }
            }
            Err(error) => {
                turns.tell_lag();
                match note(shared, &error, error.is_retryable()) {
                    true => turns.wait(pause.next()),
                    false => return,
                }
            }
        }
    }
    turns.finish();
}

/// Records a failure, and logs it if it is news. Returns `is_retryable`: whether the archiver goes
/// on.
fn note(shared: &Shared, error: &ArchiveError, is_retryable: bool) -> bool {
    let mut told = shared.told.lock();
    let status = &mut told.status;
    status.progress.failures += 1;
    status.has_stopped = !is_retryable;
    let text = error.to_string();
    let is_news = status.progress.error.as_ref() != Some(&text);
    status.progress.error = Some(text);
    drop(told);
    match (is_retryable, is_news) {
        (false, _) => tracing::error!(%error, "archiving has stopped"),
        (true, true) => tracing::warn!(%error, "nothing is archived at present; trying again"),
        (true, false) => {}
    }
    is_retryable
}

/// Pauses between failed attempts, each twice as long as the one before.
struct Pause {
    next_ms: u64,
    longest_ms: u64,
}

impl Pause {
    fn new(longest_ms: u64) -> Pause {
        Pause { next_ms: TICK.as_millis() as u64, longest_ms }
    }

    fn next(&mut self) -> Duration {
        let pause = self.next_ms.min(self.longest_ms);
        self.next_ms = (pause * 2).max(1);
        Duration::from_millis(pause)
    }

    fn reset(&mut self) {
        self.next_ms = TICK.as_millis() as u64;
    }
}

/// A manifest that is being written, and the objects that it does not name any more.
struct Publishing {
    manifest: Manifest,
    obsolete: Vec<String>,
}

/// An object of log that is being written.
struct Unsent {
    entry: LogEntry,
    bytes: Vec<u8>,
    /// How many entries at the end of the manifest it takes the place of.
    replaces: usize,
}

/// What the task knows of the database and its archive.
pub(super) struct Turns {
    pub(super) environment: Environment,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) database: DatabaseId,
    pub(super) log: Arc<dyn LogStore>,
    pub(super) pages: Arc<dyn ArchivedPages>,
    /// The node that writes the log.
    pub(super) origin: Arc<dyn ArchivedWriter>,
    pub(super) options: ArchiveOptions,
    pub(super) shared: Arc<Shared>,
    pub(super) follower: Box<dyn LogFollower>,
    pub(super) writer: u32,
    /// The last manifest that was written.
    pub(super) manifest: Manifest,
    /// The end of what the archive needs no more: log up to here is in it, or in a gap.
    pub(super) archived: Lsn,
    /// Log that was taken and is not in an object yet.
    pub(super) buffer: LogBuffer,
    /// Pages that changed and spaces that were dropped since the last set began.
    pub(super) changed: BTreeSet<PageId>,
    pub(super) dropped: BTreeSet<SpaceId>,
    /// Whether the next set must be a full one.
    pub(super) needs_full: bool,
    pub(super) work: Work,
}

/// What is under way.
#[derive(Default)]
pub(super) struct Work {
    publishing: Option<Publishing>,
    unsent: Option<Unsent>,
    /// Log of the small objects at the manifest's end that this task has written; their number.
    small: Option<(LogBuffer, usize)>,
    imaging: Option<Imaging>,
    /// A gap that follows the buffer.
    gap: Option<Gap>,
    /// Moments of log behind the buffer.
    marks: VecDeque<Mark>,
    newest_mark: Option<Mark>,
    /// The last time at which all durable log was archived, as the moments count time.
    caught_up_ms: u64,
    published_at: Duration,
    expired_at: Duration,
    sent_bytes: u64,
}

impl Turns {
    fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    /// Does what is due. Whether there is more to do at once. Blocks for I/O.
    fn turn(&mut self) -> Result<bool, ArchiveError> {
        let has_sent = self.ship(false)?;
        let has_imaged = self.image_step()?;
        self.publish_idle(IDLE_MANIFEST)?;
        self.expire()?;
        Ok(has_sent || has_imaged)
    }

    /// Takes log, and sends it if it is due or `is_last`. Whether an object was sent.
    fn ship(&mut self, is_last: bool) -> Result<bool, ArchiveError> {
        self.note_moment();
        self.take_log()?;
        self.publish()?;
        if self.work.unsent.is_none() && self.is_log_due(is_last) {
            self.begin_object();
        }
        let has_sent = self.send_log()?;
        self.enter_gap()?;
        Ok(has_sent)
    }

    /// Waits, and goes on to note moments meanwhile.
    fn wait(&mut self, pause: Duration) {
        let end = self.now() + pause;
        loop {
            let left = end.saturating_sub(self.now());
            if left.is_zero() || self.shared.is_closing() {
                return;
            }
            self.shared.pause(left.min(TICK));
            self.note_moment();
        }
    }

    /// Sends the rest of the log, if the store takes it, and says that nothing followed.
    fn finish(mut self) {
        let end = self.now() + CLOSING;
        let finished = loop {
            match self.ship(true) {
                Ok(false) if self.buffer.is_empty() => break self.publish_idle(Duration::ZERO),
                Ok(_) if self.now() >= end => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        self.tell();
        if let Err(error) = finished {
            note(&self.shared, &error, error.is_retryable());
        }
    }

    // ---- the log ----

    /// Notes the present moment, and returns it; `None` if the writer of the log does not tell it.
    fn note_moment(&mut self) -> Option<Mark> {
        let Mark { time_ms, lsn } = self.origin.moment()?;
        let before = self.work.newest_mark;
        // The clock may be another node's than that of the moments before, and behind it.
        let known = before.map_or(self.manifest.as_of_ms, |before| before.time_ms);
        let time_ms = time_ms.max(known);
        let lsn = before.map_or(lsn, |before| before.lsn.max(lsn));
        let mark = Mark { time_ms, lsn };
        if before.is_none_or(|before| before.lsn < lsn) {
            self.work.marks.push_back(mark);
        }
        self.work.newest_mark = Some(mark);
        if self.archived >= lsn {
            self.work.caught_up_ms = time_ms;
        }
        Some(mark)
    }

    fn take_log(&mut self) -> Result<(), ArchiveError> {
        while self.work.gap.is_none() && self.buffer.size_bytes() < self.options.piece_bytes {
            match self.follower.next(TAKEN_BYTES, Duration::ZERO) {
                Ok(Followed::Piece(piece)) => {
                    let at = piece.from;
                    self.buffer.take(&piece).map_err(|what| LogError::Damaged {
                        at: format!("log position {at}"),
                        what,
                    })?;
                }
                Ok(Followed::Nothing | Followed::End) => return Ok(()),
                Err(LogError::ReaderDropped { .. }) => self.lose_log()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Log behind the buffer is gone. The archive goes on at the end of the log.
    fn lose_log(&mut self) -> Result<(), ArchiveError> {
        let from = self.log.durable_lsn();
        self.buffer.raise(self.origin.watermarks()?);
        self.follower = self.log.follow(takeover::follow(from, &self.options))?;
        let gap = Gap {
            from: self.buffer.to,
            to: from,
            from_ms: self.manifest.as_of_ms,
            to_ms: self.environment.clock.wall_time_ms(),
        };
        tracing::error!(from = %gap.from, to = %gap.to, "the archive was away for too long; log is missing in it, and no moment of it can be restored");
        self.work.gap = Some(gap);
        Ok(())
    }

    /// Once all log before a gap is sent, goes on behind it.
    fn enter_gap(&mut self) -> Result<(), ArchiveError> {
        let is_ready =
            self.buffer.is_empty() && self.work.unsent.is_none() && self.work.publishing.is_none();
        let Some(gap) = self.work.gap.filter(|_| is_ready) else { return Ok(()) };
        let mut manifest = self.manifest.clone();
        manifest.gaps.push(gap);
        self.buffer = LogBuffer::new(gap.to, self.buffer.watermarks());
        self.changed.clear();
        self.dropped.clear();
        self.needs_full = true;
        self.work.gap = None;
        self.work.small = None;
        self.work.imaging = None;
        self.work.marks.retain(|mark| mark.lsn >= gap.to);
        self.begin_publishing(manifest, Vec::new());
        self.publish()
    }

    fn is_log_due(&self, is_last: bool) -> bool {
        let waited = self.now().saturating_sub(self.work.published_at);
        let is_late = waited >= Duration::from_millis(self.options.interval_ms);
        let is_much = self.buffer.size_bytes() >= self.options.piece_bytes;
        !self.buffer.is_empty() && (is_late || is_much || is_last || self.work.gap.is_some())
    }

    /// Makes an object of the buffer; together with the small objects before it, if that makes a
    /// large one.
    fn begin_object(&mut self) {
        self.buffer.take_marks(&mut self.work.marks);
        let next = LogBuffer::new(self.buffer.to, self.buffer.watermarks());
        let piece = std::mem::replace(&mut self.buffer, next);
        self.changed.extend(piece.pages());
        self.dropped.extend(piece.dropped());
        let small = self.work.small.take();
        let (mut all, count) =
            small.unwrap_or_else(|| (LogBuffer::new(piece.from, piece.watermarks()), 0));
        all.append(&piece);
        let is_large = all.size_bytes() >= self.options.piece_bytes || count + 1 >= MOST_SMALL;
        let (object, replaces) = match is_large {
            true => (all, count),
            false => {
                self.work.small = Some((all, count + 1));
                (piece, 0)
            }
        };
        let bytes = object.object(self.database).encode();
        let entry = LogEntry {
            from: object.from,
            to: object.to,
            writer: self.writer,
            size_bytes: bytes.len() as u64,
            time_ms: object.time_ms().unwrap_or(self.manifest.as_of_ms),
        };
        self.work.unsent = Some(Unsent { entry, bytes, replaces });
    }

    fn send_log(&mut self) -> Result<bool, ArchiveError> {
        let Some(unsent) = &self.work.unsent else { return Ok(false) };
        self.put(&names::log(&unsent.entry), &unsent.bytes)?;
        let unsent = self.work.unsent.take().expect("it was there");
        self.work.sent_bytes += unsent.bytes.len() as u64;
        let mut manifest = self.manifest.clone();
        let kept = manifest.log.len() - unsent.replaces;
        let obsolete = manifest.log.split_off(kept).iter().map(names::log).collect();
        manifest.log.push(unsent.entry);
        manifest.as_of_ms = manifest.as_of_ms.max(self.as_of(&unsent.entry));
        self.begin_publishing(manifest, obsolete);
        self.publish()?;
        Ok(true)
    }

    /// Everything acknowledged by then is in the log up to the entry's end.
    fn as_of(&self, entry: &LogEntry) -> u64 {
        match self.work.newest_mark {
            Some(mark) if mark.lsn <= entry.to => mark.time_ms,
            _ => entry.time_ms,
        }
    }

    // ---- the manifest ----

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        Ok(put_once(self.store.as_ref(), name, bytes)?)
    }

    fn begin_publishing(&mut self, mut manifest: Manifest, obsolete: Vec<String>) {
        debug_assert!(self.work.publishing.is_none(), "one manifest at a time");
        manifest.number = self.manifest.number + 1;
        manifest.writer = self.writer;
        self.work.publishing = Some(Publishing { manifest, obsolete });
    }

    /// Writes the manifest that is due, and removes what it does not name any more.
    fn publish(&mut self) -> Result<(), ArchiveError> {
        let Some(publishing) = &self.work.publishing else { return Ok(()) };
        takeover::put_manifest(self.store.as_ref(), &publishing.manifest)?;
        let publishing = self.work.publishing.take().expect("it was there");
        self.manifest = publishing.manifest;
        let gap_end = self.manifest.gaps.last().map(|gap| gap.to);
        let end = self.manifest.log_end().max(gap_end);
        self.archived = end.map_or(self.archived, |end| end.max(self.archived));
        self.work.published_at = self.now();
        self.follower.release(self.manifest.log_end().unwrap_or(Lsn(0)));
        let old = self.manifest.number.checked_sub(KEPT_MANIFESTS).map(names::manifest);
        for name in publishing.obsolete.into_iter().chain(old) {
            self.remove(&name);
        }
        Ok(())
    }

    /// An object that cannot be removed now is removed when the next archiver begins.
    fn remove(&self, name: &str) {
        if let Err(error) = self.store.delete(name) {
            tracing::info!(%error, "an object that is not needed any more stays for now");
        }
    }

    /// Publishes the present moment once `interval` has passed since the last one was published.
    fn publish_idle(&mut self, interval: Duration) -> Result<(), ArchiveError> {
        let waited = self.now().saturating_sub(self.work.published_at);
        let Some(mark) = self.work.newest_mark else { return Ok(()) };
        let end = self.manifest.log_end().or(self.manifest.sets.last().map(|set| set.end));
        let is_idle = self.buffer.is_empty() && Some(mark.lsn) == end;
        if !is_idle || waited < interval || self.work.publishing.is_some() {
            return Ok(());
        }
        let manifest = Manifest {
            as_of_ms: self.manifest.as_of_ms.max(mark.time_ms),
            ..self.manifest.clone()
        };
        self.begin_publishing(manifest, Vec::new());
        self.publish()
    }

    // ---- images ----

    /// Does a step of the set under way, or begins one if it is due. Whether there was one.
    fn image_step(&mut self) -> Result<bool, ArchiveError> {
        if self.work.imaging.is_none() {
            if !self.is_set_due() {
                return Ok(false);
            }
            self.begin_set();
        }
        let Some(imaging) = &mut self.work.imaging else { return Ok(false) };
        match imaging.read(self.pages.as_ref(), &self.options)? {
            Step::Send => {
                if let Some((name, bytes)) = &imaging.unsent {
                    put_once(self.store.as_ref(), name, bytes)?;
                    self.work.sent_bytes += bytes.len() as u64;
                }
                imaging.unsent = None;
                Ok(true)
            }
            Step::Complete => self.end_set().map(|()| false),
        }
    }

    fn is_set_due(&self) -> bool {
        let last = self.manifest.sets.last().map(|set| set.start);
        let much = |last: Lsn| self.buffer.to.0 >= last.0 + self.options.images_after_bytes;
        let is_due = self.needs_full || last.is_none_or(much);
        is_due && self.work.gap.is_none() && self.pages.is_whole()
    }

    fn begin_set(&mut self) {
        let is_full = self.needs_full || is_full_due(&self.manifest.sets);
        let mut changed = std::mem::take(&mut self.changed);
        let mut dropped = std::mem::take(&mut self.dropped);
        changed.extend(self.buffer.pages());
        dropped.extend(self.buffer.dropped());
        let changed = (!is_full).then_some(changed);
        let begins = (self.buffer.to, self.buffer.watermarks());
        let imaging = Imaging::new(self.database, begins, self.writer, changed, dropped);
        self.work.imaging = Some(imaging);
    }

    fn end_set(&mut self) -> Result<(), ArchiveError> {
        // No image is newer than what is durable now, and the moment comes after that. Without it,
        // the set is ended later.
        let durable = self.log.durable_lsn();
        let moment = self.note_moment().filter(|moment| moment.lsn >= durable);
        let Some(moment) = moment else { return Ok(()) };
        let Some(imaging) = &self.work.imaging else { return Ok(()) };
        let (name, bytes) = imaging.object();
        self.put(&name, &bytes)?;
        let entry = imaging.entry(moment);
        tracing::info!(start = %imaging.start(), images = entry.images, bytes = entry.size_bytes, is_full = entry.is_full, "a set of images is archived");
        let mut manifest = self.manifest.clone();
        manifest.sets.push(entry);
        self.work.imaging = None;
        self.needs_full = false;
        self.begin_publishing(manifest, Vec::new());
        self.publish()
    }

    // ---- retention ----

    /// Removes what no moment of the window needs, every [`RETENTION`].
    fn expire(&mut self) -> Result<(), ArchiveError> {
        let is_due = self.now().saturating_sub(self.work.expired_at) >= RETENTION;
        if !is_due || self.work.publishing.is_some() {
            return Ok(());
        }
        let pinned = takeover::pinned(self.store.as_ref())?;
        self.work.expired_at = self.now();
        let now_ms = self.environment.clock.wall_time_ms();
        let Some(rest) = without_expired(&self.manifest, now_ms, &pinned) else { return Ok(()) };
        let obsolete = self.expired_names(&rest)?;
        // Small objects that went are not replaced later.
        let small = self.work.small.take();
        self.work.small = small.filter(|(_, count)| *count <= rest.log.len());
        self.begin_publishing(rest, obsolete);
        self.publish()
    }

    fn expired_names(&self, rest: &Manifest) -> Result<Vec<String>, ArchiveError> {
        let kept_log = |entry: &&LogEntry| !rest.log.contains(entry);
        let mut found: Vec<String> =
            self.manifest.log.iter().filter(kept_log).map(names::log).collect();
        for set in self.manifest.sets.iter().filter(|set| !rest.sets.contains(set)) {
            let name = names::set_of(set);
            let bytes = match self.store.get(&name) {
                Err(ObjectError::NotFound { .. }) => continue,
                other => other?,
            };
            if let Ok(object) = ImageSet::decode(&bytes) {
                let packs = 0..object.packs.len();
                found.extend(packs.map(|number| names::pack(set.start, set.writer, number)));
            }
            found.push(name);
        }
        Ok(found)
    }

    // ---- what others see ----

    /// For how long there has been log that is not archived.
    fn behind_ms(&self) -> u64 {
        let archived = self.manifest.as_of_ms.max(self.work.caught_up_ms);
        self.work.newest_mark.map_or(0, |mark| mark.time_ms.saturating_sub(archived))
    }

    /// Says how far the archive is behind, and nothing else.
    fn tell_lag(&mut self) {
        self.note_moment();
        let mut told = self.shared.told.lock();
        told.at = self.now();
        told.status.progress.behind_ms = self.behind_ms();
    }

    fn tell(&mut self) {
        let durable = self.log.durable_lsn();
        if self.work.newest_mark.is_none_or(|mark| mark.lsn < durable) {
            // The store took its time.
            self.note_moment();
        }
        let behind = durable.0.saturating_sub(self.archived.0);
        let mut told = self.shared.told.lock();
        let had_error = told.status.progress.error.is_some();
        told.at = self.now();
        told.status = ArchiveStatus {
            archived: Some(self.archived),
            progress: ArchiveProgress {
                as_of_ms: self.manifest.as_of_ms,
                behind_bytes: behind,
                behind_ms: self.behind_ms(),
                log_objects: self.manifest.log.len() as u64,
                sets: self.manifest.sets.len() as u64,
                size_bytes: self.manifest.size_bytes(),
                sent_bytes: self.work.sent_bytes,
                failures: told.status.progress.failures,
                error: None,
            },
            has_stopped: false,
            last_gap: self.manifest.gaps.last().copied(),
        };
        drop(told);
        if had_error {
            tracing::info!("the archive is written again");
        }
    }
}
