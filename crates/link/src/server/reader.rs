//! The task that reads one connection of a server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::clock::Clock;
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

    /// Reads a connection until it ends.
    pub(super) fn read(&self, desk: &Arc<Desk>, silence: Duration) {
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
        }
        desk.end();
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
            Kind::Follow { number, service, .. } => {
                (RequestKind::Follow, Some(number), service, None)
            }
            Kind::Cancel { number } => {
                desk.cancel(number);
                return Ok(());
            }
            Kind::Credit { number, bytes } => {
                desk.add_credit(number, bytes);
                return Ok(());
            }
            Kind::Ping => {
                desk.pong();
                return Ok(());
            }
            Kind::Reply { .. } | Kind::Refused { .. } | Kind::Push { .. } | Kind::Pong => {
                return Err(Malformed);
            }
        };
        let cost = item.cost();
        let call = desk.admit(item.kind, cost)?;
        let clock: Arc<dyn Clock> = Arc::clone(&self.environment.clock);
        let responder = Responder::new(Arc::clone(desk), call, clock, number, cost);
        let request = Request { kind, service, payload: item.payload, deadline };
        self.deliver(casts, request, responder);
        Ok(())
    }

    fn deliver(&self, casts: &Arc<Casts>, request: Request, mut responder: Responder) {
        let Some(offer) = self.services.get(&request.service) else {
            let text = format!("the node has no service {}", request.service.0);
            return responder.refuse_with(NO_SUCH_SERVICE, &text);
        };
        let is_cast = request.kind == RequestKind::Cast;
        let job = Job { service: Arc::clone(&offer.service), request, responder };
        match offer.placement {
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
