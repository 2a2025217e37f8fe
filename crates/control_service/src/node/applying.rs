//! Entries that are durable in the group go into the catalog.

use firn_consensus::{Content, Index};
use firn_control::Proposal;

use super::core::Core;
use super::shared::Shared;
use crate::file::StoredEntry;
use crate::message::Reply;

impl Shared {
    /// Applies the entries up to `index`.
    pub(super) fn apply(&self, core: &mut Core, index: Index) {
        while core.log.base.index < index && self.failure.get().is_none() {
            let next = Index(core.log.base.index.0 + 1);
            let Some(stored) = core.log.entries.get(&next).cloned() else {
                return self.fail(format!("entry {next} is durable and not in this node's log"));
            };
            core.log.base.pass(&stored.entry);
            self.apply_entry(core, &stored);
        }
        let kept = self.options.kept_entries as u64;
        let old = Index(index.0.saturating_sub(kept));
        if let Some(stored) = core.log.entries.get(&old) {
            let lsn = core.member.release(stored.entry.end());
            core.log.release(lsn);
        }
    }

    fn apply_entry(&self, core: &mut Core, stored: &StoredEntry) {
        let index = stored.entry.index;
        if !matches!(stored.entry.content, Content::Log { .. }) {
            return;
        }
        let proposal = match Proposal::decode(&stored.bytes) {
            Ok(proposal) => proposal,
            // Skipping it would make this node's catalog another one than the group's.
            Err(error) => return self.fail(format!("entry {index}: {error}")),
        };
        if let Some(observer) = &self.options.observer {
            observer.applies(index, &proposal);
        }
        let applied = core.controller.apply(&proposal);
        let Some((term, responder)) = core.waiting.remove(&index) else { return };
        let reply = match applied {
            _ if term != stored.entry.term => Reply::Unknown,
            Ok(applied) => Reply::Applied(applied),
            Err(refusal) => Reply::Refused(refusal.to_string()),
        };
        core.answer(responder, reply);
    }
}
