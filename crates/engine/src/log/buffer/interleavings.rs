//! The ring under many orders of steps.

use std::sync::Arc;

use firn_base::{PageId, PageNo, SpaceId};
use firn_format::redo::{Group, GroupBuilder};
use shuttle::thread;

use super::*;

fn group(tag: u32, words: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let page = PageId::new(SpaceId(tag), PageNo(0));
    builder.push(1, page, |body| body.resize(body.len() + words * 8 + 4, tag as u8));
    builder.finish().to_vec()
}

/// Threads append, one takes: what is taken are whole groups, each once.
fn appended_groups_are_taken_whole() {
    const THREADS: u32 = 3;
    let buffer = Arc::new(LogBuffer::new(Lsn::FIRST, MIN_CAPACITY_BYTES));
    let appenders: Vec<_> = (1..=THREADS)
        .map(|tag| {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || {
                let admission = loop {
                    if let Some(admission) = buffer.try_admit(80) {
                        break admission;
                    }
                    thread::yield_now();
                };
                buffer.append(admission, &group(tag, tag as usize));
            })
        })
        .collect();
    let mut log = Vec::new();
    let mut tags = Vec::new();
    while tags.len() < THREADS as usize {
        let before = log.len();
        buffer.take(&mut log, usize::MAX);
        let mut rest = &log[before..];
        while !rest.is_empty() {
            let parsed = Group::parse(rest).expect("a whole group");
            let record = parsed.records().next().expect("a record").expect("a whole record");
            let tag = record.page.space.0;
            assert!(record.body.iter().all(|byte| u32::from(*byte) == tag), "a torn group");
            tags.push(tag);
            rest = &rest[parsed.length_bytes() as usize..];
        }
        thread::yield_now();
    }
    tags.sort_unstable();
    assert_eq!(tags, [1, 2, 3]);
    appenders.into_iter().for_each(|appender| appender.join().expect("no panic"));
}

#[test]
fn appended_groups_are_taken_whole_in_any_order() {
    shuttle::check_random(appended_groups_are_taken_whole, 3_000);
    shuttle::check_pct(appended_groups_are_taken_whole, 3_000, 3);
}
