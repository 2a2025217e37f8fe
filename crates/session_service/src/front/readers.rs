//! The other nodes at which sessions read (S8): attachments to all of them, of which a session
//! takes the one that has the least to do; one that is far, if no other takes it.
//!
//! A node that is behind, or does not answer, has more commands running than the others, so that
//! sessions come to it no more; one that has just refused a read rests for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_link::{Caller, Follower};
use parking_lot::Mutex;

use super::attachment::Attachment;
use super::place::Place;
use super::{BackendLinks, LOOK, Shared};
use crate::READING_SERVICE;

/// How often a node is asked whether it reads.
const ASK_READER_AGAIN: Duration = Duration::from_millis(500);
/// A session goes to another node when its own one runs this many commands more than twice as many
/// as the other one.
const MUCH_MORE: usize = 4;

/// The nodes that read for this front.
#[derive(Default)]
pub(super) struct Readers {
    attached: Mutex<Vec<Arc<Attachment>>>,
    are_there: AtomicBool,
}

impl Readers {
    /// Whether there are any.
    pub(super) fn are_there(&self) -> bool {
        self.are_there.load(Ordering::Relaxed)
    }

    /// The one with the least to do, of those that are near if there are any.
    pub(super) fn choose(&self, now: Duration) -> Option<Arc<Attachment>> {
        let attached = self.attached.lock();
        let takes = |one: &&Arc<Attachment>| one.takes_sessions(now);
        attached.iter().filter(takes).min_by_key(|one| (one.links.is_far, one.load())).cloned()
    }

    fn set(&self, attached: Vec<Arc<Attachment>>) {
        self.are_there.store(!attached.is_empty(), Ordering::Relaxed);
        let before = std::mem::replace(&mut *self.attached.lock(), attached);
        drop(before);
    }
}

impl Attachment {
    fn takes_sessions(&self, now: Duration) -> bool {
        !self.is_over() && !self.is_leaving() && now >= *self.rests_until.lock()
    }
}

/// A node that may read.
struct Reader {
    links: BackendLinks,
    attachment: Option<(Arc<Attachment>, Follower)>,
    asked_at: Option<Duration>,
}

impl Reader {
    fn new(links: BackendLinks) -> Reader {
        Reader { links, attachment: None, asked_at: None }
    }

    /// Takes what the node tells, or asks it whether it reads now.
    fn look(&mut self, shared: &Shared) {
        if let Some((attachment, events)) = &self.attachment {
            // A node that wanted sessions to go on elsewhere may take some again.
            let has_left = attachment.is_leaving() && attachment.load() == (0, 0);
            if attachment.take_all(events) && !has_left {
                return;
            }
            self.attachment = None;
        }
        let now = shared.now();
        if self.asked_at.is_some_and(|asked_at| now < asked_at.saturating_add(ASK_READER_AGAIN)) {
            return;
        }
        self.attachment = Attachment::begin(shared, &self.links, READING_SERVICE).ok();
        // A node that does not answer in time is not asked at once again.
        self.asked_at = Some(shared.now());
    }
}

impl Shared {
    /// Whether a session stays at a place for reading.
    pub(super) fn stays(&self, place: &Place) -> bool {
        match place {
            Place::Local(place) => !place.all.is_over(),
            Place::Remote(attachment) => {
                let (running, _) = attachment.load();
                let has_too_much = || {
                    let best = self.readers.choose(self.now());
                    best.is_some_and(|best| running > best.load().0 * 2 + MUCH_MORE)
                };
                let is_away = attachment.is_over() || attachment.is_leaving();
                let is_needless = || {
                    let best = self.readers.choose(self.now());
                    attachment.links.is_far && best.is_some_and(|best| !best.links.is_far)
                };
                let moves =
                    self.runs_here() || (running > MUCH_MORE && has_too_much()) || is_needless();
                !is_away && !moves
            }
        }
    }

    /// Another node at which a session can read, if its home is at another node, too.
    pub(super) fn reader_elsewhere(&self, now: Duration) -> Option<Arc<Attachment>> {
        if self.runs_here() { None } else { self.readers.choose(now) }
    }

    /// Keeps the front attached to all nodes that read. The body of a task.
    pub(super) fn attend_readers(&self) {
        let mut readers: Vec<Reader> = Vec::new();
        while !self.is_closing() {
            let links = self.backends.readers();
            readers.retain(|reader| links.iter().any(|links| is_same(links, &reader.links)));
            for links in links {
                if !readers.iter().any(|reader| is_same(&links, &reader.links)) {
                    readers.push(Reader::new(links));
                }
            }
            for reader in &mut readers {
                reader.look(self);
            }
            let attached = readers.iter().filter_map(|reader| reader.attachment.as_ref());
            self.readers.set(attached.map(|(attachment, _)| Arc::clone(attachment)).collect());
            self.attached.wait_until(Some(LOOK), || self.is_closing());
        }
        self.readers.set(Vec::new());
        for reader in &readers {
            if let Some((attachment, _)) = &reader.attachment {
                attachment.end();
            }
        }
    }
}

fn is_same(one: &BackendLinks, other: &BackendLinks) -> bool {
    let is_same = |one: &Arc<Caller>, other: &Arc<Caller>| Arc::ptr_eq(one, other);
    is_same(&one.commands, &other.commands) && is_same(&one.control, &other.control)
}
