use std::collections::HashSet;

use super::{Inode, SECTOR_BYTES};
use crate::random::Random;

fn contents(inode: &Inode) -> Vec<u8> {
    let mut bytes = vec![0; inode.length() as usize];
    assert!(inode.read(&mut bytes, 0));
    bytes
}

#[test]
fn what_was_synced_survives_and_what_was_not_may_go_either_way() {
    let mut outcomes = HashSet::new();
    for seed in 0..200 {
        let mut inode = Inode::default();
        inode.write(b"synced", 0);
        inode.sync(inode.mark());
        inode.write(b"S", 0);
        inode.lose_power(&Random::new(seed));
        outcomes.insert(contents(&inode));
    }
    assert_eq!(outcomes, HashSet::from([b"synced".to_vec(), b"Synced".to_vec()]));
}

#[test]
fn a_sector_is_written_whole_and_sectors_survive_on_their_own() {
    let (old, new) = (vec![1; 2 * SECTOR_BYTES], vec![2; 2 * SECTOR_BYTES]);
    let mut outcomes = HashSet::new();
    for seed in 0..200 {
        let mut inode = Inode::default();
        inode.write(&old, 0);
        inode.sync(inode.mark());
        inode.write(&new, 0);
        inode.lose_power(&Random::new(seed));
        let bytes = contents(&inode);
        let sectors: Vec<&[u8]> = bytes.chunks(SECTOR_BYTES).collect();
        assert!(sectors.iter().all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        outcomes.insert((sectors[0][0], sectors[1][0]));
    }
    assert_eq!(outcomes, HashSet::from([(1, 1), (1, 2), (2, 1), (2, 2)]));
}

#[test]
fn a_sync_covers_what_came_before_its_call_only() {
    let mut lost = 0;
    for seed in 0..100 {
        let mut inode = Inode::default();
        inode.write(b"a", 0);
        let mark = inode.mark();
        inode.write(b"b", 1);
        inode.sync(mark);
        inode.lose_power(&Random::new(seed));
        let bytes = contents(&inode);
        assert_eq!(bytes[0], b'a');
        lost += usize::from(bytes.len() == 1 || bytes[1] == 0);
    }
    assert!(lost > 20, "{lost} of 100");
}

#[test]
fn a_later_sync_does_not_bring_back_what_a_failed_one_lost() {
    let mut lost = 0;
    for seed in 0..100 {
        let mut inode = Inode::default();
        inode.write(b"lost?", 0);
        inode.fail_sync(inode.mark(), &Random::new(seed));
        inode.sync(inode.mark());
        inode.lose_power(&Random::new(seed + 1));
        lost += usize::from(contents(&inode) != b"lost?");
    }
    assert!(lost > 20, "{lost} of 100");
}

#[test]
fn lengths_survive_apart_from_contents() {
    let mut lengths = HashSet::new();
    for seed in 0..300 {
        let mut inode = Inode::default();
        inode.allocate(2000);
        inode.write(b"x", 2500);
        inode.set_length(10);
        inode.lose_power(&Random::new(seed));
        lengths.insert(inode.length());
    }
    assert_eq!(lengths, HashSet::from([0, 2000, 2501, 10]));
}

#[test]
fn cut_and_extended_again_it_shows_zeros() {
    let mut inode = Inode::default();
    inode.write(&[7; 10_000], 0);
    inode.set_length(3);
    inode.set_length(10_000);
    inode.sync(inode.mark());
    inode.lose_power(&Random::new(1));
    let bytes = contents(&inode);
    assert!(bytes[..3].iter().all(|byte| *byte == 7) && bytes[3..].iter().all(|byte| *byte == 0));
}

/// A file as a list of bytes, with the states of each sector since the last sync.
struct Model {
    bytes: Vec<u8>,
    states: Vec<HashSet<Vec<u8>>>,
}

impl Model {
    fn sectors(&self) -> Vec<Vec<u8>> {
        self.bytes.chunks(SECTOR_BYTES).map(<[u8]>::to_vec).collect()
    }

    fn write(&mut self, bytes: &[u8], offset: usize) {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        for (states, sector) in self.states.iter_mut().zip(self.bytes.chunks(SECTOR_BYTES)) {
            states.insert(sector.to_vec());
        }
    }

    fn sync(&mut self) {
        self.states = self.sectors().into_iter().map(|sector| HashSet::from([sector])).collect();
    }
}

#[test]
fn every_sector_holds_one_of_its_states_since_the_last_sync() {
    const LENGTH: usize = 20 * SECTOR_BYTES;
    for seed in 0..300 {
        let random = Random::new(seed);
        let (mut inode, mut model) =
            (Inode::default(), Model { bytes: vec![0; LENGTH], states: Vec::new() });
        inode.allocate(LENGTH as u64);
        inode.sync(inode.mark());
        model.sync();
        for number in 1..=random.between(1, 30) {
            let offset = random.index(LENGTH);
            let bytes = vec![number as u8; random.index(LENGTH - offset).min(3000)];
            inode.write(&bytes, offset as u64);
            model.write(&bytes, offset);
            if random.chance(0.2) {
                inode.sync(inode.mark());
                model.sync();
            }
            assert_eq!(contents(&inode), model.bytes, "seed {seed}");
        }
        inode.lose_power(&random);
        model.bytes = contents(&inode);
        for (sector, states) in model.sectors().iter().zip(&model.states) {
            assert!(states.contains(sector), "seed {seed}");
        }
    }
}
