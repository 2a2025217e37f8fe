//! Text in other character sets and under other collations: `CONVERT … USING`, `COLLATE`, `CHAR … USING`.
//!
//! The name of the set or collation is the last argument, a literal.

use crate::collation::{self, Charset};
use crate::error::{Result, SqlError};
use crate::functions::arguments::{bytes, text, word};
use crate::functions::signature::{Want, text_chars};
use crate::functions::{Call, Function, ResolveContext, Signature, lenient, strict};
use crate::types::{Coercibility, Datum, Octets, SqlType};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("CONVERT USING", 2..=2, resolve_convert, convert).shaped_by(&[1]),
    strict!("COLLATE", 2..=2, resolve_collate, |a: &[Datum], _: &Call<'_>| Ok(a[0].clone()))
        .shaped_by(&[1]),
    lenient!("CHAR USING", 2..=usize::MAX, resolve_char, char_using),
];

/// The character set that a literal names; error 1115 if there is none.
fn named_charset(context: &ResolveContext<'_>, at: usize) -> Result<Charset> {
    let name = context.constant(at).map(text).unwrap_or_default();
    Charset::by_name(&name)
        .ok_or_else(|| SqlError::new(1115, format!("Unknown character set: '{name}'")))
}

fn of_charset(charset: Charset, chars: u32) -> SqlType {
    match charset {
        Charset::Binary => SqlType::varbinary(chars),
        charset => SqlType::varchar(chars, charset.default_collation()),
    }
}

fn resolve_convert(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let charset = named_charset(context, 1)?;
    let arguments = vec![Want::Text.of(&types[0], context), Want::Text.of(&types[1], context)];
    let result = of_charset(charset, text_chars(&arguments[0]));
    let result = result.with_coercibility(Coercibility::Implicit);
    Ok(Signature { arguments, result })
}

fn charset_of(ty: &SqlType) -> Charset {
    ty.collation().map_or(Charset::Utf8mb4, |id| collation::get(id).charset)
}

/// Bytes become text, text becomes bytes, and characters that the new set has not become `?`.
fn convert(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let (from, to) = (charset_of(&call.arguments[0]), charset_of(call.result));
    let source = bytes(&a[0]);
    Ok(match (from, to) {
        (Charset::Binary, to) => decode(source, to, call),
        (from, Charset::Binary) => Datum::text(&*from.encode(source)),
        (_, to) => {
            let replaced = |c: char| if to.has(c) { c } else { '?' };
            Datum::text(text(&a[0]).chars().map(replaced).collect::<String>())
        }
    })
}

/// Bytes as text of a set; NULL with a warning when they are none.
fn decode(source: &[u8], charset: Charset, call: &Call<'_>) -> Datum {
    if let Some(decoded) = charset.decode(source) {
        return Datum::text(&*decoded);
    }
    call.context.warn(1300, || {
        let shown: String = source.iter().take(6).map(|byte| format!("\\x{byte:02X}")).collect();
        format!("Invalid {} character string: '{shown}'", charset.name())
    });
    Datum::Null
}

fn resolve_collate(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let name = context.constant(1).map(text).unwrap_or_default();
    let collation = collation::by_name(&name)
        .ok_or_else(|| SqlError::new(1273, format!("Unknown collation: '{name}'")))?;
    let source = Want::Text.of(&types[0], context);
    let charset = charset_of(&source);
    if charset != collation.charset && source.kind != crate::types::TypeKind::Null {
        let (collation, charset) = (collation.name, charset.name());
        return Err(SqlError::new(
            1253,
            format!("COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'"),
        ));
    }
    let result = match collation.charset {
        Charset::Binary => SqlType::varbinary(text_chars(&source)),
        _ => SqlType::varchar(text_chars(&source), collation.id),
    };
    let result = result.with_nullable(source.nullable).with_coercibility(Coercibility::Explicit);
    Ok(Signature { arguments: vec![source, Want::Text.of(&types[1], context)], result })
}

fn resolve_char(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let (charset_name, codes) = types.split_last().unwrap_or((&types[0], &[]));
    let charset = named_charset(context, codes.len())?;
    let mut arguments: Vec<SqlType> = codes.iter().map(|ty| Want::Int.of(ty, context)).collect();
    arguments.push(Want::Text.of(charset_name, context));
    let chars = codes.len().saturating_mul(4).min(1 << 20) as u32;
    Ok(Signature { arguments, result: of_charset(charset, chars) })
}

fn char_using(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let codes = a.split_last().map_or(&[][..], |(_, codes)| codes);
    let mut made = Octets::new();
    for code in codes.iter().filter(|code| !code.is_null()) {
        let code = (word(code) as u32).to_be_bytes();
        let leading_zeros = code.iter().take(3).take_while(|&&byte| byte == 0).count();
        made.extend_from_slice(&code[leading_zeros..]);
    }
    Ok(decode(&made, charset_of(call.result), call))
}
