//! Faults put into a replica on purpose: tests show with them that they find such bugs.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::FollowedGroup;
use firn_base::{Lsn, PageId, SpaceId};
use firn_format::redo::{Change, Group, GroupBuilder};
use firn_format::undo::{UndoOperation, UndoRecord};

use super::applier::Applier;
use crate::dictionary::follow::Touched;
use crate::error::EngineError;

/// A rule that the replica breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A transaction enters the table some groups after its first record is on a page.
    LateTransaction,
    /// A commit becomes visible some groups before its pages have changed.
    LatePages,
    /// A commit that changed definitions becomes visible without them.
    SkippedDefinitions,
    /// The place at the writer passes open snapshots, so that the writer purges what they see.
    PlaceTooFar,
    /// Commits are applied in another order than that of their timestamps, and one becomes visible
    /// though an earlier one is missing.
    IgnoredGap,
    /// A cached page misses an insertion, and is not dropped either.
    StalePage,
    /// No fault, but the control of [`Fault::IgnoredGap`]: the same order of commits. The log may
    /// have it too.
    ReorderedCommits,
    /// A read that applies log panics after a group's pages have changed.
    ReadPanics,
    /// A read that applies log fails there.
    ReadFails,
    /// No fault: log is applied a few milliseconds after it has come.
    LatePieces,
}

impl Fault {
    /// What tests must find.
    pub(super) const ALL: [Fault; 6] = [
        Fault::LateTransaction,
        Fault::LatePages,
        Fault::SkippedDefinitions,
        Fault::PlaceTooFar,
        Fault::IgnoredGap,
        Fault::StalePage,
    ];
}

/// Groups by which a late step is late.
const LAG: usize = 32;
/// How late pieces of log are.
const LATE: Duration = Duration::from_millis(3);
/// One insertion in `MISSED` is missed.
const MISSED: u32 = 50;
/// A space that does not exist.
const NOWHERE: SpaceId = SpaceId(u32::MAX - 1);

/// Groups of which a step has still to be done.
#[derive(Default)]
pub(super) struct Late {
    groups: VecDeque<LateGroup>,
    /// Groups that have overtaken the first one.
    overtakers: usize,
    insertions: u32,
}

struct LateGroup {
    start: Lsn,
    end: Lsn,
    bytes: Vec<u8>,
}

impl Late {
    /// Adds a group, and returns the one whose turn it is.
    fn push(&mut self, group: &FollowedGroup<'_>) -> Option<LateGroup> {
        let bytes = copy(&group.group, |page| page);
        self.groups.push_back(LateGroup { start: group.start, end: group.end, bytes });
        if self.groups.len() > LAG { self.groups.pop_front() } else { None }
    }

    /// Notes that another group has overtaken the first one, and returns that one once it is late
    /// enough.
    fn overtake(&mut self) -> Option<LateGroup> {
        self.overtakers = if self.groups.is_empty() { 0 } else { self.overtakers + 1 };
        if self.overtakers < LAG {
            return None;
        }
        self.overtakers = 0;
        self.groups.pop_front()
    }
}

impl LateGroup {
    fn group(&self) -> Group<'_> {
        Group::parse(&self.bytes).expect("a copy of a group")
    }
}

/// The bytes of a group with other pages.
fn copy(group: &Group<'_>, page: impl Fn(PageId) -> PageId) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    for record in group.records() {
        let record = record.expect("a group that was checked");
        builder.push(record.kind, page(record.page), |body| body.extend_from_slice(record.body));
    }
    builder.finish().to_vec()
}

fn commits(group: &Group<'_>) -> bool {
    group.records().flatten().any(|record| {
        let Ok(Change::UndoAppend { record }) = Change::decode(&record) else { return false };
        let undo = UndoRecord::parse(record);
        undo.is_ok_and(|undo| matches!(undo.operation, UndoOperation::Committed { .. }))
    })
}

fn inserts_into_a_tree(group: &Group<'_>) -> bool {
    group.records().flatten().any(|record| {
        matches!(
            Change::decode(&record),
            Ok(Change::TreeInsert { .. } | Change::TreeInsertRun { .. })
        )
    })
}

impl Applier {
    /// A piece of log has come.
    pub(super) fn receive(&self) {
        if self.fault == Some(Fault::LatePieces) {
            firn_base::task::sleep(LATE);
        }
    }

    /// Applies a group as the fault has it.
    pub(super) fn apply_group_with(
        &mut self,
        fault: Fault,
        group: &FollowedGroup<'_>,
    ) -> Result<(), EngineError> {
        match fault {
            Fault::LateTransaction => {
                self.change_pages(group.start, &group.group)?;
                let Some(late) = self.late.push(group) else { return Ok(()) };
                self.begin_group(&late.group())?;
                self.finish_group(late.end)
            }
            Fault::LatePages => {
                self.begin_group(&group.group)?;
                self.finish_group(group.end)?;
                let Some(late) = self.late.push(group) else { return Ok(()) };
                self.change_pages(late.start, &late.group())
            }
            Fault::SkippedDefinitions => {
                self.begin_group(&group.group)?;
                self.change_pages(group.start, &group.group)?;
                let mut commits = self.replay.end_group(&self.shared.versions, group.end);
                commits.iter_mut().for_each(|commit| commit.touched = Touched::default());
                self.follow_commits(&commits)
            }
            Fault::IgnoredGap | Fault::ReorderedCommits => {
                self.change_pages(group.start, &group.group)?;
                let is_late = commits(&group.group) && self.late.groups.is_empty();
                // Announcements name positions, which commits that are late would belie.
                let is_ready = self.shared.is_ready.load(Ordering::Acquire);
                if is_late && is_ready && self.commits.go_by_applied() {
                    self.late.push(group);
                    return Ok(());
                }
                self.finish_in_disorder(fault, group.end, &group.group)?;
                let Some(late) = self.late.overtake() else { return Ok(()) };
                self.finish_in_disorder(fault, late.end, &late.group())
            }
            Fault::ReadPanics | Fault::ReadFails => {
                self.begin_group(&group.group)?;
                self.change_pages(group.start, &group.group)?;
                let is_task = std::thread::current().name() == Some("replica");
                match (is_task, fault) {
                    (true, _) => self.finish_group(group.end),
                    (false, Fault::ReadPanics) => panic!("a fault on purpose"),
                    (false, _) => Err(EngineError::Invalid("a fault on purpose".to_owned())),
                }
            }
            // The task does what is wrong.
            Fault::LatePieces | Fault::PlaceTooFar => self.apply_rightly(group, &group.group),
            Fault::StalePage => {
                self.late.insertions += u32::from(inserts_into_a_tree(&group.group));
                if self.late.insertions < MISSED {
                    return self.apply_rightly(group, &group.group);
                }
                self.late.insertions = 0;
                let missed = copy(&group.group, |page| PageId::new(NOWHERE, page.page_no));
                let missed = Group::parse(&missed).expect("a copy of a group");
                self.apply_rightly(group, &missed)
            }
        }
    }

    /// Enters a group's news, perhaps after those of later groups.
    fn finish_in_disorder(
        &mut self,
        fault: Fault,
        end: Lsn,
        group: &Group<'_>,
    ) -> Result<(), EngineError> {
        self.begin_group(group)?;
        let commits = self.replay.end_group(&self.shared.versions, end);
        commits.iter().for_each(|commit| self.commits.applied(commit.cts));
        if fault == Fault::IgnoredGap {
            self.commits.ignore_gaps();
        }
        self.follow_commits(&commits)
    }

    /// Applies a group with these changes of pages.
    fn apply_rightly(
        &mut self,
        group: &FollowedGroup<'_>,
        changes: &Group<'_>,
    ) -> Result<(), EngineError> {
        self.begin_group(&group.group)?;
        self.change_pages(group.start, changes)?;
        self.finish_group(group.end)
    }
}
