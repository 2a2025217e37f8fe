//! One batch of pages on its way: split by node, hedged, asked again until each page is complete.
//!
//! ```text
//!   requests ─► decide ─► asks, one stream each ─► answers ─► checked (P2) ─► sink
//!                 ▲            │ slow: a further node            │
//!                 └────────────┴──── failed: the next node ◄─────┘
//! ```
//!
//! All of it runs on the thread that reads. It waits on one event, which every stream notifies.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{PageRead, PageRequest, PageSink, PageStoreError, PageVersion};
use firn_base::Lsn;
use firn_base::event::Event;
use firn_format::page::{PAGE_SIZE, PageBuf};
use firn_link::{Follower, Next, Payload};

use super::choice::{Attempt, Decision, decide, hedge_after};
use super::node::Node;
use super::placement::Chunk;
use super::{Shared, count, names};
use crate::PAGE_SERVICE;
use crate::message::{Failure, MAX_PAGES, PageAnswer, Pages, ReadRequest, Request};

/// What an answer counts for the window of its stream at most, in bytes.
const ANSWER_BYTES: usize = PAGE_SIZE + 2048;
/// The pause before a node is asked again after it has failed; it doubles with each failure.
const LEAST_PAUSE: Duration = Duration::from_millis(2);
const MOST_PAUSE: Duration = Duration::from_millis(100);

/// A batch under way.
pub(super) struct Gathering<'a> {
    client: &'a Shared,
    requests: &'a [PageRequest],
    sink: &'a mut dyn PageSink,
    wanted: Vec<Wanted>,
    asks: Vec<Ask>,
    /// Notified by the streams of all asks.
    arrived: Arc<Event>,
    deadline: Duration,
    /// Pages that are not complete.
    open: usize,
}

/// A page of the batch.
#[derive(Default)]
struct Wanted {
    is_complete: bool,
    /// `None` when no chunk has the page.
    chunk: Option<Arc<Chunk>>,
    /// What was done and why it failed, by the places of the chunk's nodes.
    attempts: Vec<Attempt>,
    errors: Vec<Option<PageStoreError>>,
    failures: u32,
    /// When to decide again; `None`: when an answer comes.
    due: Option<Duration>,
}

/// A request to a node.
struct Ask {
    node: Arc<Node>,
    follower: Follower,
    items: Vec<Item>,
    since: Duration,
    /// Whether some answer has come.
    has_answered: bool,
}

/// A page of an ask.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// In the batch.
    index: usize,
    /// Of the node in the page's chunk.
    place: usize,
    is_hedge: bool,
    is_answered: bool,
}

/// Pages that are about to be asked for at one node.
type Assignment = (Arc<Node>, Vec<Item>);

impl<'a> Gathering<'a> {
    pub(super) fn new(
        client: &'a Shared,
        requests: &'a [PageRequest],
        sink: &'a mut dyn PageSink,
    ) -> Gathering<'a> {
        let due = Some(Duration::ZERO);
        Gathering {
            client,
            requests,
            sink,
            wanted: requests.iter().map(|_| Wanted { due, ..Wanted::default() }).collect(),
            asks: Vec::new(),
            arrived: Arc::default(),
            deadline: client.now() + client.options.patience,
            open: requests.len(),
        }
    }

    /// Reads until every page is complete.
    pub(super) fn run(mut self) {
        self.client.budget.earn(self.requests.len());
        loop {
            let ticket = self.arrived.listen();
            self.take_arrivals();
            self.ask_what_is_due();
            self.drop_finished_asks();
            if self.open == 0 {
                return;
            }
            let now = self.client.now();
            if now >= self.deadline || self.client.is_closing() {
                return self.give_up();
            }
            let open = self.wanted.iter().filter(|wanted| !wanted.is_complete);
            let next = open.filter_map(|wanted| wanted.due).min().unwrap_or(self.deadline);
            self.arrived.wait(ticket, Some(next.min(self.deadline).saturating_sub(now)));
        }
    }

    // ---- asking ----

    /// Decides about each page that is due, and asks, until nothing is due.
    fn ask_what_is_due(&mut self) {
        loop {
            let now = self.client.now();
            let mut assignments: Vec<Assignment> = Vec::new();
            for index in 0..self.wanted.len() {
                let wanted = &self.wanted[index];
                if !wanted.is_complete && wanted.due.is_some_and(|due| due <= now) {
                    self.decide(index, now, &mut assignments);
                }
            }
            if assignments.is_empty() {
                return;
            }
            for (node, items) in assignments {
                let most = self.client.options.ask_pages.clamp(1, MAX_PAGES);
                items.chunks(most).for_each(|some| self.ask(&node, some.to_vec()));
            }
        }
    }

    fn decide(&mut self, index: usize, now: Duration, assignments: &mut Vec<Assignment>) {
        let page = self.requests[index].page;
        let chunk = self.client.map().chunk(page).cloned();
        let wanted = &mut self.wanted[index];
        let Some(chunk) = wanted.find(chunk) else {
            wanted.due = Some(now + MOST_PAUSE);
            return;
        };
        let hedge_after = self.client.hedge_after(&chunk, &wanted.attempts);
        let order = chunk.order(page, now);
        let (place, is_hedge) = match decide(&order, &wanted.attempts, now, hedge_after) {
            Decision::Ask(place) => (place, false),
            Decision::Hedge(place) if self.client.may_hedge(&wanted.attempts, now) => (place, true),
            Decision::Hedge(_) => {
                wanted.due = Some(now + self.client.options.most_hedge_delay);
                return;
            }
            Decision::Wait(due) => {
                wanted.due = due;
                return;
            }
        };
        wanted.attempts[place] = Attempt::UnderWay { since: now };
        // Decided after this: whom to ask when that node is slow.
        let node = &chunk.nodes[place];
        let item = Item { index, place, is_hedge, is_answered: false };
        match assignments.iter_mut().find(|(other, _)| Arc::ptr_eq(other, node)) {
            Some((_, items)) => items.push(item),
            None => assignments.push((Arc::clone(node), vec![item])),
        }
    }

    /// Sends a request; does not wait for a connection.
    fn ask(&mut self, node: &Arc<Node>, items: Vec<Item>) {
        let since = self.client.now();
        let pages = items.iter().map(|item| self.requests[item.index]).collect();
        let patience = self.deadline.saturating_sub(since);
        let request =
            Request::Read(ReadRequest { holder: self.client.leases.holder, patience, pages })
                .encode();
        let window = (items.len() * ANSWER_BYTES) as u64;
        let arrived = Arc::clone(&self.arrived);
        let hedges = items.iter().filter(|item| item.is_hedge).count();
        let sent = node.caller.follow_with(PAGE_SERVICE, request, window, Duration::ZERO, arrived);
        match sent {
            Ok(follower) => {
                count(&self.client.counters.asks, 1);
                count(&self.client.counters.hedged, hedges);
                let node = Arc::clone(node);
                self.asks.push(Ask { node, follower, items, since, has_answered: false });
            }
            Err(error) => {
                node.note_failure(since);
                self.client.budget.give_back(hedges);
                self.fail_all(node, &items, &error.to_string());
            }
        }
    }

    // ---- answers ----

    fn take_arrivals(&mut self) {
        for mut ask in std::mem::take(&mut self.asks) {
            if self.take_from(&mut ask) {
                self.asks.push(ask);
            }
        }
    }

    /// Takes what has arrived; returns whether the ask goes on.
    fn take_from(&mut self, ask: &mut Ask) -> bool {
        let problem = loop {
            match ask.follower.next(Some(Duration::ZERO)) {
                Ok(Next::Nothing) => return true,
                Ok(Next::Message(payload)) => match self.take_pages(ask, &payload) {
                    Ok(()) => {}
                    Err(problem) => break problem,
                },
                Ok(Next::End(payload)) => match self.take_pages(ask, &payload) {
                    Ok(()) => break "it has not answered for the page".to_owned(),
                    Err(problem) => break problem,
                },
                Err(error) => {
                    ask.node.note_failure(self.client.now());
                    break error.to_string();
                }
            }
        };
        let unanswered: Vec<Item> =
            ask.items.iter().copied().filter(|item| !item.is_answered).collect();
        self.fail_all(&ask.node, &unanswered, &problem);
        false
    }

    fn take_pages(&mut self, ask: &mut Ask, payload: &Payload) -> Result<(), String> {
        let pages = Pages::decode(payload).map_err(|damage| damage.to_string())?;
        if !ask.has_answered && !pages.has_waited {
            ask.node.note_answer(self.client.now().saturating_sub(ask.since));
        }
        ask.has_answered = true;
        for (at, answer) in pages.answers {
            let item = ask.items.get_mut(at).filter(|item| !item.is_answered);
            let item = item.ok_or("it has answered for a page that was not asked for")?;
            item.is_answered = true;
            self.take_answer(&ask.node, *item, answer);
        }
        Ok(())
    }

    fn take_answer(&mut self, node: &Arc<Node>, item: Item, answer: PageAnswer<'_>) {
        if self.wanted[item.index].is_complete {
            return;
        }
        let request = self.requests[item.index];
        match answer {
            PageAnswer::Image { as_of, image } => {
                let into = self.sink.page_mut(item.index);
                into.bytes_mut().copy_from_slice(image);
                match check(request, as_of, into) {
                    Ok(version) => {
                        let won = usize::from(item.is_hedge);
                        count(&self.client.counters.hedges_won, won);
                        count(&self.client.counters.pages, 1);
                        self.complete(item.index, Ok(version));
                    }
                    Err(reason) => {
                        count(&self.client.counters.damaged, 1);
                        let place = "the image that it sent".to_owned();
                        let error = Failure::Damaged { place, reason };
                        tracing::warn!(page = %request.page, node = %node.name(), ?error, "a page arrived damaged");
                        self.fail(node, item, error.into_error(request, &node.name()));
                    }
                }
            }
            PageAnswer::Failed(failure) => {
                if matches!(failure, Failure::Unavailable { .. }) {
                    node.note_failure(self.client.now());
                }
                let is_last_word = matches!(failure, Failure::Absent | Failure::OldEpoch { .. });
                let error = failure.into_error(request, &node.name());
                match is_last_word {
                    // No other node can say anything else.
                    true => self.complete(item.index, Err(error)),
                    false => self.fail(node, item, error),
                }
            }
        }
    }

    /// A node has no page for this item.
    fn fail(&mut self, node: &Arc<Node>, item: Item, error: PageStoreError) {
        count(&self.client.counters.failures, 1);
        let now = self.client.now();
        let request = self.requests[item.index];
        let wanted = &mut self.wanted[item.index];
        // The chunk may have moved meanwhile: then the node is none of its nodes.
        if wanted.is_complete || !wanted.has(node, item.place) {
            return;
        }
        let pause = (LEAST_PAUSE * (1 << wanted.failures.min(8))).min(MOST_PAUSE);
        wanted.failures += 1;
        let again = error.is_transient().then(|| now + pause);
        wanted.attempts[item.place] = Attempt::Failed { again };
        wanted.errors[item.place] = Some(error);
        wanted.due = Some(Duration::ZERO);
        if let Some(error) = self.client.verdict(request, &wanted.errors) {
            self.complete(item.index, Err(error));
        }
    }

    fn fail_all(&mut self, node: &Arc<Node>, items: &[Item], reason: &str) {
        for item in items {
            let failure = Failure::Unavailable { reason: reason.to_owned() };
            self.fail(node, *item, failure.into_error(self.requests[item.index], &node.name()));
        }
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        self.wanted[index].is_complete = true;
        self.open -= 1;
        self.sink.complete(index, reply);
    }

    /// Ends streams that nobody waits for any more.
    fn drop_finished_asks(&mut self) {
        let now = self.client.now();
        let wanted = &self.wanted;
        self.asks.retain(|ask| {
            let is_wanted = ask.items.iter().any(|item| !wanted[item.index].is_complete);
            if !is_wanted && !ask.has_answered {
                // Another node was faster, although it was asked later.
                ask.node.note_answer(now.saturating_sub(ask.since));
                ask.node.note_failure(now);
            }
            is_wanted
        });
    }

    // ---- the end of the patience ----

    /// Completes all that is open: the patience is over.
    fn give_up(&mut self) {
        for index in 0..self.wanted.len() {
            if self.wanted[index].is_complete {
                continue;
            }
            let page = self.requests[index].page;
            let wanted = &mut self.wanted[index];
            let errors: Vec<PageStoreError> = wanted.errors.drain(..).flatten().collect();
            let place = wanted.chunk.take();
            let place = place.map_or_else(|| "page nodes".to_owned(), |chunk| names(&chunk.nodes));
            let is_elsewhere =
                |error: &PageStoreError| matches!(error, PageStoreError::WrongChunk { .. });
            let error = if !errors.is_empty() && errors.iter().all(is_elsewhere) {
                PageStoreError::WrongChunk { page, place }
            } else {
                let reason = match errors.last() {
                    Some(PageStoreError::Unavailable { reason, .. }) => reason.clone(),
                    Some(error) => error.to_string(),
                    None => "no answer came in time".to_owned(),
                };
                PageStoreError::Unavailable { page, place, reason }
            };
            self.complete(index, Err(error));
        }
    }
}

impl Wanted {
    /// Takes note of the page's chunk as the placement has it now, and returns it. Nodes of another
    /// chunk count as not asked.
    fn find(&mut self, chunk: Option<Arc<Chunk>>) -> Option<Arc<Chunk>> {
        let is_known = match (&self.chunk, &chunk) {
            (Some(known), Some(chunk)) => Arc::ptr_eq(known, chunk),
            (known, chunk) => known.is_none() && chunk.is_none(),
        };
        if !is_known {
            let copies = chunk.as_ref().map_or(0, |chunk| chunk.nodes.len());
            self.attempts = vec![Attempt::None; copies];
            self.errors = vec![None; copies];
            self.chunk.clone_from(&chunk);
        }
        chunk
    }

    /// Whether `node` is at this place of the chunk.
    fn has(&self, node: &Arc<Node>, place: usize) -> bool {
        let found = self.chunk.as_ref().and_then(|chunk| chunk.nodes.get(place));
        found.is_some_and(|found| Arc::ptr_eq(found, node))
    }
}

impl Shared {
    /// How long the newest of the nodes that were asked has before a further one is asked.
    fn hedge_after(&self, chunk: &Chunk, attempts: &[Attempt]) -> Duration {
        let others = chunk.nodes.iter().zip(attempts);
        let others = others.filter(|(_, attempt)| **attempt == Attempt::None);
        let usual = others.filter_map(|(node, _)| node.usual_latency());
        let options = &self.options;
        hedge_after(usual, options.least_hedge_delay, options.most_hedge_delay)
    }

    /// Whether a further node may be asked: there is budget, or those that were asked seem to be
    /// gone.
    fn may_hedge(&self, attempts: &[Attempt], now: Duration) -> bool {
        let is_recent = |attempt: &Attempt| match attempt {
            Attempt::UnderWay { since } => {
                now.saturating_sub(*since) < self.options.most_hedge_delay * 10
            }
            _ => false,
        };
        !attempts.iter().any(is_recent) || self.budget.try_spend()
    }

    /// What a read gets when nodes have failed; `None` if others, or asking again, may help.
    /// `errors` has what each node of the chunk said last.
    fn verdict(
        &self,
        request: PageRequest,
        errors: &[Option<PageStoreError>],
    ) -> Option<PageStoreError> {
        let errors: Vec<&PageStoreError> =
            errors.iter().map(Option::as_ref).collect::<Option<_>>()?;
        let kept_from = |error: &PageStoreError| match error {
            PageStoreError::TooOld { kept_from, .. } => Some(*kept_from),
            // Without a lease at the node.
            PageStoreError::Absent(_) => Some(Lsn::MAX),
            _ => None,
        };
        // What this process does not hold may go at any time, so nodes that do not answer need not
        // be waited for.
        let is_free = !self.leases.holds(request.version.position());
        let all_final = errors.iter().all(|error| !error.is_transient());
        let gone = errors.iter().filter_map(|error| Some((kept_from(error)?, *error)));
        match gone.min_by_key(|(kept_from, _)| *kept_from) {
            Some((_, error)) if is_free || all_final => Some(error.clone()),
            _ if all_final => errors.first().map(|error| (*error).clone()),
            _ => None,
        }
    }
}

/// Whether an image is what was asked for (P2).
fn check(request: PageRequest, as_of: Lsn, image: &PageBuf) -> Result<PageVersion, String> {
    image.verify(request.page).map_err(|damage| damage.to_string())?;
    let lsn = image.lsn();
    let is_right = match request.version {
        PageRead::Latest { at_least } => as_of >= at_least,
        PageRead::AsOf(position) => as_of == position,
    };
    if !is_right || lsn > as_of {
        let wanted = request.version;
        return Err(format!("it has version {lsn} as of {as_of}, asked for was {wanted:?}"));
    }
    Ok(PageVersion { lsn, as_of })
}

#[cfg(test)]
mod tests {
    use firn_base::PageId;
    use firn_format::page::PageKind;

    use super::*;

    #[test]
    fn an_image_is_checked_before_it_is_used() {
        let page = PageId::from_u64(0x1_0000_0002);
        let mut image = PageBuf::boxed();
        image.format(page, PageKind::Undo);
        image.set_lsn(Lsn(80));
        image.seal();
        let latest = PageRequest { page, version: PageRead::Latest { at_least: Lsn(88) } };
        let as_of = PageRequest { page, version: PageRead::AsOf(Lsn(88)) };
        let sound = PageVersion { lsn: Lsn(80), as_of: Lsn(88) };
        assert_eq!(check(latest, Lsn(88), &image), Ok(sound));
        assert_eq!(check(as_of, Lsn(88), &image), Ok(sound));
        assert!(check(latest, Lsn(96), &image).is_ok(), "newer is as good");
        for (request, claimed) in [(latest, 80), (as_of, 80), (as_of, 96)] {
            let error = check(request, Lsn(claimed), &image).unwrap_err();
            assert!(error.contains("asked for"), "{error}");
        }
        let early = PageRequest { page, version: PageRead::AsOf(Lsn(72)) };
        assert!(check(early, Lsn(72), &image).is_err(), "the page is newer than it claims");
        image.bytes_mut()[9000] ^= 4;
        assert!(check(latest, Lsn(88), &image).unwrap_err().contains("checksum"));
    }
}
