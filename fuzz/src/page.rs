//! Reading a page through every view that its kind has.

use firn_format::overflow::OverflowPage;
use firn_format::page::PageBuf;
use firn_format::space::{AllocationMap, SpaceHeader};
use firn_format::tree::TreePage;
use firn_format::undo::{UndoPage, UndoSegmentHeader};

/// Reads everything that can be read from `page`, whatever its bytes; only a panic matters.
pub fn read_everything(page: &PageBuf) {
    let _ = page.verify(page.page_id());
    let _ = SpaceHeader::read(page);
    let _ = UndoSegmentHeader::read(page);
    let _ = OverflowPage::new(page);
    if let Some(map) = AllocationMap::new(page) {
        let _ = (map.is_consistent(), map.find_free(0), map.state(u16::MAX));
    }
    if let Some(undo) = UndoPage::new(page) {
        let _ = (undo.free_bytes(), undo.records().count());
        let _ = undo.last_record().map(|offset| undo.record_at(offset).is_ok());
    }
    if let Ok(tree) = TreePage::new(page) {
        read_tree(&tree);
    }
}

fn read_tree(tree: &TreePage<'_>) {
    let _ = tree.verify();
    let _ = (tree.low_fence(), tree.high_fence(), tree.prefix(), tree.free_bytes());
    for slot in 0..tree.slot_count() {
        let key = tree.key(slot);
        let _ = (tree.value(slot), tree.search(&key), tree.covers(&key));
    }
}
