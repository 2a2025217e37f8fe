//! `caching_sha2_password`.
//!
//! The stored string: `$A$`, the rounds divided by 1000 as three hexadecimal digits, `$`, 20
//! characters of salt, and 43 characters of SHA-256 crypt:
//!
//! ```text
//!   $A$005$ 20 bytes of salt  43 characters of ./0-9A-Za-z
//! ```
//!
//! The fast path needs a digest that only the password gives: SHA256(SHA256(password)). The server
//! remembers it once a password was right.
//!
//! ```text
//!   client → server: SHA256(password) XOR SHA256(SHA256(SHA256(password)), challenge)
//! ```
//!
//! The full path needs the password itself, over a secure transport or encrypted with the server's
//! RSA key.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use super::crypt::sha256_crypt;
use super::{equal_in_constant_time, printable, random_bytes};

const SALT_LENGTH: usize = 20;
const HASH_LENGTH: usize = 43;
const ROUNDS: u32 = 5000;

/// Most digits that are remembered. When one more comes, all are forgotten.
const MAX_REMEMBERED: usize = 100_000;

/// A stored string that no password matches. Checking it takes as long as checking any other.
pub(super) const UNMATCHED: &[u8] =
    b"$A$005$....................-------------------------------------------";

/// The stored string of a password; empty for an empty password.
#[must_use]
pub fn authentication_string(password: &[u8]) -> String {
    if password.is_empty() {
        return String::new();
    }
    let salt = random_bytes::<SALT_LENGTH>().map(printable);
    let hash = sha256_crypt(password, &salt, ROUNDS);
    let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
    format!("$A${:03X}${}{}", ROUNDS / 1000, text(&salt), text(&hash))
}

/// An authentication string taken apart.
pub(crate) struct Stored<'a> {
    rounds: u32,
    salt: &'a [u8],
    hash: &'a [u8],
}

impl<'a> Stored<'a> {
    pub(super) fn parse(authentication_string: &'a [u8]) -> Option<Stored<'a>> {
        let rest = authentication_string.strip_prefix(b"$A$")?;
        let (thousands, rest) = rest.split_at_checked(3)?;
        let thousands = u32::from_str_radix(std::str::from_utf8(thousands).ok()?, 16).ok()?;
        let (salt, hash) = rest.strip_prefix(b"$")?.split_at_checked(SALT_LENGTH)?;
        (hash.len() == HASH_LENGTH && thousands > 0).then_some(Stored {
            rounds: thousands * 1000,
            salt,
            hash,
        })
    }

    fn is_of(&self, password: &[u8]) -> bool {
        equal_in_constant_time(&sha256_crypt(password, self.salt, self.rounds), self.hash)
    }
}

/// Whether the password matches the stored string. Takes some milliseconds.
#[must_use]
pub fn verify_password(authentication_string: &[u8], password: &[u8]) -> bool {
    Stored::parse(authentication_string).is_some_and(|stored| stored.is_of(password))
}

/// SHA256(SHA256(password)): enough to check a client's response, not enough to make one.
pub(crate) fn fast_digest(password: &[u8]) -> [u8; 32] {
    Sha256::digest(Sha256::digest(password)).into()
}

/// Whether the response to `challenge` was made with the password of that digest.
pub(crate) fn verify_fast(digest: &[u8; 32], challenge: &[u8], response: &[u8]) -> bool {
    let Ok(mut hash) = <[u8; 32]>::try_from(response) else { return false };
    let mask = Sha256::new_with_prefix(digest).chain_update(challenge).finalize();
    hash.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    equal_in_constant_time(&Sha256::digest(hash), digest)
}

/// Digests of passwords that were right, by account. An entry is valid only for the stored string
/// that it was made with, so a changed password needs no notification.
#[derive(Default)]
pub(crate) struct DigestCache {
    by_account: Mutex<FxHashMap<String, Remembered>>,
}

struct Remembered {
    authentication_string: Vec<u8>,
    digest: [u8; 32],
}

impl DigestCache {
    pub(crate) fn get(&self, account: &str, authentication_string: &[u8]) -> Option<[u8; 32]> {
        let by_account = self.by_account.lock();
        let remembered = by_account.get(account)?;
        (remembered.authentication_string == authentication_string).then_some(remembered.digest)
    }

    pub(crate) fn insert(&self, account: &str, authentication_string: &[u8], password: &[u8]) {
        let remembered = Remembered {
            authentication_string: authentication_string.to_vec(),
            digest: fast_digest(password),
        };
        let mut by_account = self.by_account.lock();
        if by_account.len() >= MAX_REMEMBERED {
            by_account.clear();
        }
        by_account.insert(account.to_owned(), remembered);
    }
}
