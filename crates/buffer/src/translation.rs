//! Page to frame: a radix tree over space and page numbers, read without locks or hashing.
//!
//! ```text
//!   spaces ─► node ─► … ─► [space] ─► node ─► … ─► [page] = frame + 1, or 0: not cached
//!             1024 entries, by 10 bits of the space number, then of the page number
//! ```
//!
//! A tree is as high as its largest number needs, so a small database is two nodes deep. Nodes are
//! never freed, only reused after their space was dropped. A lookup that races with a drop reads
//! entries that now mean something else and finds no frame or the wrong one; the frame says which
//! page it caches (rule 2). Costs four bytes per page that was ever cached, until its space is
//! dropped.

use std::sync::OnceLock;

use firn_base::{PageId, PageNo, SpaceId};

use crate::sync::{AtomicU32, Ordering, RwLock};

const NODE_BITS: u32 = if cfg!(feature = "shuttle") { 2 } else { 10 };
const NODE_ENTRIES: usize = 1 << NODE_BITS;
const SEGMENT_NODES: usize = if cfg!(feature = "shuttle") { 8 } else { 256 };
const SEGMENTS: usize = if cfg!(feature = "shuttle") { 8 } else { 8192 };
/// Bits of a tree's root word that hold its height.
const HEIGHT_BITS: u32 = 3;

type Node = [AtomicU32; NODE_ENTRIES];
type Segment = Box<[Node]>;

pub(crate) struct Translation {
    spaces: AtomicU32,
    segments: Box<[OnceLock<Segment>]>,
    /// Held shared to write a page's entry, exclusively to add or remove nodes (rule 6).
    structure: RwLock<Structure>,
}

#[derive(Default)]
struct Structure {
    free: Vec<u32>,
    used: u32,
}

/// The root of a tree in one word: node and height, 0 for an empty tree.
#[derive(Clone, Copy)]
struct Root(u32);

impl Root {
    fn new(node: u32, height: u32) -> Root {
        Root((node + 1) << HEIGHT_BITS | height)
    }

    fn height(self) -> u32 {
        self.0 & ((1 << HEIGHT_BITS) - 1)
    }

    /// The link to the root node: its number plus one.
    fn link(self) -> u32 {
        self.0 >> HEIGHT_BITS
    }

    fn reaches(self, key: u32) -> bool {
        self.0 != 0 && u64::from(key) >> (NODE_BITS * self.height()) == 0
    }
}

fn entry_index(key: u32, level: u32) -> usize {
    (key >> (NODE_BITS * (level - 1))) as usize & (NODE_ENTRIES - 1)
}

impl Translation {
    pub(crate) fn new() -> Translation {
        Translation {
            spaces: AtomicU32::new(0),
            segments: (0..SEGMENTS).map(|_| OnceLock::new()).collect(),
            structure: RwLock::new(Structure::default()),
        }
    }

    /// The frame that probably caches `page`; check with the frame. Wait-free.
    pub(crate) fn lookup(&self, page: PageId) -> Option<u32> {
        self.page_entry(page)?.load(Ordering::Acquire).checked_sub(1)
    }

    /// Enters `frame` for `page`; returns the frame already entered, if there is one.
    pub(crate) fn insert(&self, page: PageId, frame: u32) -> Result<(), u32> {
        let enter = |entry: &AtomicU32| {
            entry
                .compare_exchange(0, frame + 1, Ordering::AcqRel, Ordering::Acquire)
                .map_or_else(|other| Err(other - 1), |_| Ok(()))
        };
        {
            let _shared = self.structure.read();
            if let Some(entry) = self.page_entry(page) {
                return enter(entry);
            }
        }
        let mut structure = self.structure.write();
        let root = self.entry_or_grow(&self.spaces, page.space.0, &mut structure);
        enter(self.entry_or_grow(root, page.page_no.0, &mut structure))
    }

    /// Removes `frame`, if it is entered for `page`.
    pub(crate) fn remove(&self, page: PageId, frame: u32) {
        let _shared = self.structure.read();
        if let Some(entry) = self.page_entry(page) {
            // Another thread's frame stays.
            let _ = entry.compare_exchange(frame + 1, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// The cached pages of `space`, in order, with their frames.
    pub(crate) fn pages_of(&self, space: SpaceId) -> Vec<(PageId, u32)> {
        let _shared = self.structure.read();
        let mut pages = Vec::new();
        if let Some(entry) = self.entry(&self.spaces, space.0) {
            let root = Root(entry.load(Ordering::Acquire));
            self.collect(root.link(), root.height(), 0, &mut |page_no, frame| {
                pages.push((PageId::new(space, PageNo(page_no)), frame));
            });
        }
        pages
    }

    /// Lets other spaces reuse the nodes of `space`, if none of its pages is cached any more.
    pub(crate) fn release(&self, space: SpaceId) {
        let mut structure = self.structure.write();
        let Some(entry) = self.entry(&self.spaces, space.0) else { return };
        let root = Root(entry.load(Ordering::Acquire));
        let mut cached = 0;
        self.collect(root.link(), root.height(), 0, &mut |_, _| cached += 1);
        if cached == 0 {
            entry.store(0, Ordering::Release);
            self.free_nodes(root.link(), root.height(), &mut structure);
        }
    }

    /// Bytes that the nodes use.
    pub(crate) fn size_bytes(&self) -> usize {
        self.structure.read().used as usize * size_of::<Node>()
    }

    fn node(&self, link: u32) -> Option<&Node> {
        let number = link.checked_sub(1)? as usize;
        self.segments.get(number / SEGMENT_NODES)?.get()?.get(number % SEGMENT_NODES)
    }

    fn page_entry(&self, page: PageId) -> Option<&AtomicU32> {
        let root = self.entry(&self.spaces, page.space.0)?;
        self.entry(root, page.page_no.0)
    }

    fn entry(&self, root: &AtomicU32, key: u32) -> Option<&AtomicU32> {
        let root = Root(root.load(Ordering::Acquire));
        if !root.reaches(key) {
            return None;
        }
        let mut node = self.node(root.link())?;
        for level in (2..=root.height()).rev() {
            node = self.node(node[entry_index(key, level)].load(Ordering::Acquire))?;
        }
        Some(&node[entry_index(key, 1)])
    }

    /// As [`Translation::entry`], adding what is missing.
    fn entry_or_grow<'a>(
        &'a self,
        root: &AtomicU32,
        key: u32,
        structure: &mut Structure,
    ) -> &'a AtomicU32 {
        self.grow(root, key, structure);
        let root = Root(root.load(Ordering::Acquire));
        let mut node = self.node(root.link()).expect("a grown tree has a root");
        for level in (2..=root.height()).rev() {
            let link = &node[entry_index(key, level)];
            if link.load(Ordering::Acquire) == 0 {
                link.store(self.add_node(structure) + 1, Ordering::Release);
            }
            node = self.node(link.load(Ordering::Acquire)).expect("the link was just set");
        }
        &node[entry_index(key, 1)]
    }

    /// Makes the tree high enough for `key`.
    fn grow(&self, root: &AtomicU32, key: u32, structure: &mut Structure) {
        loop {
            let old = Root(root.load(Ordering::Acquire));
            if old.reaches(key) {
                return;
            }
            let node = self.add_node(structure);
            if old.0 != 0 {
                let first = &self.node(node + 1).expect("just added")[0];
                first.store(old.link(), Ordering::Release);
            }
            root.store(Root::new(node, old.height() + 1).0, Ordering::Release);
        }
    }

    fn add_node(&self, structure: &mut Structure) -> u32 {
        if let Some(node) = structure.free.pop() {
            return node;
        }
        let node = structure.used;
        structure.used += 1;
        let segment = self.segments.get(node as usize / SEGMENT_NODES);
        segment.expect("a pool caches pages of less than 32 TiB").get_or_init(|| {
            (0..SEGMENT_NODES).map(|_| std::array::from_fn(|_| AtomicU32::new(0))).collect()
        });
        node
    }

    fn collect(&self, link: u32, level: u32, prefix: u32, visit: &mut impl FnMut(u32, u32)) {
        let Some(node) = self.node(link) else { return };
        for (index, entry) in node.iter().enumerate() {
            let word = entry.load(Ordering::Acquire);
            let key = prefix << NODE_BITS | index as u32;
            match word.checked_sub(1) {
                None => {}
                Some(frame) if level == 1 => visit(key, frame),
                Some(_) => self.collect(word, level - 1, key, visit),
            }
        }
    }

    fn free_nodes(&self, link: u32, level: u32, structure: &mut Structure) {
        let Some(node) = self.node(link) else { return };
        for entry in node {
            let word = entry.swap(0, Ordering::AcqRel);
            if word != 0 && level > 1 {
                self.free_nodes(word, level - 1, structure);
            }
        }
        structure.free.push(link - 1);
    }
}

#[cfg(test)]
mod tests;
