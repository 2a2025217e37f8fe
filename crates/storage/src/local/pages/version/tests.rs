use firn_format::page::PageBuf;

use super::super::image_buffers::PageStock;
use super::*;

fn version(lsn: u64, since: u64, is_first: bool) -> Version {
    Version { lsn: Lsn(lsn), since: Lsn(since), slot: SlotNo(lsn as u32), is_first }
}

/// Images as of 200 and 400; groups 100–200, 208–304, 304–400, 504–600.
fn view() -> PageView {
    PageView {
        versions: Versions::from_slice(&[version(200, 100, true), version(400, 208, false)]),
        pending: Some(Pending { first: Lsn(504), last: Lsn(600), is_new: false }),
        has_base: false,
        queued: None,
    }
}

fn queued(lsn: u64) -> Option<Arc<StockedPage>> {
    let mut image = PageBuf::zeroed();
    image.set_lsn(Lsn(lsn));
    Some(Arc::new(Arc::<PageStock>::default().copy(&image)))
}

/// The base and the part of the log that a read needs, in short form.
fn planned(view: &PageView, wanted: Option<u64>, usable: usize) -> String {
    let plan = match view.plan(wanted.map(Lsn), usable) {
        Ok(plan) => plan,
        Err(reason) => return format!("{reason:?}"),
    };
    let base = match plan.base {
        Base::Nothing => "nothing".to_owned(),
        Base::Queued(image) => format!("queued {}", image.lsn()),
        Base::Stored(index, version) => format!("v{index} {}", version.lsn),
    };
    match plan.replay {
        None => base,
        Some(Replay { from, to, reaches_end: false }) => format!("{base} + {from}..{to}"),
        Some(Replay { from, to, reaches_end: true }) => format!("{base} + {from}..{to} end"),
    }
}

#[test]
fn the_newest_version_is_the_newest_image_and_what_is_pending() {
    assert_eq!(planned(&view(), None, 2), "v1 400 + 504..600 end");
    assert_eq!(planned(&PageView { pending: None, ..view() }, None, 2), "v1 400");
}

#[test]
fn the_past_is_the_image_before_it_and_the_log_in_between() {
    let past = |wanted| planned(&view(), Some(wanted), 2);
    assert_eq!(past(96), "Absent");
    assert_eq!(past(104), "nothing + 100..104");
    assert_eq!(past(200), "v0 200");
    assert_eq!(past(208), "v0 200");
    assert_eq!(past(304), "v0 200 + 208..304");
    assert_eq!(past(400), "v1 400");
    assert_eq!(past(504), "v1 400");
    assert_eq!(past(552), "v1 400 + 504..552");
    assert_eq!(past(5000), "v1 400 + 504..600 end");
}

#[test]
fn a_damaged_image_is_replaced_by_the_one_before_it_and_more_log() {
    assert_eq!(planned(&view(), None, 1), "v0 200 + 208..600 end");
    assert_eq!(planned(&view(), None, 0), "nothing + 100..600 end");
    assert_eq!(planned(&PageView { pending: None, ..view() }, None, 1), "v0 200 + 208..400 end");
    let mut pruned = view();
    pruned.versions.remove(0);
    assert_eq!(planned(&pruned, None, 0), "TooOld");
    assert_eq!(planned(&pruned, Some(304), 1), "TooOld");
}

#[test]
fn a_queued_image_serves_reads_at_and_after_its_position() {
    let view = PageView { queued: queued(552), ..view() };
    assert_eq!(planned(&view, None, 2), "queued 552 + 552..600 end");
    assert_eq!(planned(&view, Some(552), 2), "queued 552");
    assert_eq!(planned(&view, Some(544), 2), "v1 400 + 504..544");
    let ahead = PageView { queued: queued(800), ..view };
    assert_eq!(planned(&ahead, None, 2), "queued 800");
    assert_eq!(ahead.newest_known(), Lsn(800));
}

#[test]
fn a_page_without_images_comes_from_the_log_alone() {
    let pending = Some(Pending { first: Lsn(8), last: Lsn(80), is_new: true });
    let view = PageView { pending, ..PageView::default() };
    assert_eq!(planned(&view, None, 0), "nothing + 8..80 end");
    assert_eq!(planned(&view, Some(8), 0), "Absent");
    assert_eq!(planned(&PageView::default(), None, 0), "Absent");
}

#[test]
fn pruning_keeps_the_newest_version_at_or_before_the_horizon() {
    let pruned = |horizon| {
        let mut versions = view().versions;
        let mut freed = Vec::new();
        prune(&mut versions, Lsn(horizon), &mut freed);
        (versions.len(), freed.iter().map(|slot| slot.0).collect::<Vec<u32>>())
    };
    assert_eq!(pruned(0), (2, vec![]));
    assert_eq!(pruned(392), (2, vec![]));
    assert_eq!(pruned(400), (1, vec![200]));
    assert_eq!(pruned(u64::MAX), (1, vec![200]));
}
