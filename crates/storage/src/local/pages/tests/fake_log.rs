//! A log in memory, and simple changes by which a lost, repeated or misplaced record shows.

use std::sync::Arc;

use firn_api::{LogError, Room};
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::{self, RawRecord};
use parking_lot::Mutex;

use super::super::super::page_log::{PageLog, PageLogListener, RecordVisitor};

pub(super) const CREATE: u8 = 1;
pub(super) const CHAIN: u8 = 2;
const DROP: u8 = 3;
const CHAIN_AT: usize = 40;

#[derive(Clone)]
struct Record {
    kind: u8,
    page: PageId,
    body: Vec<u8>,
}

impl Record {
    /// Whether the record drops a space.
    fn is_drop(&self) -> bool {
        self.page.page_no == PageNo::NONE
    }
}

#[derive(Clone)]
struct Group {
    start: Lsn,
    end: Lsn,
    records: Vec<Record>,
}

#[derive(Default)]
struct State {
    groups: Vec<Group>,
    kept_from: Lsn,
    durable: Lsn,
    /// The end of the log that can be read; the listener is told a little later.
    readable: Lsn,
    indexed: Lsn,
    listener: Option<Arc<dyn PageLogListener>>,
    page_room: Option<Room>,
}

/// A log whose groups are durable at once.
pub(super) struct FakeLog {
    state: Mutex<State>,
    /// Held during a report, because there is only one indexer.
    telling: Mutex<()>,
    /// How many groups are reported to a follower as one at the start.
    told_as_one: usize,
}

impl FakeLog {
    pub(super) fn new() -> Arc<FakeLog> {
        let state = State {
            kept_from: Lsn::FIRST,
            durable: Lsn::FIRST,
            readable: Lsn::FIRST,
            indexed: Lsn::FIRST,
            ..State::default()
        };
        Arc::new(FakeLog { state: Mutex::new(state), telling: Mutex::new(()), told_as_one: 1 })
    }

    /// The log as a restart finds it.
    pub(super) fn reopened(&self, told_as_one: usize) -> Arc<FakeLog> {
        let old = self.state.lock();
        let groups = old.groups.iter().filter(|group| group.end > old.kept_from).cloned().collect();
        let state = State {
            groups,
            kept_from: old.kept_from,
            durable: old.durable,
            readable: old.kept_from,
            indexed: old.kept_from,
            ..State::default()
        };
        Arc::new(FakeLog { state: Mutex::new(state), telling: Mutex::new(()), told_as_one })
    }

    /// Appends a group that creates or changes pages; returns its end.
    pub(super) fn append(&self, changes: &[(PageId, u8, u64)]) -> Lsn {
        let records = changes.iter().map(|(page, kind, value)| Record {
            kind: *kind,
            page: *page,
            body: value.to_le_bytes().to_vec(),
        });
        let end = self.append_untold(records.collect());
        self.tell();
        end
    }

    /// Appends a group that the indexer has not reached yet.
    pub(super) fn append_unindexed(&self, page: PageId, kind: u8, value: u64) -> Lsn {
        self.append_untold(vec![Record { kind, page, body: value.to_le_bytes().to_vec() }])
    }

    pub(super) fn drop_space(&self, space: SpaceId) -> Lsn {
        let page = PageId::new(space, PageNo::NONE);
        let end = self.append_untold(vec![Record { kind: DROP, page, body: Vec::new() }]);
        self.tell();
        end
    }

    /// Appends a real group; returns its end.
    pub(super) fn append_group(&self, group: &[u8]) -> Lsn {
        let group = redo::Group::parse(group).unwrap();
        let records = group.records().map(|record| {
            let record = record.unwrap();
            Record { kind: record.kind, page: record.page, body: record.body.to_vec() }
        });
        let end = self.append_untold(records.collect());
        self.tell();
        end
    }

    fn append_untold(&self, records: Vec<Record>) -> Lsn {
        let mut state = self.state.lock();
        let start = state.durable;
        let end = start.advance(8 + 24 * records.len() as u64);
        state.groups.push(Group { start, end, records });
        state.durable = end;
        end
    }

    /// The store's last report of its room.
    pub(super) fn page_room(&self) -> Option<Room> {
        self.state.lock().page_room
    }

    /// Reports log to the listener that it has not been told of.
    pub(super) fn tell(&self) {
        let _telling = self.telling.lock();
        let (groups, listener, durable) = {
            let mut state = self.state.lock();
            state.readable = state.durable;
            let new = state.groups.iter().filter(|group| group.end > state.indexed);
            (new.cloned().collect::<Vec<_>>(), state.listener.clone(), state.durable)
        };
        if let Some(listener) = listener {
            groups.iter().for_each(|group| tell_groups(std::slice::from_ref(group), &*listener));
            listener.told_up_to(durable);
        }
        self.state.lock().indexed = durable;
    }
}

fn tell_groups(groups: &[Group], listener: &dyn PageLogListener) {
    let records =
        || groups.iter().flat_map(|group| group.records.iter().map(move |record| (group, record)));
    let mut pages: Vec<PageId> =
        records().filter(|(_, record)| !record.is_drop()).map(|(_, record)| record.page).collect();
    pages.sort();
    pages.dedup();
    for page in pages {
        let mut about = records().filter(|(_, record)| record.page == page).map(|(group, _)| group);
        let first = about.next().expect("the page has a record");
        let last = about.next_back().unwrap_or(first);
        listener.page_changed(page, first.start, last.end);
    }
    for (group, record) in records().filter(|(_, record)| record.is_drop()) {
        listener.space_dropped(record.page.space, group.end);
    }
    let Some(last) = groups.last() else { return };
    listener.told_up_to(last.end);
}

impl PageLog for FakeLog {
    fn indexed_lsn(&self) -> Lsn {
        self.state.lock().indexed
    }

    fn durable_lsn(&self) -> Lsn {
        self.state.lock().durable
    }

    fn kept_from(&self) -> Lsn {
        self.state.lock().kept_from
    }

    fn wait_until_indexed(&self, lsn: Lsn) -> Result<(), LogError> {
        assert!(lsn <= self.durable_lsn(), "a test that waits for log that never comes");
        self.tell();
        Ok(())
    }

    fn visit_records(
        &self,
        page: PageId,
        from: Lsn,
        to: Lsn,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<(), LogError> {
        let groups = {
            let state = self.state.lock();
            if from < state.kept_from {
                let (from, to) = (state.kept_from, state.indexed);
                return Err(LogError::OutOfRange { position: from, from, to });
            }
            assert!(to <= state.readable, "only indexed log is visited");
            state.groups.clone()
        };
        for group in groups.iter().filter(|group| from <= group.start && group.end <= to) {
            for record in group.records.iter().filter(|record| record.page == page) {
                let raw = RawRecord { kind: record.kind, page, body: &record.body };
                visit(group.start, group.end, raw)?;
            }
        }
        Ok(())
    }

    fn release_before(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        assert!(lsn <= state.readable);
        state.kept_from = state.kept_from.max(lsn);
        let kept_from = state.kept_from;
        state.groups.retain(|group| group.end > kept_from);
    }

    fn waits_for_room(&self) -> bool {
        false
    }

    fn tell_page_room(&self, room: Room) {
        self.state.lock().page_room = Some(room);
    }

    fn follow(&self, listener: Arc<dyn PageLogListener>) {
        let (groups, durable) = {
            let mut state = self.state.lock();
            state.readable = state.durable;
            (state.groups.clone(), state.durable)
        };
        groups.chunks(self.told_as_one).for_each(|groups| tell_groups(groups, &*listener));
        listener.told_up_to(durable);
        let mut state = self.state.lock();
        state.indexed = durable;
        state.listener = Some(listener);
    }
}

/// A number that all changes of the page so far determine.
pub(super) fn chain(page: &PageBuf) -> u64 {
    page.get_u64(CHAIN_AT)
}

/// Applies a change of these tests to a page.
pub(super) fn apply(page: &mut PageBuf, id: PageId, record: RawRecord<'_>) -> Result<(), String> {
    let value = u64::from_le_bytes(record.body.try_into().map_err(|_| "a body of 8 bytes")?);
    if record.kind == CREATE {
        page.format(id, PageKind::TreeLeaf);
    } else if page.page_id() != id || page.lsn() == Lsn(0) {
        return Err(format!("{id} was not created"));
    }
    let next = (chain(page) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
    page.put_u64(CHAIN_AT, next);
    Ok(())
}
