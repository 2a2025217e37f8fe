//! The log from the point of view of its callers.

use std::path::Path;

use firn_base::{Environment, PageId, PageNo, SpaceId};
use firn_format::redo::GroupBuilder;

use super::*;

mod following;
mod power_loss;
mod timing;

/// A group of one record for `page` whose body has `length` bytes.
pub(super) fn group(page: u32, length: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let page = PageId::new(SpaceId(1), PageNo(page));
    builder.push(1, page, |body| body.extend((0..length).map(|byte| byte as u8)));
    builder.finish().to_vec()
}

/// A directory in memory if the machine has one: these tests sync often, and power is never lost.
pub(super) fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(super) fn small() -> LogOptions {
    LogOptions { segment_size_bytes: 4096 + 16 * 512, ..LogOptions::default() }
}

/// Opens the log and makes the test its writer.
pub(super) fn open(path: &Path) -> Result<Arc<LocalLog>, OpenError> {
    let directory = LocalDirectory::open(&Environment::system(), path)?;
    open_writer(&directory, small())
}

pub(super) fn open_writer(
    directory: &Arc<LocalDirectory>,
    options: LogOptions,
) -> Result<Arc<LocalLog>, OpenError> {
    let log = LocalLog::open(directory, options)?;
    LogStore::open(&*log, WriterEpoch::Next)?;
    Ok(log)
}

/// The holder's part of the writer's role, with the epoch of the last writer.
impl LocalLog {
    pub(super) fn append(&self, start: Lsn, groups: &[u8]) -> Result<(), LogError> {
        let epoch = u64::from(self.shared.incarnation.load(Ordering::Acquire));
        self.shared.append_groups(LogEpoch(epoch), start, groups)
    }

    pub(super) fn sync(&self) -> Result<Lsn, LogError> {
        self.shared.sync_written()
    }

    /// The watermarks that the next writer will find in its tail.
    pub(super) fn watermarks(&self) -> Watermarks {
        *self.shared.watermarks.lock()
    }
}

pub(super) fn read_all(log: &LocalLog) -> Vec<u8> {
    let (mut bytes, mut position) = (Vec::new(), log.truncated_lsn());
    while position < log.durable_lsn() {
        position = log.read(position, 1000, &mut bytes).unwrap();
    }
    bytes
}

#[test]
fn what_was_synced_is_there_again() {
    let directory = place();
    let mut model = Vec::new();
    for round in 0..5 {
        let log = open(directory.path()).unwrap();
        assert_eq!(log.end_lsn(), Lsn::FIRST.advance(model.len() as u64));
        assert_eq!(read_all(&log), model);
        for number in 0..40 {
            let group = group(number, (number as usize * 37 + round) % 900);
            log.append(log.end_lsn(), &group).unwrap();
            model.extend_from_slice(&group);
            if number % 7 == 0 {
                assert_eq!(log.sync().unwrap(), log.end_lsn());
            }
        }
        log.sync().unwrap();
        assert_eq!(read_all(&log), model);
    }
}

#[test]
fn a_read_keeps_to_its_limit_but_gives_at_least_one_group() {
    let place = place();
    let log = open(place.path()).unwrap();
    let groups = [group(1, 100), group(2, 9000), group(3, 100)];
    log.append(log.end_lsn(), &groups.concat()).unwrap();
    let mut bytes = b"kept".to_vec();
    assert_eq!(log.read(Lsn::FIRST, 1000, &mut bytes).unwrap(), Lsn::FIRST, "nothing is durable");
    log.sync().unwrap();
    let mut position = Lsn::FIRST;
    for (group, limit) in groups.iter().zip([200, 0, 1 << 30]) {
        bytes.truncate(4);
        let end = log.read(position, limit, &mut bytes).unwrap();
        assert_eq!(end, position.advance(group.len() as u64));
        assert_eq!(bytes, [b"kept", group.as_slice()].concat());
        position = end;
    }
    assert_eq!(log.read(position, 1, &mut bytes).unwrap(), position);
    for outside in [Lsn(0), position.advance(8)] {
        let error = log.read(outside, 1, &mut bytes).unwrap_err();
        assert!(matches!(error, LogError::OutOfRange { to, .. } if to == position));
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(24))]
    /// Appends, syncs and reopens, and compares with a list of bytes. The kernel keeps what a
    /// killed process has written, so even unsynced log comes back.
    #[test]
    fn the_log_is_what_was_appended(
        steps in proptest::collection::vec((0usize..3000, 0u8..8), 1..60)
    ) {
        let directory = place();
        let mut log = open(directory.path()).unwrap();
        let mut model = Vec::new();
        for (length, action) in steps {
            let mut groups = group(1, length);
            if action == 7 {
                groups.extend(group(2, length * 20));
            }
            log.append(log.end_lsn(), &groups).unwrap();
            model.extend_from_slice(&groups);
            if action >= 5 {
                log.sync().unwrap();
                assert_eq!(read_all(&log), model);
            }
            if action == 6 {
                drop(log);
                log = open(directory.path()).unwrap();
                assert_eq!(log.end_lsn(), Lsn::FIRST.advance(model.len() as u64));
            }
        }
        drop(log);
        assert_eq!(read_all(&open(directory.path()).unwrap()), model);
    }
}
