//! Addresses of the Internet as numbers, bytes and text.

use std::net::{Ipv4Addr, Ipv6Addr};

use firn_sql_types::Datum;
use firn_sql_types::error::Result;

use crate::arguments::{bytes, incorrect_value, text, wide_int};
use crate::signature::{self, unsigned};
use crate::{Call, Function, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("INET_ATON", 1..=1, [Text] => unsigned, inet_aton),
    strict!("INET_NTOA", 1..=1, [Int] => signature::text::<15>, inet_ntoa),
    strict!("INET6_ATON", 1..=1, [Text] => signature::binary::<16>, inet6_aton),
    strict!("INET6_NTOA", 1..=1, [Any] => signature::text::<39>, inet6_ntoa),
    strict!("IS_IPV4", 1..=1, [Text] => signature::int, |a: &[Datum], _| {
        Ok(Datum::from_bool(ipv4(&text(&a[0])).is_some()))
    }),
    strict!("IS_IPV6", 1..=1, [Text] => signature::int, |a: &[Datum], _| {
        Ok(Datum::from_bool(text(&a[0]).parse::<Ipv6Addr>().is_ok()))
    }),
    lenient!("IS_IPV4_COMPAT", 1..=1, [Any] => signature::int, |a: &[Datum], _| {
        Ok(Datum::from_bool(ipv6_bytes(&a[0]).is_some_and(|address| {
            // The four bytes of :: and ::1 are not such an address.
            address[..12] == [0; 12] && u32::from_be_bytes([address[12], address[13], address[14], address[15]]) > 1
        })))
    }),
    lenient!("IS_IPV4_MAPPED", 1..=1, [Any] => signature::int, |a: &[Datum], _| {
        Ok(Datum::from_bool(ipv6_bytes(&a[0]).is_some_and(|address| {
            address[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]
        })))
    }),
];

fn ipv6_bytes(datum: &Datum) -> Option<[u8; 16]> {
    bytes(datum).try_into().ok()
}

/// Four numbers of one to three digits; leading zeros are accepted.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let digits =
            (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        *octet = part.parse().ok().filter(|_| digits)?;
    }
    parts.next().is_none().then(|| octets.into())
}

/// `a.b` is a.0.0.b, `a.b.c` is a.b.0.c.
fn inet_aton(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let address = text(&arguments[0]);
    let refuse = || Ok(incorrect_value("string", &address, "inet_aton", call));
    let parts: Option<Vec<u64>> = address
        .split('.')
        .map(|part| {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit()) && !part.is_empty();
            part.parse().ok().filter(|&octet: &u64| digits && octet < 256)
        })
        .collect();
    let Some((last, head)) = parts.as_deref().and_then(|parts| parts.split_last()) else {
        return refuse();
    };
    if head.len() > 3 {
        return refuse();
    }
    let high = head.iter().enumerate().map(|(at, octet)| octet << (24 - 8 * at)).sum::<u64>();
    Ok(Datum::UInt(high + last))
}

fn inet_ntoa(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let number = wide_int(&arguments[0]);
    Ok(match u32::try_from(number) {
        Ok(bits) => Datum::text(Ipv4Addr::from_bits(bits).to_string()),
        Err(_) => incorrect_value("integer", &number.to_string(), "inet_ntoa", call),
    })
}

fn inet6_aton(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let address = text(&arguments[0]);
    if let Some(four) = ipv4(&address) {
        return Ok(Datum::text(&four.octets()[..]));
    }
    Ok(match address.parse::<Ipv6Addr>() {
        Ok(six) => Datum::text(&six.octets()[..]),
        Err(_) => incorrect_value("string", &address, "inet6_aton", call),
    })
}

fn inet6_ntoa(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let binary = call.arguments[0].kind.is_binary();
    let address = bytes(&arguments[0]);
    if let Some(octets) = address.first_chunk::<4>().filter(|_| binary && address.len() == 4) {
        return Ok(Datum::text(Ipv4Addr::from(*octets).to_string()));
    }
    match ipv6_bytes(&arguments[0]).filter(|_| binary) {
        Some(octets) => Ok(Datum::text(ipv6_text(octets))),
        None => Ok(incorrect_value("string", &text(&arguments[0]), "inet6_ntoa", call)),
    }
}

/// MySQL shows addresses compatible with version 4 in dotted form, as the old rules did.
fn ipv6_text(octets: [u8; 16]) -> String {
    let address = Ipv6Addr::from(octets);
    let low = Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]);
    if octets[..12] == [0; 12] && low.to_bits() > 0xffff {
        return format!("::{low}");
    }
    address.to_string()
}
