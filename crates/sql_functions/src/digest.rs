//! Digests, checksums and compression.

use std::io::{Read as _, Write as _};

use firn_sql_types::Datum;
use firn_sql_types::error::Result;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::arguments::{bytes, fits_packet, int};
use crate::signature::{self, MAX_CHARS, bigint};
use crate::string::to_small_hex;
use crate::{Call, Function, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("MD5", 1..=1, [Bytes] => signature::text::<32>, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::Text(to_small_hex(&Md5::digest(bytes(&a[0])))))
    }),
    strict!("SHA1", 1..=1, [Bytes] => signature::text::<40>, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::Text(to_small_hex(&Sha1::digest(bytes(&a[0])))))
    }),
    lenient!("SHA2", 2..=2, [Bytes, Int] => signature::text::<128>, sha2)
        .needing(|before| before.first().is_none_or(|text| !text.is_null())),
    strict!("CRC32", 1..=1, [Bytes] => signature::unsigned, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::UInt(crc32fast::hash(bytes(&a[0])).into()))
    }),
    strict!("COMPRESS", 1..=1, [Bytes] => signature::binary::<MAX_CHARS>, compress),
    strict!("UNCOMPRESS", 1..=1, [Text] => signature::binary::<MAX_CHARS>, uncompress),
    strict!("UNCOMPRESSED_LENGTH", 1..=1, [Text] => bigint, uncompressed_length),
];

/// An unknown or missing length is warned of, and a literal one even if there is no text.
fn sha2(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let text = bytes(&arguments[0]);
    let length = if arguments[1].is_null() { -1 } else { int(&arguments[1]) };
    if arguments[0].is_null() && (arguments[1].is_null() || is_length(length)) {
        return Ok(Datum::Null);
    }
    Ok(Datum::Text(match length {
        224 => to_small_hex(&Sha224::digest(text)),
        0 | 256 => to_small_hex(&Sha256::digest(text)),
        384 => to_small_hex(&Sha384::digest(text)),
        512 => to_small_hex(&Sha512::digest(text)),
        _ => {
            call.context.warn(1583, || {
                "Incorrect parameters in the call to native function 'sha2'".to_owned()
            });
            return Ok(Datum::Null);
        }
    }))
}

fn is_length(bits: i64) -> bool {
    matches!(bits, 0 | 224 | 256 | 384 | 512)
}

/// Four bytes of length, a zlib stream, and a point if that would end with a space.
fn compress(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let plain = bytes(&arguments[0]);
    if plain.is_empty() {
        return Ok(Datum::text(""));
    }
    let Ok(length) = u32::try_from(plain.len()) else { return Ok(Datum::Null) };
    let mut encoder = ZlibEncoder::new(length.to_le_bytes().to_vec(), Compression::default());
    let finished = encoder.write_all(plain).and_then(|()| encoder.finish());
    let Ok(mut out) = finished else { return Ok(Datum::Null) };
    if out.last() == Some(&b' ') {
        out.push(b'.');
    }
    let promise = fits_packet(out.len() as u128, "compress", call)?;
    Ok(promise.map_or(Datum::Null, |_| Datum::text(out)))
}

/// The length stated by a compressed string, and its zlib stream.
fn compressed(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (length, stream) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*length) & 0x3fff_ffff, stream))
}

fn uncompress(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let bytes = bytes(&arguments[0]);
    if bytes.is_empty() {
        return Ok(Datum::text(""));
    }
    let broken = || {
        call.context.warn(1259, || "ZLIB: Input data corrupted".to_owned());
        Ok(Datum::Null)
    };
    let Some((length, stream)) = compressed(bytes) else { return broken() };
    if u64::from(length) > call.context.max_allowed_packet_bytes {
        let limit = call.context.max_allowed_packet_bytes;
        call.context.warn(1256, || {
            format!("Uncompressed data size too large; the maximum size is {limit} (probably, length of uncompressed data was corrupted)")
        });
        return Ok(Datum::Null);
    }
    let _promise = firn_base::memory::ask(length as usize)?;
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(stream).take(u64::from(length)).read_to_end(&mut plain);
    if read.is_err() || plain.len() != length as usize {
        return broken();
    }
    Ok(Datum::text(plain))
}

fn uncompressed_length(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let bytes = bytes(&arguments[0]);
    if bytes.is_empty() {
        return Ok(Datum::Int(0));
    }
    match compressed(bytes).filter(|(_, packed)| !packed.is_empty()) {
        Some((length, _)) => Ok(Datum::Int(length.into())),
        None => {
            call.context.warn(1259, || "ZLIB: Input data corrupted".to_owned());
            Ok(Datum::Int(0))
        }
    }
}
