//! Scans that skip leaves whose rows the caller holds, compared with scans that read everything.

use std::collections::HashMap;

use firn_api::rows::{Fetched, HeldLeaves, LeafVersion};
use firn_base::{Cts, Lsn, PageId};
use proptest::prelude::*;

use super::{begin, scan, snapshot_isolation};
use crate::test_support::Node;
use crate::transaction::{Cursor, Direction, IsolationLevel, KeyRange, ReadMode, Transaction};

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// The caller's copy: the rows of leaves, the first snapshot that sees them, and the leaves in the
/// order of the last scan.
#[derive(Default)]
struct Holder {
    rows: HashMap<PageId, (Lsn, Cts, Rows)>,
    order: Vec<LeafVersion>,
    passed: usize,
}

impl Holder {
    fn holds(&self, leaf: LeafVersion, snapshot: Cts) -> bool {
        let held = self.rows.get(&leaf.page);
        held.is_some_and(|(lsn, seen_from, _)| *lsn == leaf.lsn && *seen_from <= snapshot)
    }

    fn leaves_from(&self, leaf: LeafVersion, snapshot: Cts) -> Vec<LeafVersion> {
        if !self.holds(leaf, snapshot) {
            return Vec::new();
        }
        let position = self.order.iter().position(|other| *other == leaf);
        let behind = position.map_or(&[][..], |position| &self.order[position + 1..]);
        let behind = behind.iter().take_while(|leaf| self.holds(**leaf, snapshot));
        [leaf].iter().chain(behind).copied().collect()
    }

    /// The rows that a transaction sees. Rows that it fetches are kept.
    fn scan(&mut self, node: &Node, trx: &mut Transaction, range: KeyRange) -> Rows {
        let mut cursor = Cursor::new(node.index, range, Direction::Forward, ReadMode::Consistent);
        let (mut rows, mut order) = (Rows::new(), Vec::new());
        trx.ensure_snapshot();
        let snapshot = trx.snapshot().unwrap();
        let mut named: Option<Vec<LeafVersion>> = None;
        loop {
            let leaves = named.take();
            let held = match leaves.as_deref() {
                None => HeldLeaves::Unknown,
                Some([]) => HeldLeaves::No,
                Some(leaves) => HeldLeaves::Leaves(leaves),
            };
            match cursor.fetch_unless_held(trx, held).unwrap() {
                Fetched::End => break,
                Fetched::Next(leaf) => named = Some(self.leaves_from(leaf, snapshot)),
                Fetched::Held(count) => {
                    for leaf in &leaves.unwrap()[..count] {
                        rows.extend(self.rows[&leaf.page].2.iter().cloned());
                        order.push(*leaf);
                    }
                    self.passed += count;
                }
                Fetched::Rows(leaf) => {
                    let fetched: Rows = cursor
                        .rows()
                        .map(|(key, payload)| (key.to_vec(), payload.to_vec()))
                        .collect();
                    rows.extend(fetched.iter().cloned());
                    if let Some(leaf) = leaf {
                        self.rows.insert(leaf.page, (leaf.lsn, snapshot, fetched));
                        order.push(leaf);
                    }
                }
            }
        }
        self.order = order;
        rows
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(u16, u8),
    Delete(u16),
    /// Opens a snapshot for later reads.
    Open,
    Close,
    /// Reads the keys between these in one of the open snapshots.
    Read(usize, u16, u16),
    /// A transaction reads its own write, and rolls it back.
    OwnWrites(u16),
    /// The caller loses a leaf between two others.
    Lose(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || 0..400_u16;
    let step = prop_oneof![
        8 => (key(), any::<u8>()).prop_map(|(key, payload)| Step::Put(key, payload)),
        4 => key().prop_map(Step::Delete),
        1 => Just(Step::Open),
        1 => Just(Step::Close),
        4 => (any::<usize>(), key(), key()).prop_map(|(at, low, high)| Step::Read(at, low, high)),
        1 => key().prop_map(Step::OwnWrites),
        1 => any::<usize>().prop_map(Step::Lose),
    ];
    proptest::collection::vec(step, 1..120)
}

fn key_of(number: u16) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn within(low: u16, high: u16) -> KeyRange {
    use std::ops::Bound;
    match low < high {
        true => KeyRange { low: Bound::Included(key_of(low)), high: Bound::Excluded(key_of(high)) },
        false => KeyRange::all(),
    }
}

/// All rows of a range, read without the caller's copy.
fn plain(node: &Node, trx: &mut Transaction, range: &KeyRange) -> Rows {
    use std::ops::RangeBounds;
    let bounds = (range.low.as_ref().map(Vec::as_slice), range.high.as_ref().map(Vec::as_slice));
    let mut rows = scan(node, trx, Direction::Forward);
    rows.retain(|(key, _)| RangeBounds::<[u8]>::contains(&bounds, &key[..]));
    rows
}

fn check(node: &Node, holder: &mut Holder, trx: &mut Transaction, range: KeyRange) {
    let expected = plain(node, trx, &range);
    assert_eq!(holder.scan(node, trx, range), expected);
}

fn run(steps: &[Step]) {
    let node = Node::new();
    let (mut holder, mut open) = (Holder::default(), Vec::new());
    // About ten of these rows fill a leaf.
    let payload = |byte: u8| vec![byte; 1200];
    for step in steps {
        match step {
            Step::Put(key, byte) => super::put(&node, &key_of(*key), &payload(*byte)),
            Step::Delete(key) => {
                let mut trx = snapshot_isolation(&node);
                trx.delete(node.index, &key_of(*key)).unwrap();
                trx.commit().unwrap();
            }
            Step::Open => {
                let mut trx = snapshot_isolation(&node);
                trx.ensure_snapshot();
                open.push(trx);
            }
            Step::Close if !open.is_empty() => drop(open.remove(0)),
            Step::Read(at, low, high) => {
                let mut newest = begin(&node, IsolationLevel::ReadCommitted);
                let count = open.len() + 1;
                let trx = open.get_mut(at % count).unwrap_or(&mut newest);
                check(&node, &mut holder, trx, within(*low, *high));
            }
            Step::OwnWrites(key) => {
                let mut trx = snapshot_isolation(&node);
                let key = key_of(*key);
                if !trx.update(node.index, &key, &payload(0)).unwrap() {
                    trx.insert(node.index, &key, &payload(0)).unwrap();
                }
                check(&node, &mut holder, &mut trx, KeyRange::all());
                trx.rollback().unwrap();
            }
            Step::Lose(at) if !holder.order.is_empty() => {
                let count = holder.order.len();
                holder.order.remove(at % count);
            }
            Step::Close | Step::Lose(_) => {}
        }
    }
    let mut trx = snapshot_isolation(&node);
    check(&node, &mut holder, &mut trx, KeyRange::all());
    check(&node, &mut holder, &mut trx, KeyRange::all());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_held_and_what_is_fetched_are_what_is_seen(steps in steps()) {
        run(&steps);
    }
}

#[test]
fn leaves_that_have_not_changed_are_passed_over_together() {
    let node = Node::new();
    for key in 0..400 {
        super::put(&node, &key_of(key), &[1; 1200]);
    }
    let mut holder = Holder::default();
    let mut first = snapshot_isolation(&node);
    check(&node, &mut holder, &mut first, KeyRange::all());
    let leaves = holder.order.len();
    assert!(holder.passed == 0 && leaves > 20);
    check(&node, &mut holder, &mut first, KeyRange::all());
    assert_eq!(holder.passed, leaves);
    super::put(&node, &key_of(200), &[2; 1200]);
    let mut second = snapshot_isolation(&node);
    check(&node, &mut holder, &mut second, KeyRange::all());
    assert_eq!(holder.passed, leaves + leaves - 1);
    // The older snapshot does not see the rows that the caller holds of the changed leaf.
    check(&node, &mut holder, &mut first, KeyRange::all());
}
