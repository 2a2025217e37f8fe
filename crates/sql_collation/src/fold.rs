//! Upper and lower case, character by character as in MySQL: `ß` stays `ß`.

/// The upper case of a letter, if that is one character; otherwise the letter itself.
#[must_use]
pub fn to_upper(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    single(character.to_uppercase()).unwrap_or(character)
}

/// The lower case of a letter, if that is one character; otherwise the letter itself.
#[must_use]
pub fn to_lower(character: char) -> char {
    match character {
        'İ' => 'i',
        _ if character.is_ascii() => character.to_ascii_lowercase(),
        _ => single(character.to_lowercase()).unwrap_or(character),
    }
}

fn single(mut mapped: impl Iterator<Item = char>) -> Option<char> {
    mapped.next().filter(|_| mapped.next().is_none())
}

/// Text (UTF-8) in upper case.
#[must_use]
pub fn upper(text: &[u8]) -> Vec<u8> {
    map(text, to_upper, <[u8]>::to_ascii_uppercase)
}

/// Text (UTF-8) in lower case.
#[must_use]
pub fn lower(text: &[u8]) -> Vec<u8> {
    map(text, to_lower, <[u8]>::to_ascii_lowercase)
}

fn map(text: &[u8], fold: fn(char) -> char, fold_ascii: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    if text.is_ascii() {
        return fold_ascii(text);
    }
    let mut folded = String::with_capacity(text.len());
    folded.extend(super::charset::characters(text).map(fold));
    folded.into_bytes()
}
