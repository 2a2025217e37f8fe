//! One stream: what a follower of the store gets is pushed as it becomes durable.

use std::time::Duration;

use firn_api::{Followed, LogError};
use firn_link::{Body, PushError, Responder};

use super::Shared;
use crate::message::{FollowRequest, Push, Reply};

/// How long a push waits for the client's room before the stream looks whether it has ended.
const LOOK: Duration = Duration::from_millis(500);

impl Shared {
    /// Pushes until the stream ends, the client no longer wants it, or the service is closed.
    pub(super) fn run_stream(&self, follow: &FollowRequest, responder: Responder) {
        match self.push_all(follow, &responder) {
            Ok(()) => responder.reply(Reply::End { positions: self.positions() }.encode()),
            Err(Some(error)) => responder.reply(self.failed(error)),
            // Nobody takes a reply.
            Err(None) => {}
        }
    }

    /// Returns when the end that was asked for is reached. `Err(None)`: the client has gone.
    fn push_all(
        &self,
        follow: &FollowRequest,
        responder: &Responder,
    ) -> Result<(), Option<LogError>> {
        let options = follow.options();
        let filter = options.pages.clone();
        let limit = (follow.piece_bytes as usize).min(self.options.most_bytes);
        let mut follower = self.store.follow(options)?;
        self.push(Push::Progress { positions: self.positions() }.encode(), responder)?;
        loop {
            if self.is_closed() {
                let reason = "the log service of this member is closed".to_owned();
                return Err(Some(LogError::Unavailable { reason }));
            }
            if responder.is_cancelled() {
                return Err(None);
            }
            match follower.next(limit, self.options.heartbeat)? {
                Followed::Piece(piece) => {
                    let positions = self.positions();
                    self.check_durable(piece.to, positions)?;
                    self.push(Push::of_piece(positions, &piece, &filter), responder)?;
                    // The reader's own lease holds what it may ask for again.
                    follower.release(piece.to);
                    if piece.to >= positions.durable && !follow.gather().is_zero() {
                        firn_base::task::sleep(follow.gather());
                    }
                }
                Followed::Nothing => {
                    self.push(Push::Progress { positions: self.positions() }.encode(), responder)?;
                }
                Followed::End if follow.until.is_some_and(|until| follower.position() >= until) => {
                    return Ok(());
                }
                Followed::End => {
                    let reason = "the log was closed at this member".to_owned();
                    return Err(Some(LogError::Unavailable { reason }));
                }
            }
        }
    }

    /// Blocks until the client has room.
    fn push(&self, body: impl Into<Body>, responder: &Responder) -> Result<(), Option<LogError>> {
        let body = body.into();
        loop {
            match responder.push(body.clone(), LOOK) {
                Ok(()) => return Ok(()),
                Err(PushError::TimedOut) if self.is_closed() => return Err(None),
                Err(PushError::TimedOut) => {}
                Err(PushError::Ended) => return Err(None),
                Err(error @ PushError::TooLong(_)) => {
                    let (at, reason) = ("a stream".to_owned(), error.to_string());
                    return Err(Some(LogError::Unreadable { at, reason }));
                }
            }
        }
    }
}
