//! The tasks that keep a client's leases, and learn what members have.

use std::sync::atomic::Ordering;

use super::Shared;
use super::members::{Kept, ReaderId};
use crate::message::{HeldReader, Reply, Request};

impl Shared {
    /// What a task `log-renew` does: it renews the leases at one member.
    pub(super) fn renew(&self, member: usize) {
        let mut answered_for = 0;
        while !self.is_closed() && !self.is_gone(member) {
            let wanted = self.renewals_wanted.load(Ordering::SeqCst);
            if self.ask_for_registration(member) {
                answered_for = self.renew_once(member, answered_for);
            }
            let is_wanted = || self.renewals_wanted.load(Ordering::SeqCst) != wanted;
            self.wanted.wait_until(Some(self.options.renewal), is_wanted);
        }
        // The member lets go at once instead of after the leases' time.
        if answered_for > 0 && self.caller(member).peer().is_some() {
            let request = Request::Hold { client: self.client, readers: Vec::new() };
            let _ = self.ask(member, &request, self.options.attempt);
        }
    }

    /// Learns what the member holds for the readers that stay, once. False if it does not say.
    fn ask_for_registration(&self, member: usize) -> bool {
        if self.state.lock().members.0[member].is_asked {
            return true;
        }
        let mut registered = Vec::new();
        if !self.options.stays.is_empty() {
            let readers = match self.ask(member, &Request::Readers, self.options.attempt) {
                Ok((Reply::Readers { readers, .. }, _)) => readers,
                _ => {
                    self.failed(member, &"it does not say who holds its log");
                    return false;
                }
            };
            let are_own = |reader: &HeldReader| reader.stays && self.stays(&reader.name);
            registered = readers.into_iter().filter(are_own).collect();
        }
        {
            let mut state = self.state.lock();
            for reader in registered {
                state.note_registered(&reader.name, reader.held);
            }
            state.members.0[member].is_asked = true;
        }
        self.changed.notify_all();
        true
    }

    /// Returns how many readers the member may hold log for afterwards.
    fn renew_once(&self, member: usize, before: usize) -> usize {
        let readers: Vec<(ReaderId, HeldReader)> = {
            let state = self.state.lock();
            state.readers.iter().map(|(id, reader)| (*id, reader.clone())).collect()
        };
        let (ids, readers): (Vec<_>, Vec<_>) = readers.into_iter().unzip();
        let held: Vec<_> = readers.iter().map(|reader| reader.held).collect();
        let request = Request::Hold { client: self.client, readers };
        let (kept_from, leader) = match self.ask(member, &request, self.options.attempt) {
            Ok((Reply::Held { kept_from, leader, .. }, _)) if kept_from.len() == ids.len() => {
                (kept_from, leader)
            }
            Ok(_) => {
                self.failed(member, &"it answered something else than what was asked");
                return before.max(ids.len());
            }
            Err(error) => {
                self.failed(member, &error);
                return before.max(ids.len());
            }
        };
        {
            let mut state = self.state.lock();
            let state = &mut *state;
            let member = &mut state.members.0[member];
            member.leader = leader;
            for ((id, held), from) in ids.iter().zip(held).zip(kept_from) {
                if state.readers.contains_key(id) {
                    member.kept.insert(*id, Kept { held, from });
                }
            }
        }
        self.changed.notify_all();
        ids.len()
    }
}
