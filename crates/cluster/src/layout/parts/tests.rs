use super::*;

const TEXT: &str = r#"cluster = "000102030405060708090a0b0c0d0e0f"
page_bounds = [1000, 4000]
extent_pages = 64
page_nodes = [[1], [1, 2], [2]]

[[node]]
number = 1
name = "node-1"
address = "127.0.0.1:7401"
client_address = "127.0.0.1:3307"
roles = ["database", "log", "pages", "control"]

[[node]]
number = 2
name = "pages-2"
address = "127.0.0.1:7402"
roles = ["pages"]
"#;

fn places(part: &HeldPart) -> Range<u32> {
    part.first.0..part.end.0
}

#[test]
fn a_layout_says_where_parts_begin() {
    let layout = Layout::parse(TEXT).unwrap();
    assert_eq!(layout.to_text(), TEXT);
    let part = |chunk| layout.held_part(ChunkId(chunk)).unwrap();
    assert_eq!([1, 2, 3].map(|chunk| places(&part(chunk))), [0..1000, 1000..4000, 4000..u32::MAX]);
    assert!(!part(1).is_alone && part(1).extents.pages == 64);
    let refused = |bounds: &str| {
        let text = TEXT.replace("[1000, 4000]", bounds);
        Layout::parse(&text).unwrap_err()
    };
    for bounds in ["[4000, 1000]", "[0, 1000]", "[1000, 4294967295]", "[]", "7", "[\"a\"]"] {
        let error = refused(bounds);
        assert!(error.line == 2 && error.reason.contains("numbers that go up"), "{error}");
    }
    assert!(refused("[1000]").reason.contains("3 lists, and page_chunks is 2"));
    let other = TEXT.replacen("page_bounds", "page_chunks = 4\npage_bounds", 1);
    let error = Layout::parse(&other).unwrap_err();
    assert!(error.reason.contains("page_nodes has 3 lists, and page_chunks is 4"), "{error}");
    let other = other.replacen("[2]]", "[2], [2]]", 1);
    let error = Layout::parse(&other).unwrap_err();
    assert!(error.reason.contains("page_bounds has 3 parts, and page_chunks is 4"), "{error}");
}

#[test]
fn the_parts_of_a_text_are_in_the_order_of_their_places() {
    let mut layout = Layout::parse(TEXT).unwrap();
    let upper = layout.chunks.remove(&ChunkId(2)).unwrap();
    layout.chunks.insert(ChunkId(9), upper);
    assert_eq!(layout.to_text(), TEXT, "the numbers of chunks do not matter");
}

#[test]
fn a_node_keeps_what_nobody_else_has() {
    let mut layout = Layout::parse(TEXT).unwrap();
    let held = HeldPart { end: PageNo(4000), ..layout.held_part(ChunkId(1)).unwrap() };
    let kept = layout.kept_part(ChunkId(1), &held).unwrap();
    assert_eq!(places(&kept), 0..1000);
    assert!(held.covers(&kept) && !kept.covers(&held));
    assert_eq!(layout.kept_part(ChunkId(1), &kept), None);
    assert_eq!(layout.kept_part(ChunkId(7), &held), None, "no such chunk is known");
    layout.chunks.get_mut(&ChunkId(2)).unwrap().nodes.clear();
    assert_eq!(layout.kept_part(ChunkId(1), &held), None, "the rest is nowhere in service");
}

#[test]
fn all_pages_are_everything_however_they_lie() {
    let all = |pages| {
        let (first, end, extents) = (PageNo(0), PageNo::NONE, Extents { pages });
        HeldPart { first, end, extents, is_alone: true }
    };
    let half = HeldPart { first: PageNo(u32::MAX / 2), ..all(8) };
    assert!(all(9).covers(&half) && all(9).covers(&all(8)));
    assert!(!half.covers(&all(8)));
    assert!(!half.covers(&HeldPart { extents: Extents { pages: 9 }, ..half }));
}
