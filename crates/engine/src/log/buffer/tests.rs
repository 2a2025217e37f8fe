use super::*;
use firn_base::{PageId, PageNo, SpaceId};
use firn_format::redo::{Group, GroupBuilder};

const CAPACITY: usize = 4 * MAX_GROUP_BYTES;

fn group(tag: u32, body_bytes: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    builder.push(1, PageId::new(SpaceId(tag), PageNo(0)), |body| {
        body.resize(body.len() + body_bytes, 7)
    });
    builder.finish().to_vec()
}

fn admit(buffer: &LogBuffer) -> Admission<'_> {
    loop {
        if let Some(admission) = buffer.try_admit(1024) {
            return admission;
        }
        buffer.wait_for_room(1024, Duration::from_secs(1));
    }
}

#[test]
fn groups_come_out_in_the_order_of_their_places() {
    let buffer = LogBuffer::new(Lsn::FIRST, CAPACITY);
    let first = buffer.append(admit(&buffer), &group(1, 5));
    let second = buffer.append(admit(&buffer), &group(2, 50));
    assert_eq!((first.start, first.end), (Lsn::FIRST, second.start));
    let mut taken = Vec::new();
    assert_eq!(buffer.take(&mut taken, usize::MAX), Lsn::FIRST);
    assert_eq!(taken, [group(1, 5), group(2, 50)].concat());
    taken.clear();
    assert_eq!(buffer.take(&mut taken, usize::MAX), second.end);
    assert!(taken.is_empty());
}

#[test]
fn nothing_behind_a_hole_is_taken() {
    let buffer = LogBuffer::new(Lsn::FIRST, CAPACITY);
    let hole = buffer.reserved.fetch_add(64, Ordering::AcqRel);
    buffer.append(admit(&buffer), &group(1, 5));
    let mut taken = Vec::new();
    assert_eq!(buffer.take(&mut taken, usize::MAX), Lsn(hole));
    assert!(taken.is_empty());
}

#[test]
fn what_does_not_fit_is_not_admitted() {
    let buffer = LogBuffer::new(Lsn::FIRST, CAPACITY);
    let held: Vec<_> = std::iter::from_fn(|| buffer.try_admit(MAX_GROUP_BYTES)).take(10).collect();
    assert_eq!(held.len(), 4);
    drop(held);
    assert!(buffer.try_admit(MAX_GROUP_BYTES).is_some());
}

#[test]
fn many_threads_fill_the_ring_many_times_over() {
    const THREADS: u32 = 4;
    const GROUPS: usize = 4_000;
    let buffer = LogBuffer::new(Lsn::FIRST, CAPACITY);
    let mut log = Vec::new();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let buffer = &buffer;
            scope.spawn(move || {
                for number in 0..GROUPS {
                    buffer.append(admit(buffer), &group(thread, number % 300));
                }
            });
        }
        let mut groups = 0;
        while groups < THREADS as usize * GROUPS {
            let before = log.len();
            buffer.take(&mut log, before + 10_000);
            let mut rest = &log[before..];
            while !rest.is_empty() {
                rest = &rest[Group::parse(rest).unwrap().length_bytes() as usize..];
                groups += 1;
            }
        }
    });
    let mut next = [0; THREADS as usize];
    let mut rest = &log[..];
    while !rest.is_empty() {
        let parsed = Group::parse(rest).unwrap();
        let record = parsed.records().next().unwrap().unwrap();
        let thread = record.page.space.0 as usize;
        assert_eq!(record.body.len(), next[thread] % 300, "a thread's groups keep their order");
        next[thread] += 1;
        rest = &rest[parsed.length_bytes() as usize..];
    }
    assert_eq!(next, [GROUPS; THREADS as usize]);
}
