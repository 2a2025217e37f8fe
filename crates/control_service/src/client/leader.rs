//! Asks the leader of the control group, whichever control node that is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::network::Address;
use firn_link::{Caller, CallerSettings, LocalNode};
use parking_lot::Mutex;

use super::ClientOptions;
use crate::message::{Reply, Request};
use crate::node::CONTROL;

/// Why the leader has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AskError {
    /// It may have done what it was asked, or may still do it.
    Unknown(String),
    /// Nobody has done anything.
    NoLeader(String),
}

pub(super) struct Leader {
    environment: Environment,
    local: Arc<LocalNode>,
    options: ClientOptions,
    links: Mutex<Links>,
    is_stopping: AtomicBool,
    stopped: Event,
}

/// The links to control nodes.
struct Links {
    /// In the order in which they are tried.
    addresses: Vec<Address>,
    callers: BTreeMap<Address, Arc<Caller>>,
    /// Which address is asked now.
    current: usize,
}

/// The pauses of one request.
struct Pauses {
    next: Duration,
}

impl Leader {
    pub(super) fn new(
        environment: &Environment,
        local: &Arc<LocalNode>,
        addresses: &[Address],
        options: &ClientOptions,
    ) -> Leader {
        assert!(!addresses.is_empty(), "a node needs the address of a control node");
        let first = environment.random.below(addresses.len() as u64) as usize;
        let links =
            Links { addresses: addresses.to_vec(), callers: BTreeMap::new(), current: first };
        Leader {
            environment: environment.clone(),
            local: Arc::clone(local),
            options: options.clone(),
            links: Mutex::new(links),
            is_stopping: AtomicBool::new(false),
            stopped: Event::new(),
        }
    }

    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.stopped.notify_all();
    }

    /// The time at which `timeout` has passed.
    pub(super) fn deadline(&self, timeout: Duration) -> Duration {
        self.environment.clock.monotonic().saturating_add(timeout)
    }

    /// How long it is until then.
    pub(super) fn left(&self, deadline: Duration) -> Duration {
        deadline.saturating_sub(self.environment.clock.monotonic())
    }

    pub(super) fn close(&self) {
        let callers = std::mem::take(&mut self.links.lock().callers);
        callers.values().for_each(|caller| caller.close());
    }

    /// The control nodes are at these addresses from now on. Without any, they are where they were.
    pub(super) fn know(&self, addresses: Vec<Address>) {
        if addresses.is_empty() {
            return;
        }
        let over: Vec<_> = {
            let mut links = self.links.lock();
            let current = links.addresses[links.current].clone();
            links.current = addresses.iter().position(|one| *one == current).unwrap_or(0);
            links.addresses = addresses;
            let Links { addresses, callers, .. } = &mut *links;
            callers.extract_if(.., |address, _| !addresses.contains(address)).collect()
        };
        over.iter().for_each(|(_, caller)| caller.close());
    }

    /// Asks until the leader answers or the deadline has passed. `may_repeat`: the request may be
    /// executed more than once. A request with a `patience` is waited for that much longer.
    pub(super) fn ask(
        &self,
        request: &Request,
        deadline: Duration,
        may_repeat: bool,
    ) -> Result<Reply, AskError> {
        let bytes = Arc::new(request.encode());
        let patience = match request {
            Request::Watch { patience, .. } => Duration::from_millis(u64::from(*patience)),
            // It is answered once it is durable, or the node has stopped leading.
            Request::Propose(_) => 4 * self.options.call_timeout,
            Request::Tell(_) | Request::Status => Duration::ZERO,
        };
        let mut pauses = Pauses { next: self.options.least_delay };
        let mut last = "none has answered".to_owned();
        while !self.is_stopping.load(Ordering::SeqCst) {
            let left = self.left(deadline);
            if left.is_zero() {
                break;
            }
            let (address, caller) = self.current();
            let timeout = (self.options.call_timeout + patience).min(left);
            match caller.call(CONTROL, Arc::clone(&bytes), timeout) {
                Ok(payload) => match Reply::decode(&payload) {
                    Ok(Reply::NotLeader { leader }) => {
                        last = format!("{address} does not lead");
                        if self.follow_hint(&address, leader.as_deref()) {
                            continue;
                        }
                    }
                    Ok(Reply::Status(status)) if !status.leads => {
                        last = format!("{address} does not lead");
                        if self.follow_hint(&address, status.leader.as_deref()) {
                            continue;
                        }
                    }
                    Ok(Reply::Unknown) if !may_repeat => {
                        return Err(AskError::Unknown(format!("{address} has stopped leading")));
                    }
                    Ok(Reply::Unknown) => last = format!("{address} has stopped leading"),
                    Ok(Reply::Failed(text)) => {
                        last = format!("{address}: {text}");
                        self.turn_from(&address);
                    }
                    Ok(reply) => return Ok(reply),
                    Err(error) => {
                        last = format!("{address}: {error}");
                        self.turn_from(&address);
                    }
                },
                Err(error) => {
                    self.turn_from(&address);
                    if !may_repeat && !error.was_not_executed() {
                        return Err(AskError::Unknown(error.to_string()));
                    }
                    last = error.to_string();
                }
            }
            self.pause(&mut pauses, deadline);
        }
        Err(AskError::NoLeader(last))
    }

    fn current(&self) -> (Address, Arc<Caller>) {
        let mut links = self.links.lock();
        let address = links.addresses[links.current].clone();
        let caller = links.callers.entry(address.clone()).or_insert_with(|| {
            let mut settings = CallerSettings::new(address.clone());
            settings.connect_timeout = self.options.call_timeout;
            settings.send_timeout = self.options.call_timeout;
            settings.most_delay = self.options.most_delay;
            Arc::new(Caller::new(&self.environment, Arc::clone(&self.local), settings))
        });
        (address, Arc::clone(caller))
    }

    /// Asks the node that `from` names from now on, if that is another one. False if there is no
    /// such hint; then the next address is tried.
    fn follow_hint(&self, from: &Address, hint: Option<&str>) -> bool {
        let hinted = hint.and_then(|text| text.parse::<Address>().ok());
        let mut links = self.links.lock();
        if links.addresses[links.current] != *from {
            return true; // Another thread has turned already.
        }
        match hinted.filter(|hinted| hinted != from) {
            Some(hinted) => {
                let known = links.addresses.iter().position(|one| *one == hinted);
                links.current = known.unwrap_or(links.addresses.len());
                if known.is_none() {
                    links.addresses.push(hinted);
                }
                true
            }
            None => {
                links.current = (links.current + 1) % links.addresses.len();
                false
            }
        }
    }

    /// Asks another node than `address` from now on.
    fn turn_from(&self, address: &Address) {
        let mut links = self.links.lock();
        if links.addresses[links.current] == *address {
            links.current = (links.current + 1) % links.addresses.len();
        }
    }

    /// Waits before the next attempt.
    fn pause(&self, pauses: &mut Pauses, deadline: Duration) {
        let whole = pauses.next;
        pauses.next = (whole * 2).min(self.options.most_delay);
        let delay = whole.mul_f64(0.5 + self.environment.random.unit() / 2.0);
        let left = self.left(deadline);
        let is_stopping = || self.is_stopping.load(Ordering::SeqCst);
        self.stopped.wait_until(Some(delay.min(left)), is_stopping);
    }
}
