//! Any sequence of changes on a valid page: a change is applied or refused as a whole, never
//! panics, and a tree page stays valid through it.

#![no_main]

use firn_base::{PageId, PageNo, SpaceId};
use firn_format::page::PageBuf;
use firn_format::redo::{Change, RawRecord, apply};
use firn_format::tree::TreePage;
use firn_fuzz::{Input, read_everything};
use libfuzzer_sys::fuzz_target;

const PAGE: PageId = PageId::new(SpaceId(7), PageNo(3));

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut page = PageBuf::boxed();
    while !input.is_empty() {
        let kind = input.u8();
        let length = usize::from(input.u16());
        let record = RawRecord { kind, page: PAGE, body: input.take(length) };
        if let Ok(change) = Change::decode(&record) {
            apply_and_check(&mut page, &change);
        }
    }
});

fn apply_and_check(page: &mut Box<PageBuf>, change: &Change<'_>) {
    let before = page.clone();
    if apply(page, PAGE, change).is_err() {
        assert!(*page == before, "a refused change left a trace: {change:?}");
        return;
    }
    let mut again = before;
    apply(&mut again, PAGE, change).expect("it was taken the first time");
    assert!(**page == *again, "a change gave two different pages: {change:?}");
    read_everything(page);
    if let Ok(tree) = TreePage::new(page) {
        tree.verify().unwrap_or_else(|violation| panic!("{violation} after {change:?}"));
    }
}
