//! Checks a tree's structure, page by page: fences, links and levels are correct, and no page is
//! lost.

use std::collections::BTreeSet;

use firn_base::{IndexId, PageId, PageNo};
use firn_engine::pages::Restart;
use firn_engine::{Engine, EngineError};
use firn_format::page::PageBuf;
use firn_format::tree::TreePage;

use crate::mirror::{SPACE, Trees};

/// Properties of a page that was visited.
struct Node {
    level: u8,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    right: PageNo,
    children: Vec<(Vec<u8>, PageNo)>,
}

/// Checks both trees, and that every page in use belongs to one of them. The trees must not change
/// meanwhile.
pub(crate) fn check(engine: &Engine, trees: Trees) -> Result<(), String> {
    let mut pages = BTreeSet::new();
    for index in [trees.table, trees.index] {
        check_tree(engine, index, &mut pages)?;
    }
    let usage = engine.forest().spaces().usage(SPACE).map_err(|error| error.to_string())?;
    let reachable = pages.len() as u64 + 2; // the space's header and its map
    match usage.used == reachable {
        true => Ok(()),
        false => Err(format!("{} pages are in use, {reachable} of them reachable", usage.used)),
    }
}

fn check_tree(engine: &Engine, index: IndexId, pages: &mut BTreeSet<PageId>) -> Result<(), String> {
    let mut first = index.root();
    loop {
        let node = look(engine, index, first)?;
        check_level(engine, index, first, pages)?;
        match node.children.first() {
            None => return Ok(()),
            Some((_, child)) => first = PageId::new(first.space, *child),
        }
    }
}

/// Walks along a level from left to right: fences join, children fit, and no page occurs twice.
fn check_level(
    engine: &Engine,
    index: IndexId,
    first: PageId,
    pages: &mut BTreeSet<PageId>,
) -> Result<(), String> {
    let level = look(engine, index, first)?.level;
    let (mut page, mut low) = (first, Vec::new());
    loop {
        let node = look(engine, index, page)?;
        let wrong = |what: &str| Err(format!("{page} of level {level}: {what}"));
        if !pages.insert(page) {
            return wrong("it is met twice");
        }
        if node.level != level {
            return wrong(&format!("it says level {}", node.level));
        }
        if node.low != low {
            return wrong("its low fence is not its left neighbour's high fence");
        }
        for (slot, (key, child)) in node.children.iter().enumerate() {
            let child = look(engine, index, PageId::new(page.space, *child))?;
            let next = node.children.get(slot + 1).map(|(key, _)| key.clone());
            let end = next.or_else(|| node.high.clone());
            if child.level + 1 != level || child.low != *key {
                return wrong(&format!("child {slot} has other fences or another level"));
            }
            // A split that is not posted yet makes the child's range shorter, never longer.
            if let (Some(end), child_high) = (end, child.high)
                && child_high.is_none_or(|high| high > end)
            {
                return wrong(&format!("child {slot} reaches too far"));
            }
        }
        match node.high {
            None => return Ok(()),
            Some(high) => (low, page) = (high, PageId::new(page.space, node.right)),
        }
    }
}

fn look(engine: &Engine, index: IndexId, page: PageId) -> Result<Node, String> {
    let pages = engine.forest().pages();
    let looked = pages.run(|| {
        let guard = pages.pool.shared(page)?;
        parse(&guard, index).map_err(|what| Restart::Fail(EngineError::Corrupt { page, what }))
    });
    looked.map_err(|error| error.to_string())
}

fn parse(page: &PageBuf, index: IndexId) -> Result<Node, String> {
    let node = TreePage::new(page).map_err(|error| error.to_string())?;
    node.verify().map_err(|error| error.to_string())?;
    if node.is_dead() || node.index() != index {
        return Err("it is dead or another tree's".to_owned());
    }
    let slots = if node.is_leaf() { 0 } else { node.slot_count() };
    Ok(Node {
        level: node.level(),
        low: node.low_fence().to_vec(),
        high: node.high_fence().map(<[u8]>::to_vec),
        right: node.right(),
        children: (0..slots).map(|slot| (node.key(slot), node.child(slot))).collect(),
    })
}
