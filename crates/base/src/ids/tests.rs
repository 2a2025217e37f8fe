use proptest::prelude::*;

use super::{Lsn, PageId, PageNo, SpaceId};

proptest! {
    #[test]
    fn a_page_id_survives_its_word_and_keeps_its_order(a: (u32, u32), b: (u32, u32)) {
        let [a, b] = [a, b].map(|(space, page)| PageId::new(SpaceId(space), PageNo(page)));
        prop_assert_eq!(PageId::from_u64(a.to_u64()), a);
        prop_assert_eq!(a.cmp(&b), a.to_u64().cmp(&b.to_u64()));
    }

    #[test]
    fn since_undoes_advance(start in 0..u64::MAX / 2, bytes in 0..u64::MAX / 2) {
        prop_assert_eq!(Lsn(start).advance(bytes).since(Lsn(start)), bytes);
    }
}

#[test]
#[should_panic(expected = "overflow")]
fn a_distance_to_a_later_position_is_refused() {
    let _ = Lsn(8).since(Lsn(16));
}
