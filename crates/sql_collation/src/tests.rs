use std::cmp::Ordering;
use std::fmt::Write as _;

use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn named(name: &str) -> &'static Collation {
    by_name(name).unwrap_or_else(|| panic!("no collation {name}"))
}

fn key(collation: &Collation, text: &str) -> Vec<u8> {
    let mut key = Vec::new();
    collation.write_sort_key(text.as_bytes(), &mut key);
    key
}

fn equal(collation: &str, a: &str, b: &str) -> bool {
    named(collation).equal(a.as_bytes(), b.as_bytes())
}

#[test]
fn mysql_ids_name_the_collations() {
    for (id, name) in [
        (255, "utf8mb4_0900_ai_ci"),
        (46, "utf8mb4_bin"),
        (45, "utf8mb4_general_ci"),
        (224, "utf8mb4_unicode_ci"),
        (8, "latin1_swedish_ci"),
        (63, "binary"),
        (287, "utf8mb4_sv_0900_as_cs"),
    ] {
        assert_eq!(by_id(CollationId(id)).map(|collation| collation.name), Some(name));
    }
    assert_eq!(by_name("UTF8_GENERAL_CI").map(|collation| collation.id), Some(CollationId(33)));
    assert!(by_id(CollationId(999)).is_none());
}

#[test]
fn documented_equalities_hold() {
    assert!(equal("utf8mb4_0900_ai_ci", "Müller", "MULLER"));
    assert!(equal("utf8mb4_0900_ai_ci", "straße", "STRASSE"));
    assert!(!equal("utf8mb4_0900_ai_ci", "a", "a "));
    assert!(equal("utf8mb4_general_ci", "a", "a   "));
    assert!(equal("utf8mb4_general_ci", "Ä", "a"));
    assert!(equal("utf8mb4_general_ci", "ß", "s"));
    assert!(!equal("utf8mb4_general_ci", "ß", "ss"));
    assert!(equal("utf8mb4_unicode_ci", "ß", "ss"));
    assert!(equal("utf8mb4_general_ci", "Ё", "е"));
    assert!(!equal("utf8mb4_general_ci", "й", "и"));
    assert!(equal("utf8mb4_general_ci", "😀", "😁"));
    assert!(!equal("utf8mb4_0900_ai_ci", "😀", "😁"));
    assert!(!equal("utf8mb4_0900_as_ci", "é", "e"));
    assert!(equal("utf8mb4_0900_as_ci", "é", "É"));
    assert!(!equal("utf8mb4_0900_as_cs", "é", "É"));
    assert!(equal("utf8mb4_bin", "a", "a "));
    assert!(!equal("utf8mb4_bin", "a", "A"));
    assert!(!equal("utf8mb4_0900_bin", "a", "a "));
    assert!(equal("latin1_swedish_ci", "ü", "Y"));
    assert!(!equal("latin1_swedish_ci", "å", "a"));
    assert!(equal("latin1_swedish_ci", "é", "E"));
    assert!(!equal("latin1_general_ci", "é", "e"));
    assert!(equal("latin1_general_ci", "é", "É"));
    assert!(!equal("binary", "a", "a "));
}

#[test]
fn swedish_letters_follow_z_in_swedish_only() {
    let order = |name: &str| named(name).compare("ö".as_bytes(), b"z");
    assert_eq!(order("utf8mb4_sv_0900_ai_ci"), Ordering::Greater);
    assert_eq!(order("utf8mb4_0900_ai_ci"), Ordering::Less);
    assert_eq!(order("latin1_swedish_ci"), Ordering::Greater);
}

#[test]
fn letters_of_two_characters_are_letters_in_their_language_only() {
    let order = |name: &str, a: &str, b: &str| {
        let collation = named(name);
        assert_eq!(
            collation.compare(a.as_bytes(), b.as_bytes()),
            key(collation, a).cmp(&key(collation, b))
        );
        collation.compare(a.as_bytes(), b.as_bytes())
    };
    assert_eq!(order("utf8mb4_cs_0900_ai_ci", "ch", "d"), Ordering::Greater);
    assert_eq!(order("utf8mb4_0900_ai_ci", "ch", "d"), Ordering::Less);
    assert_eq!(order("utf8mb4_es_trad_0900_ai_ci", "llama", "luz"), Ordering::Greater);
}

#[test]
fn what_is_below_a_space_sorts_before_the_padding() {
    for name in ["utf8mb4_general_ci", "utf8mb4_bin", "latin1_swedish_ci", "latin1_general_cs"] {
        let collation = named(name);
        let mut texts = ["a b", "a", "a\tb", "a \t", "a  ", "ab", "a  b"];
        texts.sort_by_key(|text| key(collation, text));
        assert_eq!(texts[..2], ["a\tb", "a \t"], "{name}");
        assert_eq!(texts[4..], ["a  b", "a b", "ab"], "{name}");
    }
}

#[test]
fn like_matches_by_the_collation() {
    let like = |name: &str, text: &str, pattern: &str| {
        LikePattern::new(named(name), pattern.as_bytes(), Some('\\')).matches(text.as_bytes())
    };
    assert!(like("utf8mb4_0900_ai_ci", "Grüße", "GRU%"));
    assert!(like("utf8mb4_0900_ai_ci", "abcabd", "%ABD"));
    assert!(!like("utf8mb4_0900_ai_ci", "abc", "abc "));
    assert!(!like("utf8mb4_general_ci", "abc", "abc "));
    assert!(!like("utf8mb4_bin", "abc", "ABC"));
    assert!(like("utf8mb4_bin", "a%c", "a\\%c"));
    assert!(!like("utf8mb4_bin", "abc", "a\\%c"));
    assert!(like("utf8mb4_bin", "日本語", "_本_"));
    assert!(!like("binary", "日本語", "_本_"));
    assert!(like("utf8mb4_bin", "", "%"));
    assert!(!like("utf8mb4_bin", "", "_"));
    assert!(like("utf8mb4_bin", "aXbXXc", "a%b%c"));
    assert!(like("utf8mb4_bin", "a\\", "a\\"));
}

proptest! {
    #[test]
    fn like_matches_ascii_as_it_matches_other_text(
        pattern in "[aAbB%_ \\\\\u{0}\u{7f}]{0,8}",
        text in "[aAbB \u{0}\u{7f}]{0,12}",
        name in prop::sample::select(vec![
            "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_general_ci", "utf8mb4_unicode_ci",
            "utf8mb4_bin", "latin1_swedish_ci", "binary",
        ]),
    ) {
        let pattern = LikePattern::new(named(name), pattern.as_bytes(), Some('\\'));
        let Ok(as_any) = pattern.matches_any(text.as_bytes(), |_| Ok::<(), std::convert::Infallible>(()));
        prop_assert_eq!(pattern.matches(text.as_bytes()), as_any);
    }
}

/// Stored in indexes: if these bytes change, all indexes over text must be rebuilt.
#[test]
fn sort_keys_never_change() {
    let mut shown = String::new();
    for collation in all().iter().take(19) {
        let _ = write!(shown, "{:22}", collation.name);
        for text in ["aB z", "é1", "日ß"] {
            let key = key(collation, text);
            let hex: String = key.iter().map(|byte| format!("{byte:02X}")).collect();
            let _ = write!(shown, " {hex}");
        }
        shown.push('\n');
    }
    expect![[r#"
        utf8mb4_0900_ai_ci     2B2D045D 3314 FA322C4F4F
        utf8mb4_0900_as_ci     2B2D045D0108 331401458805 FA322C4F4F01457005
        utf8mb4_0900_as_cs     2B2D045D010801C5DC06 3314014588050107 FA322C4F4F0145700501C5E0D3
        utf8mb4_0900_bin       6142207A C3A931 E697A5C39F
        utf8mb4_bin            6445237D22 806C3422 E568806222
        utf8mb4_general_ci     4445235D22 483422 E5685622
        utf8mb4_unicode_ci     2B2D045D 3314 FA322C4F4F
        utf8mb4_unicode_520_ci 2B2D045D 3314 FA322C4F4F
        utf8mb3_general_ci     4445235D22 483422 E5685622
        utf8mb3_bin            6445237D22 806C3422 E568806222
        utf8mb3_unicode_ci     2B2D045D 3314 FA322C4F4F
        utf8mb3_unicode_520_ci 2B2D045D 3314 FA322C4F4F
        latin1_swedish_ci      4445235D22 483422 E668806222
        latin1_bin             6445237D22 806C3422 E668806222
        latin1_general_ci      444C237C22 533422 E6686F22
        latin1_general_cs      455423803322 633422 E668801A22
        ascii_general_ci       4445235D22 806C3422 E568806222
        ascii_bin              6445237D22 806C3422 E568806222
        binary                 6142207A C3A931 E697A5C39F
    "#]]
    .assert_eq(&shown);
}

/// A sum over the keys of all characters, so that no change of ICU's data goes unnoticed.
#[test]
fn no_character_changes_its_sort_key() {
    let mut shown = String::new();
    for collation in all().iter().take(19) {
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let mut utf8 = [0; 4];
            let mut key = Vec::new();
            collation.write_sort_key(character.encode_utf8(&mut utf8).as_bytes(), &mut key);
            key.push(0);
            for byte in key {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        let _ = writeln!(shown, "{:26} {sum:016x}", collation.name);
    }
    expect![[r#"
        utf8mb4_0900_ai_ci         eef7ff6c109f92db
        utf8mb4_0900_as_ci         ddb13fa709edb35b
        utf8mb4_0900_as_cs         e6aa0a216f849006
        utf8mb4_0900_bin           a10b9f5f1d2404a5
        utf8mb4_bin                3b6914b2a9a7545c
        utf8mb4_general_ci         ef68006878646f68
        utf8mb4_unicode_ci         7d35001deaac3c30
        utf8mb4_unicode_520_ci     777e52a14566bbe7
        utf8mb3_general_ci         ef68006878646f68
        utf8mb3_bin                3b6914b2a9a7545c
        utf8mb3_unicode_ci         7d35001deaac3c30
        utf8mb3_unicode_520_ci     777e52a14566bbe7
        latin1_swedish_ci          1c4d8c3e0b9c614c
        latin1_bin                 e0ae15ef23498d3c
        latin1_general_ci          85a9d2f64e1d770d
        latin1_general_cs          dfac4fb974634226
        ascii_general_ci           aa08e4169e6ad79c
        ascii_bin                  3b6914b2a9a7545c
        binary                     a10b9f5f1d2404a5
    "#]]
    .assert_eq(&shown);
}

#[test]
fn wide_sets_have_their_own_bytes() {
    let bytes = |charset: Charset, text: &str| charset.encode(text.as_bytes()).into_owned();
    assert_eq!(bytes(Charset::Utf16, "aé😀"), b"\0a\0\xe9\xd8\x3d\xde\x00");
    assert_eq!(bytes(Charset::Utf16le, "aé😀"), b"a\0\xe9\0\x3d\xd8\x00\xde");
    assert_eq!(bytes(Charset::Utf32, "a😀"), b"\0\0\0a\0\x01\xf6\x00");
    assert_eq!(bytes(Charset::Ucs2, "a😀"), b"\0a\0?");
    let text = |charset: Charset, bytes| {
        charset.decode(bytes).and_then(|text| String::from_utf8(text.into_owned()).ok())
    };
    assert_eq!(text(Charset::Utf16, b"\xe9"), Some("é".to_owned()));
    assert_eq!(text(Charset::Utf32, b"\x01\xf6\x00"), Some("😀".to_owned()));
    assert_eq!(text(Charset::Utf16, b"\xd8\x3d"), None);
    assert_eq!(text(Charset::Ucs2, b"\xd8\x3d"), None);
    assert_eq!(text(Charset::Utf32, b"\0\x11\0\0"), None);
}

#[test]
fn a_text_is_cut_between_characters() {
    let cut = |charset: Charset, max_bytes| charset.longest_prefix("aé😀".as_bytes(), max_bytes);
    assert_eq!([0, 1, 3, 4, 7].map(|most| cut(Charset::Utf8mb4, most)), [0, 1, 3, 3, 7]);
    assert_eq!([1, 2, 4, 7, 8].map(|most| cut(Charset::Utf16, most)), [0, 1, 3, 3, 7]);
    assert_eq!([3, 4, 8, 12].map(|most| cut(Charset::Utf32, most)), [0, 1, 3, 7]);
    assert_eq!([0, 1, 2].map(|most| cut(Charset::Latin1, most)), [0, 1, 3]);
}

fn any_text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => proptest::char::range(' ', '~'),
        1 => proptest::char::range('\0', '\x1f'),
        1 => Just(' '),
        2 => proptest::char::range('\u{80}', '\u{24f}'),
        1 => any::<char>(),
    ];
    proptest::collection::vec(character, 0..8).prop_map(|text| text.into_iter().collect())
}

proptest! {
    #[test]
    fn sort_keys_order_as_compare_does(a in any_text(), b in any_text(), which in 0..all().len()) {
        let collation = &all()[which];
        let by_key = key(collation, &a).cmp(&key(collation, &b));
        prop_assert_eq!(by_key, collation.compare(a.as_bytes(), b.as_bytes()), "{}", collation.name);
    }

    #[test]
    fn the_ascii_table_writes_what_icu_writes(text in "[\\x00-\\x7f]{0,150}") {
        static ROOT: LazyLock<Unicode> =
            LazyLock::new(|| Unicode::new("und", icu_collator::options::Strength::Primary));
        let unicode = &*ROOT;
        let mut by_table = Vec::new();
        unicode.write_sort_key(text.as_bytes(), &mut by_table);
        prop_assert_eq!(by_table, unicode.key_by_icu(text.as_bytes()));
    }

    #[test]
    fn heads_are_what_sort_keys_begin_with(
        text in prop_oneof![any_text(), "[ -~]{0,40}", "[\\x00-\\x1fa ]{0,40}"],
        which in 0..all().len(),
    ) {
        let collation = &all()[which];
        let mut begin = [0; 8];
        key(collation, &text).iter().zip(&mut begin).for_each(|(byte, place)| *place = *byte);
        let head = collation.sort_key_head(text.as_bytes(), &mut Vec::new());
        prop_assert_eq!(head, u64::from_be_bytes(begin), "{}", collation.name);
    }

    #[test]
    fn prefix_keys_begin_the_keys(prefix in any_text(), rest in any_text(), which in 0..all().len()) {
        let collation = &all()[which];
        let mut prefix_key = Vec::new();
        collation.write_prefix_key(prefix.as_bytes(), &mut prefix_key);
        prop_assert!(key(collation, &(prefix + &rest)).starts_with(&prefix_key), "{}", collation.name);
    }

    #[test]
    fn sets_decode_what_they_encode(text in "[a-zäöü€]{0,9}") {
        let all = Charset::ALL.into_iter().filter(|charset| *charset != Charset::Ascii);
        for charset in all {
            let bytes = charset.encode(text.as_bytes()).into_owned();
            prop_assert_eq!(bytes.len(), charset.encoded_length(text.as_bytes()));
            let decoded = charset.decode(&bytes).map(std::borrow::Cow::into_owned);
            prop_assert_eq!(decoded, Some(text.clone().into_bytes()));
        }
    }
}
