//! Trees: each page alone, and the links between pages.

use firn_base::{IndexId, PageId, PageNo};
use firn_format::page::PageBuf;
use firn_format::tree::TreePage;
use firn_format::undo::{RecordVersion, UndoOperation, UndoRecord};

use super::Checker;
use super::census::Census;

/// The fields of a page that place it in its tree.
struct Node {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    right: PageNo,
    level: u8,
    children: Vec<(Vec<u8>, PageNo)>,
    /// Records whose older versions a snapshot may need.
    unsettled: Vec<(Vec<u8>, RecordVersion)>,
    records: u64,
}

/// A level as the level above describes it.
struct Level {
    number: u8,
    first: PageNo,
    expected: Vec<(Vec<u8>, PageNo)>,
}

impl Checker<'_> {
    /// Walks a tree level by level. Calls `leaf` for each payload that is not deleted.
    pub(super) fn check_tree(
        &mut self,
        census: &mut Census,
        index: IndexId,
        mut leaf: impl FnMut(&[u8]) -> Result<(), String>,
    ) {
        self.report.trees += 1;
        let root = index.root();
        if root.space != census.space {
            return self.problem(root, "the root of a tree is in another space");
        }
        let pages = self.dictionary.system().pages();
        let level = pages.run(|| {
            let guard = pages.pool.shared(root)?;
            Ok(TreePage::new(&guard).map(|node| node.level()))
        });
        let level = match level {
            Ok(Ok(level)) => level,
            Ok(Err(error)) => return self.problem(root, error.to_string()),
            Err(error) => return self.problem(root, error.to_string()),
        };
        let expected = vec![(Vec::new(), root.page_no)];
        let mut level = Level { number: level, first: root.page_no, expected };
        while let Some(below) = self.check_level(census, index, level, &mut leaf) {
            level = below;
        }
    }

    fn check_level(
        &mut self,
        census: &mut Census,
        index: IndexId,
        level: Level,
        leaf: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Option<Level> {
        let system = self.dictionary.system();
        let (mut page_no, mut low) = (level.first, Vec::new());
        let (mut expected, mut children) = (level.expected.iter().peekable(), Vec::new());
        loop {
            let page = PageId::new(census.space, page_no);
            let is_unsettled = |version: &RecordVersion| !system.is_settled(version.trx);
            let node = self.visit(census, page, |page| look(page, index, is_unsettled, leaf))?;
            self.report.records += node.records;
            if node.level != level.number {
                self.problem(page, "the page is on another level than its links say");
                return None;
            }
            if node.low != low {
                self.problem(page, "the low fence is not its left neighbour's high fence");
            }
            match expected.next_if(|(_, child)| *child == page_no) {
                Some((separator, _)) if *separator != node.low => {
                    self.problem(page, "the separator in the parent is not the low fence");
                }
                Some(_) => {}
                None => self.report.unposted_pages += 1,
            }
            for (key, version) in &node.unsettled {
                self.check_version(page, index, key, version);
            }
            children.extend(node.children);
            match node.high {
                Some(high) => (page_no, low) = (node.right, high),
                None => break,
            }
        }
        if let Some((_, child)) = expected.next() {
            let page = PageId::new(census.space, *child);
            self.problem(page, "a parent names the page, and its left neighbour has no link to it");
        }
        let first = children.first()?.1;
        Some(Level { number: level.number - 1, first, expected: children })
    }

    /// Checks that the undo record exists behind a version that some snapshot may not see.
    fn check_version(&mut self, page: PageId, index: IndexId, key: &[u8], version: &RecordVersion) {
        let fault = match self.dictionary.system().undo_record(version.undo) {
            Err(error) => Some(error.to_string()),
            Ok(bytes) => match UndoRecord::parse(&bytes) {
                Err(damage) => Some(damage.to_string()),
                Ok(record) if record.trx != version.trx => {
                    Some("it is another transaction's".to_owned())
                }
                Ok(record) => match record.operation {
                    UndoOperation::Insert { index: of, key: at }
                    | UndoOperation::Update { index: of, key: at, .. }
                        if of == index && at == key =>
                    {
                        None
                    }
                    UndoOperation::InsertRun { index: of, first, last }
                        if of == index && (first..=last).contains(&key) =>
                    {
                        None
                    }
                    _ => Some("it is about something else".to_owned()),
                },
            },
        };
        if let Some(fault) = fault {
            let what = format!("the undo record of a version of {} is wrong: {fault}", version.trx);
            self.problem(page, what);
        }
    }
}

fn look(
    page: &PageBuf,
    index: IndexId,
    is_unsettled: impl Fn(&RecordVersion) -> bool,
    leaf: &mut dyn FnMut(&[u8]) -> Result<(), String>,
) -> Result<Node, String> {
    let tree = TreePage::new(page).map_err(|error| error.to_string())?;
    tree.verify().map_err(|violation| violation.to_string())?;
    if tree.index() != index {
        return Err(format!("it belongs to tree {}, not to {index}", tree.index()));
    }
    if tree.is_dead() {
        return Err("it was merged away, and a page still names it".to_owned());
    }
    let slots = 0..tree.slot_count();
    let mut node = Node {
        low: tree.low_fence().to_vec(),
        high: tree.high_fence().map(<[u8]>::to_vec),
        right: tree.right(),
        level: tree.level(),
        children: Vec::new(),
        unsettled: Vec::new(),
        records: 0,
    };
    if !tree.is_leaf() {
        node.children = slots.map(|slot| (tree.key(slot), tree.child(slot))).collect();
        return Ok(node);
    }
    node.records = slots.len() as u64;
    for slot in slots {
        let parsed = RecordVersion::parse(tree.value(slot));
        let (version, payload) = parsed.ok_or("a record is too short for its version")?;
        if is_unsettled(&version) {
            node.unsettled.push((tree.key(slot), version));
        }
        if !version.deleted {
            leaf(payload)?;
        }
    }
    Ok(node)
}
