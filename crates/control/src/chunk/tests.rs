use super::*;

fn places(range: Range<u32>) -> Range<PageNo> {
    PageNo(range.start)..PageNo(range.end)
}

#[test]
fn a_node_drops_what_other_chunks_have() {
    let narrowed = |held: Range<u32>, own: Range<u32>, others: &[(u32, u32)]| {
        let others = others.iter().map(|(first, end)| places(*first..*end));
        narrowed(&places(held), &places(own), others).map(|kept| kept.start.0..kept.end.0)
    };
    assert_eq!(narrowed(0..8, 0..4, &[(4, 8)]), Some(0..4));
    assert_eq!(narrowed(0..8, 0..8, &[]), None, "it has what it should");
    assert_eq!(narrowed(0..8, 0..4, &[]), None, "nobody serves the rest");
    assert_eq!(narrowed(0..8, 0..4, &[(4, 6), (7, 8)]), None, "nor all of it");
    assert_eq!(narrowed(0..8, 2..4, &[(9, 12), (4, 8)]), None, "nor what is before");
    assert_eq!(narrowed(0..8, 0..2, &[(4, 8), (2, 4)]), Some(0..2), "it was cut twice meanwhile");
    assert_eq!(narrowed(0..4, 0..8, &[]), None, "what it lacks does not come by itself");
    assert_eq!(narrowed(0..4, 2..6, &[(0, 2)]), None);
}

#[test]
fn a_chunk_is_cut_in_the_middle_of_its_places() {
    let chunk = |first: u32, end: u32| Chunk {
        space: EVERY_SPACE,
        first: PageNo(first),
        end: PageNo(end),
        group: GroupId(1),
        epoch: Epoch(1),
        bytes: 0,
        pages: 0,
        replicas: BTreeMap::new(),
        operation: None,
    };
    assert_eq!(chunk(0, u32::MAX).middle(), Some(PageNo(u32::MAX / 2)));
    assert_eq!(chunk(10, 13).middle(), Some(PageNo(11)));
    assert_eq!(chunk(10, 11).middle(), None);
    assert!(chunk(0, u32::MAX).is_everything() && !chunk(1, u32::MAX).is_everything());
}
