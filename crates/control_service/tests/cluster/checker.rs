//! What must hold, whatever happens. A violation is a panic, which fails the run with its seed.
//!
//! 1. A control node that asked for votes, or voted, in a term knows of it in its next life.
//! 2. No node votes for two members in a term.
//! 3. Once a leader has acted in a term, no other one acts in that term, and none in an older one.
//! 4. All control nodes apply the same proposals at the same entries.
//! 5. Catalogs with the same number of entries are the same, wherever they are.
//! 6. What was acknowledged is in the catalog at the end, and what was said not to be is not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use firn_base::event::Event;
use firn_consensus::{Index, MemberId, Message, MessageKind, Saved, Term};
use firn_control::{Catalog, NodeId, Proposal, ToNode};
use firn_control_service::Observer;
use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct Facts {
    state: Mutex<State>,
    /// Notified of each vote.
    pub(crate) voted: Event,
}

#[derive(Default)]
struct State {
    /// The last term in which each member voted, and for whom.
    votes: BTreeMap<MemberId, (Term, MemberId)>,
    last_voter: Option<MemberId>,
    acted: BTreeMap<Term, MemberId>,
    applied: BTreeMap<Index, Proposal>,
    catalogs: BTreeMap<u64, Vec<u8>>,
    acknowledged: BTreeMap<String, NodeId>,
    /// How many were acknowledged, those that may be removed among them.
    count: usize,
    /// Names that somebody was told not to be in the catalog.
    denied: BTreeSet<String>,
}

impl Facts {
    /// The member that voted since the last call.
    pub(crate) fn take_voter(&self) -> Option<MemberId> {
        self.state.lock().last_voter.take()
    }

    pub(crate) fn acknowledge(&self, name: &str, node: NodeId) {
        let mut state = self.state.lock();
        state.acknowledged.insert(name.to_owned(), node);
        state.count += 1;
    }

    pub(crate) fn deny(&self, name: &str) {
        self.state.lock().denied.insert(name.to_owned());
    }

    /// The disk of a member is gone, and its votes with it.
    pub(crate) fn forget_votes(&self, member: MemberId) {
        self.state.lock().votes.remove(&member);
    }

    /// The node may be removed from now on.
    pub(crate) fn forget(&self, name: &str) {
        self.state.lock().acknowledged.remove(name);
    }

    pub(crate) fn count(&self) -> usize {
        self.state.lock().count
    }

    /// How many terms had a leader that acted.
    pub(crate) fn terms(&self) -> usize {
        self.state.lock().acted.len()
    }

    /// How often a log group was founded, or refused.
    pub(crate) fn foundings(&self) -> usize {
        let state = self.state.lock();
        let is_founding = |one: &&Proposal| matches!(one, Proposal::FoundGroup { .. });
        state.applied.values().filter(is_founding).count()
    }

    pub(crate) fn see_catalog(&self, catalog: &Catalog) {
        let bytes = catalog.snapshot();
        let mut state = self.state.lock();
        let known = state.catalogs.entry(catalog.entries()).or_insert_with(|| bytes.clone());
        assert!(*known == bytes, "two catalogs with {} entries differ", catalog.entries());
    }

    pub(crate) fn check_end(&self, catalog: &Catalog) {
        self.see_catalog(catalog);
        let state = self.state.lock();
        for (name, id) in &state.acknowledged {
            let found = catalog.nodes().get(id).map(|node| &node.name);
            assert!(found == Some(name), "the acknowledged node {name} is lost");
        }
        for node in catalog.nodes().values() {
            assert!(!state.denied.contains(&node.name), "{} was denied and is there", node.name);
        }
    }
}

/// Watches the member of one process.
pub(crate) struct MemberObserver {
    /// Known once it has started.
    id: Mutex<MemberId>,
    facts: Arc<Facts>,
}

impl MemberObserver {
    pub(crate) fn new(facts: &Arc<Facts>) -> MemberObserver {
        MemberObserver { id: Mutex::new(MemberId(0)), facts: Arc::clone(facts) }
    }

    fn id(&self) -> MemberId {
        *self.id.lock()
    }
}

impl Observer for MemberObserver {
    fn opened(&self, id: MemberId, saved: &Saved) {
        *self.id.lock() = id;
        let state = self.facts.state.lock();
        let Some((term, member)) = state.votes.get(&id) else { return };
        let saved = saved.vote;
        let is_there = saved.term > *term || (saved.term == *term && saved.member == Some(*member));
        assert!(
            is_there,
            "member {id} forgot its vote for {member} in term {term}; it has {saved:?}",
        );
    }

    fn sends(&self, message: &Message) {
        let id = self.id();
        let vote = match message.kind() {
            MessageKind::AskVote => id,
            MessageKind::VoteAnswer if !message.is_refusal() => message.to(),
            _ => return,
        };
        let mut state = self.facts.state.lock();
        let before = state.votes.insert(id, (message.term(), vote));
        if let Some((term, member)) = before {
            let again = term == message.term() && member != vote;
            assert!(!again, "member {id} voted twice in term {term}");
        }
        state.last_voter = Some(id);
        drop(state);
        self.facts.voted.notify_all();
    }

    fn acts(&self, term: Term, _: &ToNode) {
        let id = self.id();
        let mut state = self.facts.state.lock();
        if let Some((newest, by)) = state.acted.last_key_value() {
            assert!(term >= *newest, "member {id} acts in term {term} after {newest}");
            assert!(term > *newest || *by == id, "two leaders act in term {term}");
        }
        state.acted.insert(term, id);
    }

    fn applies(&self, index: Index, proposal: &Proposal) {
        let id = self.id();
        let mut state = self.facts.state.lock();
        let known = state.applied.entry(index).or_insert_with(|| proposal.clone());
        assert!(known == proposal, "member {id} applies another entry {index}");
    }
}
