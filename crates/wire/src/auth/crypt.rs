//! SHA-256 crypt (Drepper, "Unix crypt using SHA-256 and SHA-512", 2008) with salts of any length:
//! MySQL's salts have 20 bytes, while the paper, and with it every library, cuts at 16.

use sha2::{Digest, Sha256};

const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The hash alone, without salt and rounds, in its own base 64.
pub(super) fn sha256_crypt(password: &[u8], salt: &[u8], rounds: u32) -> [u8; 43] {
    let password_digest = digest_of_repetitions(password, password.len());
    let p = repeat_to(&password_digest, password.len());
    let mut first = initial_digest(password, salt);
    let salt_digest = digest_of_repetitions(salt, 16 + usize::from(first[0]));
    let s = repeat_to(&salt_digest, salt.len());
    for round in 0..rounds {
        first = one_round(round, &first, &p, &s);
    }
    encode(&first)
}

/// Steps 1 to 12 of the paper.
fn initial_digest(password: &[u8], salt: &[u8]) -> [u8; 32] {
    let alternate: [u8; 32] = Sha256::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize()
        .into();
    let mut hash = Sha256::new();
    hash.update(password);
    hash.update(salt);
    hash.update(repeat_to(&alternate, password.len()));
    let mut length = password.len();
    while length > 0 {
        hash.update(if length & 1 == 1 { &alternate[..] } else { password });
        length >>= 1;
    }
    hash.finalize().into()
}

fn digest_of_repetitions(bytes: &[u8], times: usize) -> [u8; 32] {
    let mut hash = Sha256::new();
    (0..times).for_each(|_| hash.update(bytes));
    hash.finalize().into()
}

fn repeat_to(digest: &[u8; 32], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

/// Step 21 of the paper.
fn one_round(round: u32, digest: &[u8; 32], p: &[u8], s: &[u8]) -> [u8; 32] {
    let odd = !round.is_multiple_of(2);
    let mut hash = Sha256::new();
    hash.update(if odd { p } else { digest });
    if !round.is_multiple_of(3) {
        hash.update(s);
    }
    if !round.is_multiple_of(7) {
        hash.update(p);
    }
    hash.update(if odd { digest } else { p });
    hash.finalize().into()
}

/// Step 22 of the paper: triples of bytes in a shuffled order, low bits first.
fn encode(digest: &[u8; 32]) -> [u8; 43] {
    let mut text = [0; 43];
    let mut put = |at: usize, word: u32, characters: usize| {
        for number in 0..characters {
            text[at + number] = ALPHABET[(word >> (6 * number) & 63) as usize];
        }
    };
    let (mut a, mut b, mut c) = (0, 10, 20);
    for triple in 0..10 {
        let word = [digest[a], digest[b], digest[c]]
            .iter()
            .fold(0, |word, &byte| word << 8 | u32::from(byte));
        put(4 * triple, word, 4);
        (a, b, c) = (c + 1, a + 1, b + 1);
    }
    put(40, u32::from(digest[31]) << 8 | u32::from(digest[30]), 3);
    text
}
