//! The task that brings the member's writes to the disk.

use std::io;
use std::time::Duration;

use firn_consensus::{Role, WriteNumber};

use super::core::Core;
use super::shared::Shared;
use crate::file::{MemberFile, StoredWrite, Whole};

/// How long the task waits before it tries again to find room on the disk.
const ROOM_RETRY: Duration = Duration::from_millis(200);

/// What is synced next.
enum Work {
    Writes(Vec<StoredWrite>),
    Whole(Box<Whole>),
}

impl Shared {
    /// What the task `control-disk` does. It owns the file.
    pub(super) fn run_disk(&self, mut file: MemberFile) {
        while !self.is_stopped() {
            let ticket = self.disk_work.listen();
            let Some((number, work)) = self.next_work(&file) else {
                self.disk_work.wait(ticket, None);
                continue;
            };
            match self.bring(&mut file, &work) {
                Ok(true) => self.event(|core| core.member.synced(number)),
                Ok(false) => return,
                Err(error) => return self.fail(format!("its disk has failed: {error}")),
            }
        }
    }

    /// Writes and syncs, and waits for room while there is none. False if the node stops.
    fn bring(&self, file: &mut MemberFile, work: &Work) -> io::Result<bool> {
        while !self.is_stopped() {
            let done = match work {
                Work::Writes(writes) => file.append(writes),
                Work::Whole(whole) => file.replace(whole),
            };
            match done {
                Err(error) if error.kind() == io::ErrorKind::StorageFull => self.step_back(),
                done => return done.map(|()| true),
            }
            self.stopped.wait_until(Some(ROOM_RETRY), || self.is_stopped());
        }
        Ok(false)
    }

    /// Takes everything that waits for the disk.
    fn next_work(&self, file: &MemberFile) -> Option<(WriteNumber, Work)> {
        let mut core = self.core.lock();
        let queue = std::mem::take(&mut core.queue);
        let number = queue.last()?.0;
        let writes: Option<Vec<StoredWrite>> = queue.into_iter().map(|(_, write)| write).collect();
        let work = match writes {
            Some(writes) if !file.is_long(self.options.file_bytes) => Work::Writes(writes),
            _ => Work::Whole(Box::new(core.whole())),
        };
        Some((number, work))
    }

    /// A leader whose disk is full lets another member lead.
    fn step_back(&self) {
        tracing::warn!("the disk of this control node is full. Free space; it goes on by itself");
        self.event(|core| self.hand_over(core));
    }

    fn hand_over(&self, core: &mut Core) {
        let Some(term) = core.member.leads() else { return };
        let others = core.member.members().iter().filter(|(_, role)| *role == Role::Voter);
        let others: Vec<_> = others.map(|(id, _)| id).filter(|id| *id != self.options.id).collect();
        // Another one each time, until one of them leads.
        let turn = (self.clock.monotonic().as_nanos() / ROOM_RETRY.as_nanos()) as usize;
        if let Some(to) = others.get(turn % others.len().max(1)) {
            // Refused while one is under way.
            let _ = core.member.hand_over(term, *to);
        }
    }
}
