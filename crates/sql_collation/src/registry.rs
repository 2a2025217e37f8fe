//! The list of collations.

use std::sync::{LazyLock, OnceLock};

use firn_format::value::CollationId;
use icu_collator::options::Strength;

use super::unicode::Unicode;
use super::weights::Weights;
use super::{Charset, Collation, Rules};

#[must_use]
pub fn by_id(id: CollationId) -> Option<&'static Collation> {
    static BY_ID: LazyLock<Vec<Option<&'static Collation>>> = LazyLock::new(|| {
        let mut by_id = vec![None; 512];
        ALL.iter().for_each(|collation| by_id[usize::from(collation.id.0)] = Some(collation));
        by_id
    });
    BY_ID.get(usize::from(id.0)).copied().flatten()
}

/// The collation with an id; the default one for an unknown id.
#[must_use]
pub fn get(id: CollationId) -> &'static Collation {
    by_id(id).unwrap_or(&ALL[0])
}

/// The collation with a name, in any case; `utf8_…` is `utf8mb3_…`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Collation> {
    let name = name.to_ascii_lowercase();
    let name = match name.strip_prefix("utf8_") {
        Some(rest) => format!("utf8mb3_{rest}"),
        None => name,
    };
    ALL.iter().find(|collation| collation.name == name)
}

#[must_use]
pub fn all() -> &'static [Collation] {
    &ALL
}

macro_rules! unicode {
    ($locale:literal, $strength:ident) => {{
        static RULES: LazyLock<Unicode> =
            LazyLock::new(|| Unicode::new($locale, Strength::$strength));
        &RULES
    }};
}

const fn collation(
    id: u16,
    name: &'static str,
    charset: Charset,
    sort_length: u8,
    rules: Rules,
) -> Collation {
    Collation { id: CollationId(id), name, charset, sort_length, rules, ascii: OnceLock::new() }
}

use Charset::{Ascii, Binary, Latin1, Ucs2, Utf8mb3, Utf8mb4, Utf16, Utf16le, Utf32};

#[rustfmt::skip]
static ALL: [Collation; 113] = [
    collation(255, "utf8mb4_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("und", Primary))),
    collation(305, "utf8mb4_0900_as_ci", Utf8mb4, 0, Rules::Unicode(unicode!("und", Secondary))),
    collation(278, "utf8mb4_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("und", Tertiary))),
    collation(309, "utf8mb4_0900_bin", Utf8mb4, 1, Rules::Bytes),
    collation(46, "utf8mb4_bin", Utf8mb4, 1, Rules::Weights(Weights::CodePoint)),
    collation(45, "utf8mb4_general_ci", Utf8mb4, 1, Rules::Weights(Weights::GeneralCi)),
    collation(224, "utf8mb4_unicode_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
    collation(246, "utf8mb4_unicode_520_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
    collation(33, "utf8mb3_general_ci", Utf8mb3, 1, Rules::Weights(Weights::GeneralCi)),
    collation(83, "utf8mb3_bin", Utf8mb3, 1, Rules::Weights(Weights::CodePoint)),
    collation(192, "utf8mb3_unicode_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
    collation(214, "utf8mb3_unicode_520_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
    collation(8, "latin1_swedish_ci", Latin1, 1, Rules::Weights(Weights::Latin1SwedishCi)),
    collation(47, "latin1_bin", Latin1, 1, Rules::Weights(Weights::Latin1Bin)),
    collation(48, "latin1_general_ci", Latin1, 1, Rules::Weights(Weights::Latin1GeneralCi)),
    collation(49, "latin1_general_cs", Latin1, 1, Rules::Weights(Weights::Latin1GeneralCs)),
    collation(11, "ascii_general_ci", Ascii, 1, Rules::Weights(Weights::AsciiCi)),
    collation(65, "ascii_bin", Ascii, 1, Rules::Weights(Weights::CodePoint)),
    collation(63, "binary", Binary, 1, Rules::Bytes),
    collation(256, "utf8mb4_de_pb_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("de-u-co-phonebk", Primary))),
    collation(279, "utf8mb4_de_pb_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("de-u-co-phonebk", Tertiary))),
    collation(257, "utf8mb4_is_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("is", Primary))),
    collation(280, "utf8mb4_is_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("is", Tertiary))),
    collation(258, "utf8mb4_lv_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("lv", Primary))),
    collation(281, "utf8mb4_lv_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("lv", Tertiary))),
    collation(259, "utf8mb4_ro_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("ro", Primary))),
    collation(282, "utf8mb4_ro_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("ro", Tertiary))),
    collation(260, "utf8mb4_sl_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("sl", Primary))),
    collation(283, "utf8mb4_sl_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("sl", Tertiary))),
    collation(261, "utf8mb4_pl_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("pl", Primary))),
    collation(284, "utf8mb4_pl_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("pl", Tertiary))),
    collation(262, "utf8mb4_et_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("et", Primary))),
    collation(285, "utf8mb4_et_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("et", Tertiary))),
    collation(263, "utf8mb4_es_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("es", Primary))),
    collation(286, "utf8mb4_es_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("es", Tertiary))),
    collation(264, "utf8mb4_sv_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("sv", Primary))),
    collation(287, "utf8mb4_sv_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("sv", Tertiary))),
    collation(265, "utf8mb4_tr_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("tr", Primary))),
    collation(288, "utf8mb4_tr_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("tr", Tertiary))),
    collation(266, "utf8mb4_cs_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("cs", Primary))),
    collation(289, "utf8mb4_cs_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("cs", Tertiary))),
    collation(267, "utf8mb4_da_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("da", Primary))),
    collation(290, "utf8mb4_da_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("da", Tertiary))),
    collation(268, "utf8mb4_lt_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("lt", Primary))),
    collation(291, "utf8mb4_lt_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("lt", Tertiary))),
    collation(269, "utf8mb4_sk_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("sk", Primary))),
    collation(292, "utf8mb4_sk_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("sk", Tertiary))),
    collation(270, "utf8mb4_es_trad_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("es-u-co-trad", Primary))),
    collation(293, "utf8mb4_es_trad_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("es-u-co-trad", Tertiary))),
    collation(273, "utf8mb4_eo_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("eo", Primary))),
    collation(296, "utf8mb4_eo_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("eo", Tertiary))),
    collation(274, "utf8mb4_hu_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("hu", Primary))),
    collation(297, "utf8mb4_hu_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("hu", Tertiary))),
    collation(275, "utf8mb4_hr_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("hr", Primary))),
    collation(298, "utf8mb4_hr_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("hr", Tertiary))),
    collation(277, "utf8mb4_vi_0900_ai_ci", Utf8mb4, 0, Rules::Unicode(unicode!("vi", Primary))),
    collation(300, "utf8mb4_vi_0900_as_cs", Utf8mb4, 0, Rules::Unicode(unicode!("vi", Tertiary))),
    collation(225, "utf8mb4_icelandic_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("is", Primary))),
    collation(226, "utf8mb4_latvian_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("lv", Primary))),
    collation(227, "utf8mb4_romanian_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("ro", Primary))),
    collation(228, "utf8mb4_slovenian_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("sl", Primary))),
    collation(229, "utf8mb4_polish_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("pl", Primary))),
    collation(230, "utf8mb4_estonian_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("et", Primary))),
    collation(231, "utf8mb4_spanish_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("es", Primary))),
    collation(232, "utf8mb4_swedish_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("sv", Primary))),
    collation(233, "utf8mb4_turkish_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("tr", Primary))),
    collation(234, "utf8mb4_czech_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("cs", Primary))),
    collation(235, "utf8mb4_danish_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("da", Primary))),
    collation(236, "utf8mb4_lithuanian_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("lt", Primary))),
    collation(237, "utf8mb4_slovak_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("sk", Primary))),
    collation(238, "utf8mb4_spanish2_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("es-u-co-trad", Primary))),
    collation(240, "utf8mb4_persian_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("fa", Primary))),
    collation(241, "utf8mb4_esperanto_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("eo", Primary))),
    collation(242, "utf8mb4_hungarian_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("hu", Primary))),
    collation(243, "utf8mb4_sinhala_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("si", Primary))),
    collation(244, "utf8mb4_german2_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("de-u-co-phonebk", Primary))),
    collation(245, "utf8mb4_croatian_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("hr", Primary))),
    collation(247, "utf8mb4_vietnamese_ci", Utf8mb4, 8, Rules::UnicodePadSpace(unicode!("vi", Primary))),
    collation(193, "utf8mb3_icelandic_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("is", Primary))),
    collation(194, "utf8mb3_latvian_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("lv", Primary))),
    collation(195, "utf8mb3_romanian_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("ro", Primary))),
    collation(196, "utf8mb3_slovenian_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("sl", Primary))),
    collation(197, "utf8mb3_polish_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("pl", Primary))),
    collation(198, "utf8mb3_estonian_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("et", Primary))),
    collation(199, "utf8mb3_spanish_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("es", Primary))),
    collation(200, "utf8mb3_swedish_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("sv", Primary))),
    collation(201, "utf8mb3_turkish_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("tr", Primary))),
    collation(202, "utf8mb3_czech_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("cs", Primary))),
    collation(203, "utf8mb3_danish_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("da", Primary))),
    collation(204, "utf8mb3_lithuanian_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("lt", Primary))),
    collation(205, "utf8mb3_slovak_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("sk", Primary))),
    collation(206, "utf8mb3_spanish2_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("es-u-co-trad", Primary))),
    collation(208, "utf8mb3_persian_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("fa", Primary))),
    collation(209, "utf8mb3_esperanto_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("eo", Primary))),
    collation(210, "utf8mb3_hungarian_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("hu", Primary))),
    collation(211, "utf8mb3_sinhala_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("si", Primary))),
    collation(212, "utf8mb3_german2_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("de-u-co-phonebk", Primary))),
    collation(213, "utf8mb3_croatian_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("hr", Primary))),
    collation(215, "utf8mb3_vietnamese_ci", Utf8mb3, 8, Rules::UnicodePadSpace(unicode!("vi", Primary))),
    collation(54, "utf16_general_ci", Utf16, 1, Rules::Weights(Weights::GeneralCi)),
    collation(55, "utf16_bin", Utf16, 1, Rules::Weights(Weights::CodePoint)),
    collation(101, "utf16_unicode_ci", Utf16, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
    collation(120, "utf16_unicode_520_ci", Utf16, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
    collation(56, "utf16le_general_ci", Utf16le, 1, Rules::Weights(Weights::GeneralCi)),
    collation(62, "utf16le_bin", Utf16le, 1, Rules::Weights(Weights::CodePoint)),
    collation(35, "ucs2_general_ci", Ucs2, 1, Rules::Weights(Weights::GeneralCi)),
    collation(90, "ucs2_bin", Ucs2, 1, Rules::Weights(Weights::CodePoint)),
    collation(128, "ucs2_unicode_ci", Ucs2, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
    collation(150, "ucs2_unicode_520_ci", Ucs2, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
    collation(60, "utf32_general_ci", Utf32, 1, Rules::Weights(Weights::GeneralCi)),
    collation(61, "utf32_bin", Utf32, 1, Rules::Weights(Weights::CodePoint)),
    collation(160, "utf32_unicode_ci", Utf32, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
    collation(179, "utf32_unicode_520_ci", Utf32, 8, Rules::UnicodePadSpace(unicode!("und", Primary))),
];
