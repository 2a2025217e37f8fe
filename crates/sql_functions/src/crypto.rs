//! `AES_ENCRYPT` and `AES_DECRYPT`, in the modes that `block_encryption_mode` names, and random
//! bytes.
//!
//! The key is folded to the cipher's length by XOR, as MySQL does without a key derivation
//! function.

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256, Block};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, SqlType};

use crate::arguments::{bytes, int, room};
use crate::signature::{self, MAX_CHARS, text_chars};
use crate::{Call, Function, ResolveContext, Volatility, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("AES_ENCRYPT", 2..=3, [Bytes] => encrypted, |a: &[Datum], call: &Call<'_>| {
        crypt(a, call, "aes_encrypt", encrypt)
    })
    .volatile(Volatility::Session),
    lenient!("AES_DECRYPT", 2..=3, [Bytes] => decrypted, |a: &[Datum], call: &Call<'_>| {
        crypt(a, call, "aes_decrypt", decrypt)
    })
    .volatile(Volatility::Session),
    strict!("RANDOM_BYTES", 1..=1, [Int] => signature::binary::<1024>, random_bytes)
        .volatile(Volatility::Row),
];

const BLOCK_BYTES: usize = 16;

fn encrypted(types: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    let plain = text_chars(&types[0]).min(MAX_CHARS / 4);
    SqlType::varbinary(plain * 4 / BLOCK_BYTES as u32 * BLOCK_BYTES as u32 + BLOCK_BYTES as u32)
}

fn decrypted(types: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::varbinary(text_chars(&types[0]))
}

/// How blocks are chained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chaining {
    Ecb,
    Cbc,
    Cfb8,
    Cfb128,
    Ofb,
}

enum Cipher {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Box<Aes256>),
}

impl Cipher {
    fn new(key: &[u8], key_bytes: usize) -> Cipher {
        let mut folded = [0_u8; 32];
        for (at, byte) in key.iter().enumerate() {
            folded[at % key_bytes] ^= byte;
        }
        match key_bytes {
            24 => Cipher::Aes192(Aes192::new(GenericArray::from_slice(&folded[..24]))),
            32 => Cipher::Aes256(Box::new(Aes256::new(GenericArray::from_slice(&folded)))),
            _ => Cipher::Aes128(Aes128::new(GenericArray::from_slice(&folded[..16]))),
        }
    }

    fn encrypt(&self, block: &mut Block) {
        match self {
            Cipher::Aes128(aes) => aes.encrypt_block(block),
            Cipher::Aes192(aes) => aes.encrypt_block(block),
            Cipher::Aes256(aes) => aes.encrypt_block(block),
        }
    }

    fn decrypt(&self, block: &mut Block) {
        match self {
            Cipher::Aes128(aes) => aes.decrypt_block(block),
            Cipher::Aes192(aes) => aes.decrypt_block(block),
            Cipher::Aes256(aes) => aes.decrypt_block(block),
        }
    }
}

/// Key length in bytes and chaining of `aes-128-ecb` and the like.
fn parse_mode(mode: &str) -> Option<(usize, Chaining)> {
    let (bits, chaining) = mode.strip_prefix("aes-")?.split_once('-')?;
    let key_bytes = match bits {
        "128" => 16,
        "192" => 24,
        "256" => 32,
        _ => return None,
    };
    let chaining = match chaining {
        "ecb" => Chaining::Ecb,
        "cbc" => Chaining::Cbc,
        "cfb8" => Chaining::Cfb8,
        "cfb128" => Chaining::Cfb128,
        "ofb" => Chaining::Ofb,
        _ => return None,
    };
    Some((key_bytes, chaining))
}

type Crypt = fn(&Cipher, Chaining, [u8; BLOCK_BYTES], &[u8]) -> Option<Vec<u8>>;

fn crypt(arguments: &[Datum], call: &Call<'_>, name: &str, crypt: Crypt) -> Result<Datum> {
    let mode = call.context.session.block_encryption_mode().to_ascii_lowercase();
    let Some((key_bytes, chaining)) = parse_mode(&mode) else {
        return Err(SqlError::not_supported(&mode));
    };
    let vector = initial_vector(arguments, call, name, chaining)?;
    if arguments[..2].iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let (text, cipher) = (bytes(&arguments[0]), Cipher::new(bytes(&arguments[1]), key_bytes));
    let _promise = room(text.len() + BLOCK_BYTES, call)?;
    Ok(crypt(&cipher, chaining, vector, text).map_or(Datum::Null, Datum::text))
}

fn initial_vector(
    arguments: &[Datum],
    call: &Call<'_>,
    name: &str,
    chaining: Chaining,
) -> Result<[u8; BLOCK_BYTES]> {
    let vector = arguments.get(2);
    if chaining == Chaining::Ecb {
        if vector.is_some() {
            call.context.warn(1618, || "<IV> option ignored".to_owned());
        }
        return Ok([0; BLOCK_BYTES]);
    }
    let Some(vector) = vector else {
        let message = format!("Incorrect parameter count in the call to native function '{name}'");
        return Err(SqlError::new(1582, message));
    };
    bytes(vector).first_chunk::<BLOCK_BYTES>().copied().ok_or_else(|| {
        let message = format!(
            "The initialization vector supplied to {name} is too short. Must be at least {BLOCK_BYTES} bytes long"
        );
        SqlError::new(1882, message)
    })
}

fn xor(a: &mut [u8], b: &[u8]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
}

fn padded(plain: &[u8]) -> Vec<u8> {
    let padding = BLOCK_BYTES - plain.len() % BLOCK_BYTES;
    let mut out = plain.to_vec();
    out.resize(plain.len() + padding, padding as u8);
    out
}

fn encrypt(
    cipher: &Cipher,
    chaining: Chaining,
    vector: [u8; BLOCK_BYTES],
    plain: &[u8],
) -> Option<Vec<u8>> {
    if !matches!(chaining, Chaining::Ecb | Chaining::Cbc) {
        return Some(stream(cipher, chaining, vector, plain, true));
    }
    let mut out = padded(plain);
    let mut previous = vector;
    for block in out.chunks_exact_mut(BLOCK_BYTES) {
        if chaining == Chaining::Cbc {
            xor(block, &previous);
        }
        cipher.encrypt(GenericArray::from_mut_slice(block));
        previous.copy_from_slice(block);
    }
    Some(out)
}

/// `None` if the length or the padding is wrong.
fn decrypt(
    cipher: &Cipher,
    chaining: Chaining,
    vector: [u8; BLOCK_BYTES],
    encrypted: &[u8],
) -> Option<Vec<u8>> {
    if !matches!(chaining, Chaining::Ecb | Chaining::Cbc) {
        return Some(stream(cipher, chaining, vector, encrypted, false));
    }
    if encrypted.is_empty() || !encrypted.len().is_multiple_of(BLOCK_BYTES) {
        return None;
    }
    let mut out = encrypted.to_vec();
    let mut previous = vector;
    for (block, original) in
        out.chunks_exact_mut(BLOCK_BYTES).zip(encrypted.chunks_exact(BLOCK_BYTES))
    {
        cipher.decrypt(GenericArray::from_mut_slice(block));
        if chaining == Chaining::Cbc {
            xor(block, &previous);
        }
        previous.copy_from_slice(original);
    }
    let padding = usize::from(*out.last()?);
    let whole = (1..=BLOCK_BYTES).contains(&padding);
    let kept = out.len() - padding.min(out.len());
    if !whole || out[kept..].iter().any(|&byte| usize::from(byte) != padding) {
        return None;
    }
    out.truncate(kept);
    Some(out)
}

/// The modes that use the cipher as a stream: the text keeps its length.
fn stream(
    cipher: &Cipher,
    chaining: Chaining,
    mut register: [u8; BLOCK_BYTES],
    text: &[u8],
    encrypting: bool,
) -> Vec<u8> {
    let step = if chaining == Chaining::Cfb8 { 1 } else { BLOCK_BYTES };
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.chunks(step) {
        let mut key = Block::from(register);
        cipher.encrypt(&mut key);
        let mut made = chunk.to_vec();
        xor(&mut made, &key);
        let cipher_text = if encrypting { &made[..] } else { chunk };
        match chaining {
            Chaining::Ofb => register = key.into(),
            Chaining::Cfb8 => {
                register.rotate_left(1);
                register[BLOCK_BYTES - 1] = cipher_text[0];
            }
            _ => register[..cipher_text.len()].copy_from_slice(cipher_text),
        }
        out.extend_from_slice(&made);
    }
    out
}

fn random_bytes(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    const MOST_BYTES: i64 = 1024;
    let count = int(&arguments[0]);
    if !(1..=MOST_BYTES).contains(&count) {
        return Err(SqlError::new(1690, "length value is out of range in 'random_bytes'"));
    }
    let words = std::iter::repeat_with(|| call.context.session.random_u64().to_le_bytes());
    Ok(Datum::text(words.flatten().take(count as usize).collect::<Vec<u8>>()))
}
