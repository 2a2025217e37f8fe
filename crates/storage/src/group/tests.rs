//! The log of a member from the point of view of its driver.

use std::path::Path;
use std::sync::Arc;

use firn_api::{LogError, LogStore, PageRead, PageStore, Watermarks, WriterEpoch};
use firn_base::{Cts, Environment, Lsn, PageId, PageNo, SpaceId, TrxId};
use firn_consensus::{
    Base, Content, Entry, Index, MemberChange, MemberId, Members, Role, Saved, Term, Vote, Write,
    WriteNumber,
};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::{Change, GroupBuilder};

use super::*;
use crate::local::page_log::PageLog;
use crate::local::{LocalDirectory, LocalLog, LocalPages, LogOptions, OpenError, PageStoreOptions};

mod power_loss;

/// A group of one record for `page` whose body has `length` bytes.
fn group(page: u32, length: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    builder.push(1, page_id(page), |body| body.extend((0..length).map(|byte| byte as u8)));
    builder.finish().to_vec()
}

fn page_id(page: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(page))
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn small() -> LogOptions {
    LogOptions { segment_size_bytes: 4096 + 16 * 512, ..LogOptions::default() }
}

fn founding() -> Base {
    let members = (1..=3).map(|id| (MemberId(id), Role::Voter));
    Base::founding(Term(1), Lsn::FIRST, Members::new(members).unwrap())
}

fn open(path: &Path) -> Result<GroupLog, OpenError> {
    GroupLog::open(&LocalDirectory::open(&Environment::system(), path)?, small(), founding())
}

fn write() -> Write {
    Write {
        number: WriteNumber(1),
        vote: None,
        restart: None,
        truncate: None,
        append: Vec::new(),
        durable: Index(0),
    }
}

/// Makes entries for the end of a log, with their bytes.
struct Maker {
    next: Index,
    end: Lsn,
    term: Term,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl Maker {
    /// Goes on behind the last of `saved`.
    fn after(saved: &Saved) -> Maker {
        let end = saved.entries.last().map_or(saved.base.lsn, Entry::end);
        let next = Index(saved.base.index.0 + saved.entries.len() as u64 + 1);
        Maker::at(next, end, saved.vote.term)
    }

    fn at(next: Index, end: Lsn, term: Term) -> Maker {
        Maker { next, end, term, entries: Vec::new(), bytes: Vec::new() }
    }

    fn push(&mut self, content: Content, bytes: &[u8]) {
        let entry = Entry { index: self.next, term: self.term, start: self.end, content };
        (self.next, self.end) = (Index(self.next.0 + 1), entry.end());
        self.entries.push(entry);
        self.bytes.extend_from_slice(bytes);
    }

    fn log(mut self, groups: &[u8]) -> Maker {
        let content = Content::Log { bytes: groups.len() as u64, checksum: crc32c::crc32c(groups) };
        self.push(content, groups);
        self
    }

    fn mark(mut self) -> Maker {
        self.push(Content::Mark, &[]);
        self
    }

    fn write_to(&self, log: &GroupLog) -> Result<(), LogError> {
        log.write(&Write { append: self.entries.clone(), ..write() }, &self.bytes)
    }
}

/// What is saved, read as a later life of the process would.
fn reopened(path: &Path) -> Saved {
    open(path).unwrap().saved()
}

#[test]
fn what_was_written_is_saved() {
    let place = place();
    let log = open(place.path()).unwrap();
    let saved = log.saved();
    assert_eq!((saved.base.clone(), saved.entries.len()), (founding(), 0));
    let vote = Vote { term: Term(4), member: Some(MemberId(2)) };
    let changes = vec![MemberChange::Set(MemberId(4), Role::Learner)];
    let mut made = Maker::at(Index(2), Lsn::FIRST, Term(4)).mark();
    for length in [10, 9000, 400, 30_000, 1] {
        made = made.log(&[group(1, length), group(2, 8)].concat());
    }
    made.push(Content::Members(changes), &[]);
    let first = Write { vote: Some(vote), append: made.entries.clone(), ..write() };
    log.write(&first, &made.bytes).unwrap();
    log.sync().unwrap();
    let more = Maker::at(made.next, made.end, Term(4)).log(&group(3, 100));
    log.write(&Write { append: more.entries.clone(), durable: Index(5), ..write() }, &more.bytes)
        .unwrap();
    log.sync().unwrap();
    let mut bytes = Vec::new();
    log.read(Lsn::FIRST, more.end, &mut bytes).unwrap();
    assert!(bytes == [made.bytes.clone(), more.bytes.clone()].concat());
    drop(log);
    let saved = reopened(place.path());
    assert_eq!((saved.vote, saved.durable), (vote, Index(5)));
    assert_eq!(saved.base, founding());
    assert_eq!(saved.entries, [made.entries, more.entries].concat());
}

#[test]
fn only_what_is_durable_in_the_group_is_read_and_indexed() {
    let place = place();
    let log = open(place.path()).unwrap();
    let made = Maker::after(&log.saved()).log(&group(1, 100)).log(&group(2, 100));
    made.write_to(&log).unwrap();
    log.set_durable(made.end);
    assert_eq!(log.log().durable_lsn(), Lsn::FIRST, "it is not synced");
    log.sync().unwrap();
    let local = log.log();
    assert_eq!(local.durable_lsn(), Lsn::FIRST);
    let first = made.entries[0].end();
    log.set_durable(first);
    PageLog::wait_until_indexed(&*local, first).unwrap();
    assert_eq!((local.durable_lsn(), local.indexed_lsn()), (first, first));
    let mut bytes = Vec::new();
    assert_eq!(LogStore::read(&*local, Lsn::FIRST, 1 << 20, &mut bytes).unwrap(), first);
    log.set_durable(Lsn::FIRST);
    assert_eq!(local.durable_lsn(), first, "it never goes back");
    drop((log, local));
    // The next life knows what was written as durable, which is nothing.
    let log = open(place.path()).unwrap();
    assert_eq!((log.log().durable_lsn(), log.log().end_lsn()), (Lsn::FIRST, made.end));
    assert_eq!(log.log().indexed_lsn(), Lsn::FIRST);
    // A page store that named more in its map knows better.
    let local = log.log();
    PageLog::learn_durable(&*local, first).unwrap();
    PageLog::wait_until_indexed(&*local, first).unwrap();
    assert_eq!(local.durable_lsn(), first);
}

/// A group that makes the page an empty one.
fn format_page(page: u32) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    Change::Format { kind: PageKind::Free }.encode(page_id(page), &mut builder);
    builder.finish().to_vec()
}

#[test]
fn pages_have_what_is_durable_in_the_group_and_outlive_the_member() {
    let place = place();
    let directory = LocalDirectory::open(&Environment::system(), place.path()).unwrap();
    let open = || GroupLog::open(&directory, small(), founding()).unwrap();
    let pages_over = |log: &GroupLog| {
        LocalPages::open(&directory, PageStoreOptions::default(), log.log()).unwrap()
    };
    let log = open();
    let pages = pages_over(&log);
    let made = Maker::after(&log.saved());
    let made = (1..=60).fold(made, |made, page| made.log(&format_page(page)));
    let cut_page = made.log(&format_page(61));
    cut_page.write_to(&log).unwrap();
    log.sync().unwrap();
    let durable = cut_page.entries[59].end();
    log.set_durable(durable);
    pages.materialise_up_to(durable).unwrap();
    let version = |pages: &LocalPages, page| {
        let latest = PageRead::Latest { at_least: Lsn(0) };
        let read = pages.read(page_id(page), latest, &mut PageBuf::zeroed());
        read.ok().map(|version| version.lsn).filter(|lsn| *lsn > Lsn(0))
    };
    assert_eq!(version(&pages, 60), Some(durable));
    assert_eq!(version(&pages, 61), None, "it is not durable in the group");
    pages.close();
    log.close();
    drop((pages, log));
    // The member forgot how far the group is, but its pages are further.
    let log = open();
    assert_eq!(log.log().durable_lsn(), Lsn::FIRST);
    let pages = pages_over(&log);
    assert!(log.log().durable_lsn() > Lsn::FIRST && log.log().durable_lsn() <= durable);
    let new = Maker::at(Index(62), durable, Term(2)).mark().log(&format_page(62));
    let cut =
        Write { truncate: Some((Index(62), durable)), append: new.entries.clone(), ..write() };
    log.write(&cut, &new.bytes).unwrap();
    log.sync().unwrap();
    log.set_durable(new.end);
    pages.materialise_up_to(new.end).unwrap();
    assert_eq!(version(&pages, 62), Some(new.end));
    assert_eq!(version(&pages, 61), None, "it was cut off");
    // Log goes once the pages do not need it.
    let begin = log.release(new.end);
    assert!(begin <= new.end);
    pages.close();
}

#[test]
fn nothing_is_left_of_what_was_truncated() {
    let place = place();
    let log = open(place.path()).unwrap();
    let kept = Maker::after(&log.saved()).mark().log(&group(1, 100));
    kept.write_to(&log).unwrap();
    let mut gone = Maker::at(kept.next, kept.end, Term(1));
    for length in [300, 20_000, 20_000, 100] {
        gone = gone.log(&group(7, length));
    }
    gone.write_to(&log).unwrap();
    log.sync().unwrap();
    log.set_durable(kept.end);
    let new = Maker::at(kept.next, kept.end, Term(2)).mark().log(&group(2, 200));
    let vote = Some(Vote { term: Term(2), member: None });
    let cut = Write {
        vote,
        truncate: Some((kept.next, kept.end)),
        append: new.entries.clone(),
        durable: Index(3),
        ..write()
    };
    log.write(&cut, &new.bytes).unwrap();
    assert_eq!(log.log().end_lsn(), new.end);
    log.sync().unwrap();
    let check = |log: &LocalLog, saved: Option<Saved>| {
        log.set_durable(new.end);
        PageLog::wait_until_indexed(log, new.end).unwrap();
        let visited = |page| {
            let mut starts = Vec::new();
            PageLog::visit_records(log, page_id(page), Lsn::FIRST, new.end, &mut |start, _, _| {
                starts.push(start);
                Ok(())
            })
            .unwrap();
            starts
        };
        assert_eq!(visited(1), [Lsn::FIRST]);
        assert_eq!(visited(2), [kept.end]);
        assert_eq!(visited(7), []);
        let mut bytes = Vec::new();
        LogStore::read(log, Lsn::FIRST, 1 << 20, &mut bytes).unwrap();
        assert_eq!(bytes, [kept.bytes.clone(), new.bytes.clone()].concat());
        if let Some(saved) = saved {
            assert_eq!(saved.entries, [kept.entries.clone(), new.entries.clone()].concat());
        }
    };
    check(&log.log(), None);
    drop(log);
    let log = open(place.path()).unwrap();
    check(&log.log(), Some(log.saved()));
}

#[test]
fn more_entries_than_sectors_are_reserved_make_the_file_longer() {
    let place = place();
    let log = open(place.path()).unwrap();
    let mut made = Maker::after(&log.saved());
    for _ in 0..2000 {
        made = made.mark();
    }
    made.write_to(&log).unwrap();
    let after = Maker::at(made.next, made.end, Term(1)).log(&group(1, 40_000)).log(&group(1, 8));
    after.write_to(&log).unwrap();
    log.sync().unwrap();
    log.set_durable(after.end);
    PageLog::wait_until_indexed(&*log.log(), after.end).unwrap();
    drop(log);
    for _ in 0..2 {
        let saved = reopened(place.path());
        assert_eq!(saved.entries, [made.entries.clone(), after.entries.clone()].concat());
    }
}

#[test]
fn released_log_leaves_a_base_with_the_members() {
    let place = place();
    let log = open(place.path()).unwrap();
    let mut made = Maker::after(&log.saved());
    for number in 0..60u64 {
        if number % 10 == 0 {
            let learner = MemberChange::Set(MemberId(10 + number), Role::Learner);
            made.push(Content::Members(vec![learner]), &[]);
        }
        made = made.log(&group(number as u32, 700));
    }
    made.write_to(&log).unwrap();
    log.sync().unwrap();
    assert_eq!(log.release(made.end), Lsn::FIRST, "nothing is durable in the group");
    log.set_durable(made.end);
    PageLog::wait_until_indexed(&*log.log(), made.end).unwrap();
    let begin = log.release(made.end);
    assert!(begin > Lsn::FIRST && begin <= made.end);
    let mut base = founding();
    let before = made.entries.iter().take_while(|entry| entry.end() <= begin);
    before.filter(|entry| entry.start < begin).for_each(|entry| base.pass(entry));
    let error = log.read(Lsn::FIRST, begin, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, LogError::OutOfRange { .. }), "{error}");
    drop(log);
    let saved = reopened(place.path());
    assert_eq!(saved.base, base);
    assert_eq!(saved.durable, base.index, "no later one was written");
    let kept = made.entries.iter().filter(|entry| entry.index > base.index);
    assert_eq!(saved.entries, kept.cloned().collect::<Vec<_>>());
}

#[test]
fn a_restart_begins_again_at_its_base() {
    let place = place();
    let log = open(place.path()).unwrap();
    Maker::after(&log.saved()).log(&group(1, 30_000)).write_to(&log).unwrap();
    let old = log.log();
    // The base may be within the old log: its end was never durable.
    let base = Base { index: Index(70), term: Term(6), lsn: Lsn(20_000), ..founding() };
    let made = Maker::at(Index(71), Lsn(20_000), Term(6)).log(&group(2, 100));
    let restart = Write {
        vote: Some(Vote { term: Term(6), member: None }),
        restart: Some(base.clone()),
        append: made.entries.clone(),
        durable: Index(70),
        ..write()
    };
    let limits = Watermarks { trx_id_limit: TrxId(700), cts_limit: Cts(900) };
    log.raise_watermarks(limits);
    // As after a try that found no room for the entries.
    log.write(&Write { append: Vec::new(), ..restart.clone() }, &[]).unwrap();
    let log_before = log.log();
    log.write(&restart, &made.bytes).unwrap();
    assert!(Arc::ptr_eq(&log_before, &log.log()), "it is restarted once");
    drop(log_before);
    log.sync().unwrap();
    assert!(LogStore::open(&*old, WriterEpoch::Next).is_err());
    assert_eq!(log.log().durable_lsn(), base.lsn);
    assert_eq!(log.watermarks().unwrap(), limits, "log that is not here had them");
    drop((log, old));
    let log = open(place.path()).unwrap();
    assert_eq!(log.watermarks().unwrap(), limits);
    let saved = log.saved();
    assert_eq!((saved.base, saved.durable), (base, Index(70)));
    assert_eq!(saved.entries, made.entries);
}

#[test]
fn a_log_is_opened_as_what_it_is() {
    let member = place();
    drop(open(member.path()).unwrap());
    let directory = LocalDirectory::open(&Environment::system(), member.path()).unwrap();
    let error = LocalLog::open(&directory, small()).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::OfGroup { .. }), "{error}");
    let alone = place();
    let directory = LocalDirectory::open(&Environment::system(), alone.path()).unwrap();
    drop(LocalLog::open(&directory, small()).unwrap());
    drop(directory);
    let error = open(alone.path()).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::NotOfGroup { .. }), "{error}");
}

#[test]
fn a_member_takes_no_writer_of_its_own() {
    let place = place();
    let log = open(place.path()).unwrap();
    let error = LogStore::open(&*log.log(), WriterEpoch::Next).map(|_| ()).unwrap_err();
    assert!(matches!(error, LogError::NotLeader { .. }), "{error}");
}

#[test]
fn a_member_that_joins_has_an_empty_log() {
    let place = place();
    let directory = LocalDirectory::open(&Environment::system(), place.path()).unwrap();
    for _ in 0..2 {
        let log = GroupLog::open(&directory, small(), Base::joining()).unwrap();
        let saved = log.saved();
        assert_eq!((saved.base, saved.entries.len()), (Base::joining(), 0));
    }
    drop(GroupLog::open_again(&directory, small()).unwrap());
}

#[test]
fn a_log_that_was_made_is_not_made_again() {
    let place = place();
    let directory = LocalDirectory::open(&Environment::system(), place.path()).unwrap();
    let error = GroupLog::open_again(&directory, small()).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::Log(LogError::Damaged { .. })), "{error}");
}

#[test]
fn bytes_that_are_not_the_entry_s_are_refused() {
    let place = place();
    let log = open(place.path()).unwrap();
    let mut made = Maker::after(&log.saved()).log(&group(1, 100));
    made.bytes.truncate(made.bytes.len() - 8);
    assert!(matches!(made.write_to(&log), Err(LogError::Damaged { .. })));
    assert_eq!(log.log().end_lsn(), Lsn::FIRST);
}
