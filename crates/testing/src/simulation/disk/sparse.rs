//! The bytes of a file; only written blocks take memory.

use std::collections::BTreeMap;

const BLOCK_BYTES: usize = 4096;

/// The contents of a file: `length` bytes, zero where there is no block.
///
/// Invariant: every byte of a block that lies at or beyond `length` is zero.
#[derive(Debug, Clone, Default)]
pub(super) struct Sparse {
    blocks: BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>,
    length: u64,
}

impl Sparse {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Reads the bytes at `offset`; false if the contents end before `into` is full.
    pub(super) fn read(&self, into: &mut [u8], offset: u64) -> bool {
        match offset.checked_add(into.len() as u64) {
            Some(end) if end <= self.length => {}
            _ => return false,
        }
        for (block, within, range) in pieces(offset, into.len()) {
            let piece = &mut into[range];
            match self.blocks.get(&block) {
                Some(bytes) => piece.copy_from_slice(&bytes[within..within + piece.len()]),
                None => piece.fill(0),
            }
        }
        true
    }

    /// Writes at `offset`, and extends the contents if necessary.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        for (block, within, range) in pieces(offset, bytes.len()) {
            let piece = &bytes[range];
            let block = self.blocks.entry(block).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            block[within..within + piece.len()].copy_from_slice(piece);
        }
        self.length = self.length.max(offset + bytes.len() as u64);
    }

    /// Truncates the contents, or extends them with zeros.
    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            let (last, within) =
                (length / BLOCK_BYTES as u64, (length % BLOCK_BYTES as u64) as usize);
            self.blocks.split_off(&(last + 1));
            if let Some(block) = self.blocks.get_mut(&last) {
                block[within..].fill(0);
            }
        }
        self.length = length;
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length as usize];
        self.read(&mut bytes, 0);
        bytes
    }
}

/// Splits `length` bytes at `offset` at block boundaries: block, offset in it, range of the bytes.
fn pieces(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % BLOCK_BYTES as u64) as usize;
        let piece = (BLOCK_BYTES - within).min(length - done);
        done += piece;
        Some((at / BLOCK_BYTES as u64, within, done - piece..done))
    })
}
