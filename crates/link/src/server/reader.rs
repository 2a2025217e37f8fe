//! The task that reads one connection of a server.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::clock::Clock;
use firn_base::stack;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::desk::Desk;
use super::pool::Pool;
use super::request::{Job, Placement, Request, RequestKind, Responder, Service};
use crate::error::NO_SUCH_SERVICE;
use crate::item::{Item, Items, Kind, Malformed, ServiceId};
use crate::local::LocalNode;
use crate::statistics::Statistics;

/// Casts of one connection that a worker executes before it looks at other work.
const CASTS_IN_A_ROW: usize = 64;

/// A service as a server has it.
pub struct Offer {
    pub id: ServiceId,
    pub placement: Placement,
    pub service: Arc<dyn Service>,
}

/// Why a thread no longer reads a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    HasEnded,
    /// Another thread reads on.
    WasDeep,
}

/// What waits for a worker.
pub(super) enum Work {
    Call(Box<Job>),
    /// The casts of a connection.
    Casts(Arc<Casts>),
}

/// Casts of one connection. One worker at a time executes them, so that they keep their order.
/// Latch rule 8: the mutex is a leaf.
#[derive(Default)]
pub(super) struct Casts {
    queue: Mutex<CastQueue>,
}

#[derive(Default)]
struct CastQueue {
    jobs: VecDeque<Job>,
    /// Whether a worker has them, or will.
    is_scheduled: bool,
}

/// What the connections of a server share.
pub(super) struct Hall {
    pub(super) environment: Environment,
    pub(super) local: Arc<LocalNode>,
    pub(super) services: FxHashMap<ServiceId, Offer>,
    pub(super) pool: Pool<Work>,
}

impl Hall {
    /// What a worker does.
    pub(super) fn execute(&self, work: Work) {
        match work {
            Work::Call(job) => job.execute(&self.local),
            Work::Casts(casts) => {
                for _ in 0..CASTS_IN_A_ROW {
                    let next = {
                        let mut queue = casts.queue.lock();
                        let next = queue.jobs.pop_front();
                        queue.is_scheduled = next.is_some();
                        next
                    };
                    match next {
                        Some(job) => job.execute(&self.local),
                        None => return,
                    }
                }
                self.pool.put(Work::Casts(casts));
            }
        }
    }

    /// Reads a connection until it ends, or until this thread has had a deep stack: the system gets
    /// its memory back when the thread ends.
    pub(super) fn read(&self, desk: &Arc<Desk>, silence: Duration) -> Reading {
        let casts = Arc::new(Casts::default());
        let mut message = Vec::new();
        while desk.sender.connection().receive(&mut message, Some(silence)).is_ok() {
            if self.local.has_left(desk.epoch) {
                break;
            }
            Statistics::add(&desk.sender.statistics().bytes_received, message.len());
            let now = self.environment.clock.monotonic();
            let mut items = Items::of(std::mem::take(&mut message));
            let has_several = items.has_several();
            if has_several {
                desk.sender.collect();
            }
            let taken = items.try_for_each(|item| self.take(desk, &casts, item?, now));
            if has_several {
                desk.sender.release();
            }
            if taken.is_err() {
                break;
            }
            if stack::was_deep() {
                return Reading::WasDeep;
            }
        }
        desk.end();
        Reading::HasEnded
    }

    fn take(
        &self,
        desk: &Arc<Desk>,
        casts: &Arc<Casts>,
        item: Item,
        now: Duration,
    ) -> Result<(), Malformed> {
        let (kind, number, service, deadline) = match item.kind {
            Kind::Call { number, service, time_left } => {
                let deadline = now.checked_add(Duration::from_micros(time_left));
                (RequestKind::Call, Some(number), service, deadline)
            }
            Kind::Cast { service, .. } => (RequestKind::Cast, None, service, None),
            Kind::Follow { number, service, .. } | Kind::Exchange { number, service, .. } => {
                (RequestKind::Follow, Some(number), service, None)
            }
            aside => return desk.take_aside(aside),
        };
        let is_alone = matches!(item.kind, Kind::Exchange { .. });
        let cost = item.cost();
        let call = desk.admit(item.kind, cost)?;
        let clock: Arc<dyn Clock> = Arc::clone(&self.environment.clock);
        let mut responder = Responder::new(Arc::clone(desk), call, clock, number, cost);
        if is_alone {
            responder = responder.on_reader();
        }
        let request = Request { kind, service, payload: item.payload, deadline, is_alone };
        self.deliver(casts, request, responder);
        Ok(())
    }

    /// Executes the request of an exchange. A service that panics costs its client the answer, and
    /// the connection goes on; the process's panic hook reports it.
    fn execute_alone(&self, job: Job) {
        let _ = catch_unwind(AssertUnwindSafe(|| job.execute(&self.local)));
    }

    fn deliver(&self, casts: &Arc<Casts>, request: Request, mut responder: Responder) {
        let Some(offer) = self.services.get(&request.service) else {
            let text = format!("the node has no service {}", request.service.0);
            return responder.refuse_with(NO_SUCH_SERVICE, &text);
        };
        let is_cast = request.kind == RequestKind::Cast;
        let is_alone = request.is_alone;
        let job = Job { service: Arc::clone(&offer.service), request, responder };
        match offer.placement {
            _ if is_alone => self.execute_alone(job),
            Placement::Reader => job.execute(&self.local),
            Placement::Workers if is_cast => {
                let is_scheduled = {
                    let mut queue = casts.queue.lock();
                    queue.jobs.push_back(job);
                    std::mem::replace(&mut queue.is_scheduled, true)
                };
                if !is_scheduled {
                    self.pool.put(Work::Casts(Arc::clone(casts)));
                }
            }
            Placement::Workers => self.pool.put(Work::Call(Box::new(job))),
        }
    }
}
