//! Regular expressions: `REGEXP_LIKE` (also `REGEXP` and `RLIKE`), `REGEXP_INSTR`,
//! `REGEXP_REPLACE`, `REGEXP_SUBSTR`.
//!
//! The syntax is that of the `regex` crate, which is ICU's without back references and look-around;
//! a match takes time linear in the text. Letters differing only in case are equal if the collation
//! says so or `i` is given.

use std::borrow::Cow;
use std::cell::RefCell;

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Coercibility, Datum, SqlType, TypeKind};
use regex::{Captures, Regex, RegexBuilder};

use crate::arguments::{int, text};
use crate::signature::{self, Want, comparing_collation, decoded, fixed, long_text, text_of_first};
use crate::{Call, Function, ResolveContext, Signature, lenient};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("REGEXP_LIKE", 2..=3, resolve_like, |a: &[Datum], call: &Call<'_>| {
        let Some(regex) = expression(a, 2, call)? else { return Ok(Datum::Null) };
        Ok(Datum::from_bool(regex.is_match(&text(&a[0]))))
    })
    .in_order(PATTERN_FIRST)
    .needing(has_pattern),
    lenient!("REGEXP_INSTR", 2..=6, resolve_instr, regexp_instr)
        .in_order(PATTERN_FIRST)
        .needing(has_pattern),
    lenient!("REGEXP_SUBSTR", 2..=5, resolve_substr, regexp_substr)
        .in_order(PATTERN_FIRST)
        .needing(has_pattern),
    lenient!("REGEXP_REPLACE", 3..=6, resolve_replace, regexp_replace)
        .in_order(&[1, 2, 0])
        .needing(has_pattern_and_replacement),
];

/// The pattern is evaluated before the text in which it is sought.
const PATTERN_FIRST: &[usize] = &[1, 0];

fn has_pattern(before: &[Datum]) -> bool {
    before.first().is_none_or(|pattern| !pattern.is_null())
}

/// The replacement is evaluated even if the pattern is NULL, the text only if neither is.
fn has_pattern_and_replacement(before: &[Datum]) -> bool {
    before.len() < 2 || before.iter().take(2).all(|one| !one.is_null())
}

/// Regular expressions that a thread keeps compiled.
const KEPT: usize = 16;
/// Named classes, as they are written inside brackets.
const CLASSES: [(&str, &str); 7] = [
    ("alpha", r"\p{Alphabetic}"),
    ("digit", r"\p{Nd}"),
    ("alnum", r"\p{Alphabetic}\p{Nd}"),
    ("upper", r"\p{Uppercase}"),
    ("lower", r"\p{Lowercase}"),
    ("punct", r"\p{P}"),
    ("space", r"\s"),
];
/// The most memory of a compiled expression.
const SIZE_LIMIT_BYTES: usize = 4 << 20;

fn resolve_like(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    comparing_collation(&types[..2], "regexp_like")?;
    one_character_set(&types[..2], "regexp_like")?;
    in_one_set(fixed(types, context, &[Want::Text], signature::int)?)
}

/// The text and the expression in their common character set; what it has not is refused.
fn in_one_set(mut signature: Signature) -> Result<Signature> {
    let id = comparing_collation(&signature.arguments[..2], "regexp_like")?;
    let charset = collation::get(id).charset;
    let has_less = charset != Charset::Binary && !charset.is_all_of_unicode();
    for text in signature.arguments[..2].iter_mut().filter(|ty| has_less && ty.kind.is_text()) {
        if text.charset() != Some(charset) {
            *text = decoded(text, id);
        }
    }
    Ok(signature)
}

fn resolve_instr(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    comparing_collation(&types[..2], "regexp_instr")?;
    one_character_set(&types[..2], "regexp_instr")?;
    let wants = [Want::Text, Want::Text, Want::Int, Want::Int, Want::Int, Want::Text];
    in_one_set(fixed(types, context, &wants, signature::bigint)?)
}

fn resolve_substr(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    comparing_collation(&types[..2], "regexp_substr")?;
    one_character_set(&types[..2], "regexp_substr")?;
    let wants = [Want::Text, Want::Text, Want::Int, Want::Int, Want::Text];
    let signature = in_one_set(fixed(types, context, &wants, text_of_first)?)?;
    Ok(in_common_set(types, context, signature))
}

fn resolve_replace(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    comparing_collation(&types[..2], "regexp_replace")?;
    one_character_set(&types[..2], "regexp_replace")?;
    let both = signature::text_of(&types[..2], 0, context);
    let is_weak = |ty: &SqlType| ty.kind.is_binary() || ty.coercibility > Coercibility::Implicit;
    // A column of bytes beside a number is let pass.
    let has_bytes = types[..2].iter().any(|ty| matches!(ty.kind, TypeKind::Varbinary { .. }))
        || types[..2].iter().all(|ty| ty.kind.is_string())
            && types[..2].iter().any(|ty| ty.kind.is_binary());
    let replaces_bytes = both.kind.is_binary() && has_bytes && types[..2].iter().all(is_weak);
    let set = if replaces_bytes { SqlType::varbinary(0) } else { types[0].clone() };
    one_character_set(&[set, types[2].clone()], "regexp_replace")?;
    let wants = [Want::Text, Want::Text, Want::Text, Want::Int, Want::Int, Want::Text];
    let signature =
        fixed(types, context, &wants, |types, context| long_text(&types[..1], context))?;
    let signature = in_one_set(signature)?;
    Ok(in_common_set(types, context, signature))
}

/// The result in the character set of text and expression together: that of numbers if neither is a
/// text, that of bytes if one is.
fn in_common_set(
    types: &[SqlType],
    context: &ResolveContext<'_>,
    signature: Signature,
) -> Signature {
    let is_string = |ty: &&SqlType| ty.kind.is_string() || ty.kind.is_enum_or_set();
    let strings: Vec<&SqlType> = types[..2].iter().filter(is_string).collect();
    let is_null = |ty: &SqlType| ty.kind == TypeKind::Null;
    let has_bytes = strings.iter().any(|ty| ty.kind.is_binary());
    let changes = has_bytes || is_null(&types[0]) || !is_string(&&types[0]);
    if !changes {
        return signature;
    }
    let chars = u64::from(signature::text_chars(&signature.result));
    let result = match strings.first() {
        _ if types[..2].iter().all(is_null) => signature.result,
        None => SqlType::varchar(chars as u32, signature::NUMBERS_COLLATION)
            .with_coercibility(Coercibility::Numeric),
        Some(_) => {
            let strings: Vec<SqlType> = strings.into_iter().cloned().collect();
            signature::text_of(&strings, chars, context)
        }
    };
    Signature { result, ..signature }
}

/// Refuses binary strings beside text. Columns of `BINARY` and `BLOB` are let pass, as MySQL does.
fn one_character_set(types: &[SqlType], function: &str) -> Result<()> {
    let is_bytes = |ty: &SqlType| matches!(ty.kind, TypeKind::Varbinary { .. });
    let is_text = |ty: &SqlType| ty.kind.is_text() || ty.kind.is_enum_or_set();
    if !types.iter().any(is_bytes) || !types.iter().any(is_text) {
        return Ok(());
    }
    let mut names = types.iter().map(|ty| match is_bytes(ty) {
        true => "binary",
        false => collation::get(ty.collation().unwrap_or(CollationId::BINARY)).name,
    });
    let first = names.next().unwrap_or_default();
    let other = names.find(|name| *name != first).unwrap_or_default();
    let message = format!(
        "Character set '{first}' cannot be used in conjunction with '{other}' in call to {function}."
    );
    Err(failed(3995, &message))
}

/// The expression of a call whose match type is at `flags`; `None` if an argument is NULL. It is
/// read before the text, so that a wrong one is refused even beside NULL.
fn expression(a: &[Datum], flags: usize, call: &Call<'_>) -> Result<Option<Regex>> {
    if a[1].is_null() || a.get(flags).is_some_and(Datum::is_null) {
        return Ok(None);
    }
    let regex = regex(&a[1], a.get(flags), call)?;
    Ok((!a.iter().any(Datum::is_null)).then_some(regex))
}

fn failed(code: u16, message: &str) -> SqlError {
    SqlError::new(code, message)
}

fn illegal_argument() -> SqlError {
    failed(3685, "Illegal argument to a regular expression.")
}

/// How an expression matches.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Options {
    ignore_case: bool,
    multiple_lines: bool,
    dot_matches_line_ends: bool,
}

impl Options {
    fn new(match_type: Option<&Datum>, call: &Call<'_>) -> Result<Options> {
        let collation = comparing_collation(&call.arguments[..2], "regexp_like")?;
        let mut options = Options {
            ignore_case: collation::get(collation).is_same_character('a', 'A'),
            multiple_lines: false,
            dot_matches_line_ends: false,
        };
        for flag in match_type.map(text).unwrap_or_default().chars() {
            match flag {
                'c' => options.ignore_case = false,
                'i' => options.ignore_case = true,
                'm' => options.multiple_lines = true,
                'n' => options.dot_matches_line_ends = true,
                'u' => (),
                _ => return Err(failed(1210, "Incorrect arguments to regexp_like")),
            }
        }
        Ok(options)
    }
}

/// The compiled expression, from this thread's recent ones if possible.
fn regex(pattern: &Datum, match_type: Option<&Datum>, call: &Call<'_>) -> Result<Regex> {
    thread_local! {
        static RECENT: RefCell<Vec<(String, Options, Regex)>> = const { RefCell::new(Vec::new()) };
    }
    let options = Options::new(match_type, call)?;
    let pattern = text(pattern);
    RECENT.with_borrow_mut(|recent| {
        let known =
            |(known, with, _): &(String, Options, Regex)| *known == pattern && *with == options;
        if let Some(at) = recent.iter().position(known) {
            return Ok(recent[at].2.clone());
        }
        let compiled = compile(&pattern, options)?;
        if recent.len() == KEPT {
            recent.remove(0);
        }
        recent.push((pattern.into_owned(), options, compiled.clone()));
        Ok(compiled)
    })
}

fn compile(pattern: &str, options: Options) -> Result<Regex> {
    if pattern.is_empty() {
        return Err(illegal_argument());
    }
    RegexBuilder::new(&with_classes_of_unicode(pattern))
        .case_insensitive(options.ignore_case)
        .multi_line(options.multiple_lines)
        .dot_matches_new_line(options.dot_matches_line_ends)
        .size_limit(SIZE_LIMIT_BYTES)
        .build()
        .map_err(|error| syntax_error(&error))
}

/// Makes named classes of brackets, which are ASCII in the library, cover Unicode.
fn with_classes_of_unicode(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains("[:") {
        return pattern.into();
    }
    CLASSES
        .iter()
        .fold(pattern.to_owned(), |out, (name, class)| out.replace(&format!("[:{name}:]"), class))
        .into()
}

fn syntax_error(error: &regex::Error) -> SqlError {
    let text = error.to_string();
    let says = |part: &str| text.contains(part);
    if says("look-around") || says("backreferences") {
        let message = "The regular expression contains a feature that is not implemented in this library version.";
        failed(3690, message)
    } else if says("unclosed group") || says("unopened group") {
        failed(3691, "Mismatched parenthesis in regular expression.")
    } else if says("unclosed character class") {
        failed(3696, "The regular expression contains an unclosed bracket expression.")
    } else if says("invalid character class range") {
        let message =
            "The regular expression contains an [x-y] character range where x comes after y.";
        failed(3697, message)
    } else if says("unrecognized escape") || says("incomplete escape") {
        failed(3689, "Unrecognized escape sequence in regular expression.")
    } else if says("repetition") && says("start must be <= end") {
        let message = "The maximum is less than the minumum in a {min,max} interval.";
        failed(3693, message)
    } else if says("repetition quantifier") || says("decimal") {
        failed(3692, "Incorrect description of a {min,max} interval.")
    } else if says("size limit") {
        failed(3698, "Overflow in the regular expression backtrack stack.")
    } else {
        failed(3688, "Syntax error in regular expression on line 1, character 1.")
    }
}

/// Where the search begins, in bytes; error 3686 for a position outside the text.
fn start(text: &str, position: Option<&Datum>) -> Result<usize> {
    let position = position.map_or(1, int);
    let out_of_bounds = || failed(3686, "Index out of bounds in regular expression search.");
    let skipped = position.checked_sub(1).and_then(|skipped| usize::try_from(skipped).ok());
    let skipped = skipped.ok_or_else(out_of_bounds)?;
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(skipped).ok_or_else(out_of_bounds)
}

/// How many matches before the wanted one are skipped.
fn passed_over(occurrence: Option<&Datum>) -> usize {
    usize::try_from(occurrence.map_or(1, int).saturating_sub(1)).unwrap_or(0)
}

fn regexp_instr(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let Some(regex) = expression(a, 5, call)? else { return Ok(Datum::Null) };
    let text = text(&a[0]);
    let at_end = match a.get(4).map_or(0, int) {
        0 => false,
        1 => true,
        _ => {
            return Err(failed(
                1210,
                "Incorrect arguments to regexp_instr: return_option must be 1 or 0.",
            ));
        }
    };
    let start = start(&text, a.get(2))?;
    let found = regex.find_iter(&text[start..]).nth(passed_over(a.get(3)));
    let place = found.map(|found| start + if at_end { found.end() } else { found.start() });
    Ok(Datum::Int(place.map_or(0, |place| text[..place].chars().count() as i64 + 1)))
}

fn regexp_substr(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let Some(regex) = expression(a, 4, call)? else { return Ok(Datum::Null) };
    let text = text(&a[0]);
    let start = start(&text, a.get(2))?;
    let found = regex.find_iter(&text[start..]).nth(passed_over(a.get(3)));
    Ok(found.map_or(Datum::Null, |found| Datum::text(found.as_str())))
}

/// Occurrence 0 is every one.
fn regexp_replace(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let Some(regex) = expression(a, 5, call)? else { return Ok(Datum::Null) };
    let (text, replacement) = (text(&a[0]), text(&a[2]));
    let start = start(&text, a.get(3))?;
    let only = match a.get(4).map_or(0, int) {
        ..=0 => None,
        occurrence => Some(occurrence as usize - 1),
    };
    let mut out = text[..start].to_owned();
    let searched = &text[start..];
    let mut copied = 0;
    for (at, captures) in regex.captures_iter(searched).enumerate() {
        if only.is_some_and(|only| only != at) {
            continue;
        }
        let Some(whole) = captures.get(0) else { continue };
        out.push_str(&searched[copied..whole.start()]);
        expand(&replacement, &captures, &mut out)?;
        copied = whole.end();
        check_length(&out, call)?;
        if only.is_some() {
            break;
        }
    }
    out.push_str(&searched[copied..]);
    check_length(&out, call)?;
    let charset = call.result.charset().unwrap_or(Charset::Binary);
    if charset != Charset::Binary && !charset.is_all_of_unicode() {
        // Characters that the result's set does not have.
        out = out.chars().map(|one| if charset.has(one) { one } else { '?' }).collect();
    }
    Ok(Datum::text(out))
}

/// Error 3684 for a text that has become too long.
fn check_length(text: &str, call: &Call<'_>) -> Result<()> {
    match text.len() as u64 > call.context.max_allowed_packet_bytes {
        true => Err(SqlError::new(3684, "The result string is larger than the result buffer.")),
        false => Ok(()),
    }
}

/// Appends the replacement: `$1` is a group, `\` makes the next character ordinary.
fn expand(replacement: &str, captures: &Captures<'_>, out: &mut String) -> Result<()> {
    let mut characters = replacement.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.extend(characters.next()),
            '$' => {
                let mut group = None;
                while let Some(digit) = characters.peek().and_then(|c| c.to_digit(10)) {
                    let next = group.unwrap_or(0) * 10 + digit as usize;
                    if group.is_some() && next >= captures.len() {
                        break;
                    }
                    group = Some(next);
                    characters.next();
                }
                let group = group.ok_or_else(illegal_argument)?;
                if group >= captures.len() {
                    return Err(failed(3686, "Index out of bounds in regular expression search."));
                }
                out.push_str(captures.get(group).map_or("", |part| part.as_str()));
            }
            other => out.push(other),
        }
    }
    Ok(())
}
