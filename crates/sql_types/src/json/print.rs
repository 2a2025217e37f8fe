//! Values to JSON text in MySQL's format: a space after each comma and colon.

use firn_format::value::{Date, DateTime, Time};

use super::JsonValue;
use crate::number_text::double_to_text;
use crate::temporal::format;

impl JsonValue {
    /// Whether its text is longer than this many bytes. The text is created only if the estimate
    /// does not decide.
    #[must_use]
    pub fn is_text_longer_than(&self, size_bytes: u64) -> bool {
        self.most_text_bytes() as u64 > size_bytes && self.to_text().len() as u64 > size_bytes
    }

    /// An upper bound of the text's bytes.
    fn most_text_bytes(&self) -> usize {
        /// An upper bound for a number, a date, a quote with a comma, or a bracket.
        const OTHERS_BYTES: usize = 100;
        /// `\u0001`
        const ESCAPED_BYTES: usize = 6;
        OTHERS_BYTES
            + match self {
                JsonValue::String(text) => ESCAPED_BYTES * text.len(),
                JsonValue::Opaque { bytes, .. } => 2 * bytes.len(),
                JsonValue::Array(items) => items.iter().map(JsonValue::most_text_bytes).sum(),
                JsonValue::Object(object) => object
                    .iter()
                    .map(|(key, member)| ESCAPED_BYTES * key.len() + 8 + member.most_text_bytes())
                    .sum(),
                _ => 0,
            }
    }

    /// Appends the document's text.
    pub fn write_text(&self, out: &mut String) {
        match self {
            JsonValue::Null => out.push_str("null"),
            JsonValue::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            JsonValue::Array(items) => write_array(items, out),
            JsonValue::Object(object) => {
                out.push('{');
                for (number, (key, value)) in object.iter().enumerate() {
                    if number > 0 {
                        out.push_str(", ");
                    }
                    write_quoted(key, out);
                    out.push_str(": ");
                    value.write_text(out);
                }
                out.push('}');
            }
            JsonValue::Int(_)
            | JsonValue::UInt(_)
            | JsonValue::Double(_)
            | JsonValue::Decimal(_) => {
                out.push_str(&self.unquoted());
            }
            _ => write_quoted(&self.unquoted(), out),
        }
    }

    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text);
        text
    }

    /// The result of `JSON_UNQUOTE()`: a string without its quotes, anything else as its text.
    #[must_use]
    pub fn unquoted(&self) -> String {
        match self {
            JsonValue::Int(number) => number.to_string(),
            JsonValue::UInt(number) => number.to_string(),
            JsonValue::Double(number) => double_text(*number),
            JsonValue::Decimal(number) => number.to_string(),
            JsonValue::String(text) => text.to_string(),
            JsonValue::Date(packed) => format::date_text(Date::unpack(*packed)),
            JsonValue::Time(packed) => format::time_text(Time::unpack(*packed), 6),
            JsonValue::DateTime(packed) => format::date_time_text(DateTime::unpack(*packed), 6),
            JsonValue::Opaque { type_code, bytes } => {
                format!("base64:type{type_code}:{}", base64(bytes))
            }
            _ => self.to_text(),
        }
    }
}

fn write_array(items: &[JsonValue], out: &mut String) {
    out.push('[');
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        item.write_text(out);
    }
    out.push(']');
}

/// The text always shows that it is a double.
fn double_text(number: f64) -> String {
    let text = double_to_text(number).to_str_lossy().into_owned();
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_whole { text + ".0" } else { text }
}

/// Appends text in quotes, with escapes where needed.
pub fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if u32::from(control) < 0x20 => {
                out.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            character => out.push(character),
        }
    }
    out.push('"');
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4_usize {
            let digit = BASE64[(word >> (18 - 6 * at) & 0x3f) as usize];
            text.push(if at <= chunk.len() { digit.into() } else { '=' });
        }
    }
    text
}
