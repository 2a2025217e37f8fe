//! A follower: one stream at a time, from one member or another.
//!
//! ```text
//!            released          position      received       durable
//!   ── gone ────┴── held at a majority ┴── waiting ──┴── to come ──┴──►
//! ```
//!
//! A member is left when its stream ends, is silent, sends what does not fit, or brings nothing
//! while another member has more. It is then not asked again for a while, unless all others are no
//! better.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{FollowOptions, Followed, LogError, LogFollower, LogPiece};
use firn_base::Lsn;
use firn_link::{Follower, Next};

use super::Shared;
use super::members::{ReaderId, Standing};
use crate::LOG_SERVICE;
use crate::message::{FollowRequest, Reply, Request, read_push};

/// The least time that is spent on opening a stream.
const LEAST_OPENING: Duration = Duration::from_millis(50);
/// The longest wait after which the follower looks at what it knows of the members.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

pub(super) struct RemoteFollower {
    shared: Arc<Shared>,
    id: ReaderId,
    options: FollowOptions,
    position: Lsn,
    /// What was received and not taken; it begins at the position.
    received: Option<LogPiece>,
    stream: Option<Stream>,
    /// By the member's place in the list.
    members: BTreeMap<usize, Record>,
    /// Since when there has been no stream, as far as a caller has waited for one.
    without: Option<Duration>,
    /// Why the follower has ended: every later call returns this.
    failure: Option<LogError>,
}

struct Stream {
    member: usize,
    follower: Follower,
    /// How long callers have waited since the last message.
    waited: Duration,
    /// How long of that another member had more log.
    waited_behind: Duration,
}

/// What a follower remembers of a member.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    /// Not to be asked before then.
    not_before: Duration,
    /// Where its log begins, if that is after the position.
    gone: Option<Lsn>,
}

/// Why a stream has ended.
enum Left {
    /// The end that was asked for.
    Reached,
    Failed(LogError),
    /// It brought nothing.
    Useless(&'static str),
}

impl RemoteFollower {
    pub(super) fn new(shared: Arc<Shared>, id: ReaderId, options: FollowOptions) -> RemoteFollower {
        RemoteFollower {
            position: options.from,
            shared,
            id,
            options,
            received: None,
            stream: None,
            members: BTreeMap::new(),
            without: None,
            failure: None,
        }
    }

    pub(super) fn options(&self) -> &FollowOptions {
        &self.options
    }

    /// The end of what was received.
    fn received_end(&self) -> Lsn {
        self.received.as_ref().map_or(self.position, |piece| piece.to)
    }

    fn is_at_end(&self) -> bool {
        self.options.until.is_some_and(|until| self.position >= until)
    }

    /// The answer that needs no member: what was received, or how it has ended.
    fn at_hand(&mut self, limit_bytes: usize) -> Option<Result<Followed, LogError>> {
        if let Some(failure) = &self.failure {
            return Some(Err(failure.clone()));
        }
        if self.is_at_end() || self.shared.is_closed() {
            self.stream = None;
            return Some(Ok(Followed::End));
        }
        if self.standing() == Standing::Gone {
            let lost = self.lost();
            return Some(Err(self.fail(lost)));
        }
        let mut piece = self.received.take()?;
        let front = piece.split_front(limit_bytes as u64);
        self.received = (piece.to > piece.from).then_some(piece);
        self.position = front.to;
        Some(Ok(Followed::Piece(front)))
    }

    /// Whether the members keep the log for it.
    fn standing(&self) -> Standing {
        self.shared.state.lock().members.standing(self.id)
    }

    fn fail(&mut self, error: LogError) -> LogError {
        self.stream = None;
        self.failure = Some(error.clone());
        error
    }

    /// The error of a reader whose log is gone. It has no registration any more.
    fn lost(&self) -> LogError {
        let mut state = self.shared.state.lock();
        state.registered.remove(&self.options.name);
        let held = state.readers.get(&self.id).map_or(self.position, |reader| reader.held);
        let (name, limit_bytes) = (self.options.name.clone(), self.options.hold_limit_bytes);
        LogError::ReaderDropped { name, held, limit_bytes }
    }

    /// Opens a stream from the most promising member. False if none may be asked now.
    fn open_stream(&mut self, deadline: Duration) -> bool {
        let now = self.shared.now();
        let from = self.received_end();
        let order = self.shared.order(from);
        let may_be_asked =
            |member: &usize| self.members.get(member).is_none_or(|record| record.not_before <= now);
        let Some(member) = order.into_iter().find(may_be_asked) else { return false };
        let (piece_bytes, gather) = (self.shared.options.piece_bytes, self.shared.options.gather);
        let request = Request::Follow(FollowRequest::new(&self.options, from, piece_bytes, gather));
        let left = deadline.saturating_sub(now).max(LEAST_OPENING);
        let (window, timeout) =
            (self.shared.options.window_bytes, left.min(self.shared.options.attempt));
        let caller = self.shared.caller(member);
        match caller.follow(LOG_SERVICE, request.encode(), window, timeout) {
            Ok(follower) => {
                let (waited, waited_behind) = (Duration::ZERO, Duration::ZERO);
                self.stream = Some(Stream { member, follower, waited, waited_behind });
            }
            Err(error) => {
                self.shared.failed(member, &error);
                self.avoid(member, self.shared.options.renewal);
            }
        }
        true
    }

    fn avoid(&mut self, member: usize, time: Duration) {
        let until = self.shared.now().saturating_add(time);
        self.members.entry(member).or_default().not_before = until;
    }

    /// Takes the next message of the stream, or leaves it.
    fn receive(&mut self, timeout: Duration) {
        let Some(stream) = &mut self.stream else { return };
        let member = stream.member;
        let before = self.shared.now();
        let next = stream.follower.next(Some(timeout));
        let waited = self.shared.now().saturating_sub(before);
        let left = match next {
            Ok(Next::Message(payload)) => {
                stream.waited = Duration::ZERO;
                match read_push(payload) {
                    Ok((positions, piece)) => {
                        self.shared.heard(member, positions);
                        self.without = None;
                        self.members.remove(&member);
                        match piece {
                            Some(piece) => self.take(piece),
                            None => self.look_elsewhere(waited),
                        }
                    }
                    Err(damage) => {
                        Some(Left::Failed(LogError::Unavailable { reason: damage.to_string() }))
                    }
                }
            }
            Ok(Next::Nothing) => {
                stream.waited += waited;
                match stream.waited >= self.shared.options.silence {
                    true => Some(Left::Useless("the member is silent")),
                    false => self.look_elsewhere(waited),
                }
            }
            Ok(Next::End(payload)) => Some(self.last_word(member, &payload)),
            Err(error) => Some(Left::Failed(LogError::Unavailable { reason: error.to_string() })),
        };
        if let Some(left) = left {
            self.leave(member, left);
        }
    }

    /// Takes a piece, which must continue what was received.
    fn take(&mut self, piece: LogPiece) -> Option<Left> {
        if piece.from != self.received_end() || piece.to <= piece.from {
            let reason = format!(
                "log from {} to {} came where log from {} was to come",
                piece.from,
                piece.to,
                self.received_end()
            );
            return Some(Left::Failed(LogError::Unavailable { reason }));
        }
        if let Some(stream) = &mut self.stream {
            stream.waited_behind = Duration::ZERO;
        }
        self.received = Some(piece);
        None
    }

    /// Whether to leave the stream because another member has more.
    fn look_elsewhere(&mut self, waited: Duration) -> Option<Left> {
        let position = self.received_end();
        let stream = self.stream.as_mut()?;
        let is_ahead = self.shared.state.lock().members.is_ahead_elsewhere(position, stream.member);
        stream.waited_behind =
            if is_ahead { stream.waited_behind + waited } else { Duration::ZERO };
        (stream.waited_behind >= self.shared.options.behind)
            .then_some(Left::Useless("another member has more log"))
    }

    fn last_word(&mut self, member: usize, payload: &[u8]) -> Left {
        match Reply::decode(payload) {
            Ok((Reply::End { positions }, _)) => {
                self.shared.heard(member, positions);
                Left::Reached
            }
            Ok((Reply::Failed { positions, failure }, _)) => {
                self.shared.heard(member, positions);
                Left::Failed(failure.into())
            }
            Ok(_) => {
                let reason = "the stream ended with another request's answer".to_owned();
                Left::Failed(LogError::Unavailable { reason })
            }
            Err(damage) => Left::Failed(LogError::Unavailable { reason: damage.to_string() }),
        }
    }

    /// Leaves the stream of a member.
    fn leave(&mut self, member: usize, left: Left) {
        self.stream = None;
        let position = self.received_end();
        let options = &self.shared.options;
        let (renewal, behind) = (options.renewal, options.behind);
        match left {
            Left::Reached if self.options.until.is_some_and(|until| position >= until) => {}
            Left::Reached => self.avoid(member, renewal),
            Left::Failed(LogError::OutOfRange { from, .. }) if from > position => {
                self.members.entry(member).or_default().gone = Some(from);
                self.avoid(member, renewal);
            }
            Left::Failed(LogError::OutOfRange { .. }) => self.avoid(member, renewal),
            Left::Failed(error) => {
                tracing::debug!(%error, member, "a stream of log has ended");
                self.shared.failed(member, &error);
                self.avoid(member, renewal);
            }
            Left::Useless(why) => {
                tracing::debug!(why, member, "a stream of log was left");
                self.shared.failed(member, &why);
                self.avoid(member, behind);
            }
        }
    }

    /// Where the log begins, if it is gone at every member.
    fn gone_everywhere(&self) -> Option<Lsn> {
        let places = self.shared.state.lock().members.places();
        let begins: Option<Vec<Lsn>> =
            places.iter().map(|place| self.members.get(place)?.gone).collect();
        begins?.into_iter().min()
    }

    /// What a call comes to whose time is over.
    fn nothing(&mut self) -> Result<Followed, LogError> {
        let now = self.shared.now();
        if self.stream.is_some() {
            return Ok(Followed::Nothing);
        }
        let since = *self.without.get_or_insert(now);
        if now.saturating_sub(since) < self.shared.options.patience {
            return Ok(Followed::Nothing);
        }
        Err(self.shared.unavailable("no member sends its log"))
    }
}

impl LogFollower for RemoteFollower {
    fn next(&mut self, limit_bytes: usize, timeout: Duration) -> Result<Followed, LogError> {
        let deadline = self.shared.now().saturating_add(timeout);
        loop {
            if let Some(answer) = self.at_hand(limit_bytes) {
                return answer;
            }
            if let Some(from) = self.gone_everywhere() {
                let (position, to) = (self.position, self.shared.durable());
                return Err(self.fail(LogError::OutOfRange { position, from, to }));
            }
            let left = deadline.saturating_sub(self.shared.now());
            if self.stream.is_some() {
                self.receive(left.min(LONGEST_WAIT));
            } else if !self.open_stream(deadline) {
                self.without.get_or_insert(self.shared.now());
                let ticket = self.shared.changed.listen();
                self.shared.changed.wait(ticket, Some(left.min(LONGEST_WAIT)));
            }
            if left.is_zero() && self.received.is_none() {
                return self.nothing();
            }
        }
    }

    fn position(&self) -> Lsn {
        self.position
    }

    fn skip_to(&mut self, lsn: Lsn) {
        self.stream = None;
        self.without = None;
        self.received = None;
        self.position = self.position.max(lsn);
    }

    fn check(&self) -> Result<(), LogError> {
        match &self.failure {
            Some(failure) => Err(failure.clone()),
            None if self.standing() == Standing::Gone => Err(self.lost()),
            None => Ok(()),
        }
    }

    fn release(&mut self, lsn: Lsn) {
        let lsn = lsn.min(self.position);
        let mut state = self.shared.state.lock();
        if let Some(reader) = state.readers.get_mut(&self.id) {
            reader.held = reader.held.max(lsn);
            if reader.stays {
                state.note_registered(&self.options.name, lsn);
            }
        }
    }
}

impl Drop for RemoteFollower {
    fn drop(&mut self) {
        self.shared.end_reader(self.id);
    }
}
