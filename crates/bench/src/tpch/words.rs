//! Lists of words and the grammar of comments (specification 4.2.2.13 and 4.2.2.14).

use crate::random::Draw;

pub(super) const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// Nations with the index of their region.
pub(super) const NATIONS: [(&str, i64); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];

pub(super) const COLORS: [&str; 92] = [
    "almond",
    "antique",
    "aquamarine",
    "azure",
    "beige",
    "bisque",
    "black",
    "blanched",
    "blue",
    "blush",
    "brown",
    "burlywood",
    "burnished",
    "chartreuse",
    "chiffon",
    "chocolate",
    "coral",
    "cornflower",
    "cornsilk",
    "cream",
    "cyan",
    "dark",
    "deep",
    "dim",
    "dodger",
    "drab",
    "firebrick",
    "floral",
    "forest",
    "frosted",
    "gainsboro",
    "ghost",
    "goldenrod",
    "green",
    "grey",
    "honeydew",
    "hot",
    "indian",
    "ivory",
    "khaki",
    "lace",
    "lavender",
    "lawn",
    "lemon",
    "light",
    "lime",
    "linen",
    "magenta",
    "maroon",
    "medium",
    "metallic",
    "midnight",
    "mint",
    "misty",
    "moccasin",
    "navajo",
    "navy",
    "olive",
    "orange",
    "orchid",
    "pale",
    "papaya",
    "peach",
    "peru",
    "pink",
    "plum",
    "powder",
    "puff",
    "purple",
    "red",
    "rose",
    "rosy",
    "royal",
    "saddle",
    "salmon",
    "sandy",
    "seashell",
    "sienna",
    "sky",
    "slate",
    "smoke",
    "snow",
    "spring",
    "steel",
    "tan",
    "thistle",
    "tomato",
    "turquoise",
    "violet",
    "wheat",
    "white",
    "yellow",
];

pub(super) const TYPES: [&[&str]; 3] = [
    &["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    &["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    &["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
];
pub(super) const CONTAINERS: [&[&str]; 2] = [
    &["SM", "LG", "MED", "JUMBO", "WRAP"],
    &["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"],
];
pub(super) const SEGMENTS: [&str; 5] =
    ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"];
pub(super) const PRIORITIES: [&str; 5] =
    ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
pub(super) const INSTRUCTIONS: [&str; 4] =
    ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];
pub(super) const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];

const NOUNS: [&str; 45] = [
    "foxes",
    "ideas",
    "theodolites",
    "pinto beans",
    "instructions",
    "dependencies",
    "excuses",
    "platelets",
    "asymptotes",
    "courts",
    "dolphins",
    "multipliers",
    "sauternes",
    "warthogs",
    "frets",
    "dinos",
    "attainments",
    "somas",
    "Tiresias",
    "patterns",
    "forges",
    "braids",
    "hockey players",
    "frays",
    "warhorses",
    "dugouts",
    "notornis",
    "epitaphs",
    "pearls",
    "tithes",
    "waters",
    "orbits",
    "gifts",
    "sheaves",
    "depths",
    "sentiments",
    "decoys",
    "realms",
    "pains",
    "grouches",
    "escapades",
    "packages",
    "requests",
    "accounts",
    "deposits",
];
const VERBS: [&str; 40] = [
    "sleep",
    "wake",
    "are",
    "cajole",
    "haggle",
    "nag",
    "use",
    "boost",
    "affix",
    "detect",
    "integrate",
    "maintain",
    "nod",
    "was",
    "lose",
    "sublate",
    "solve",
    "thrash",
    "promise",
    "engage",
    "hinder",
    "print",
    "x-ray",
    "breach",
    "eat",
    "grow",
    "impress",
    "mold",
    "poach",
    "serve",
    "run",
    "dazzle",
    "snooze",
    "doze",
    "unwind",
    "kindle",
    "play",
    "hang",
    "believe",
    "doubt",
];
const ADJECTIVES: [&str; 28] = [
    "furious",
    "sly",
    "careful",
    "blithe",
    "quick",
    "fluffy",
    "slow",
    "quiet",
    "ruthless",
    "thin",
    "close",
    "dogged",
    "daring",
    "brave",
    "stealthy",
    "permanent",
    "enticing",
    "idle",
    "busy",
    "regular",
    "final",
    "ironic",
    "even",
    "bold",
    "silent",
    "special",
    "pending",
    "express",
];
const ADVERBS: [&str; 28] = [
    "sometimes",
    "always",
    "never",
    "furiously",
    "slyly",
    "carefully",
    "blithely",
    "quickly",
    "fluffily",
    "slowly",
    "quietly",
    "ruthlessly",
    "thinly",
    "closely",
    "doggedly",
    "daringly",
    "bravely",
    "stealthily",
    "permanently",
    "enticingly",
    "idly",
    "busily",
    "regularly",
    "finally",
    "ironically",
    "evenly",
    "boldly",
    "silently",
];
const PREPOSITIONS: [&str; 20] = [
    "about",
    "above",
    "according to",
    "across",
    "after",
    "against",
    "along",
    "among",
    "around",
    "at",
    "before",
    "between",
    "beneath",
    "beside",
    "beyond",
    "by",
    "despite",
    "during",
    "except",
    "for",
];
const AUXILIARIES: [&str; 18] = [
    "do",
    "may",
    "might",
    "shall",
    "will",
    "would",
    "can",
    "could",
    "should",
    "ought to",
    "must",
    "will have to",
    "shall have to",
    "could have to",
    "should have to",
    "must have to",
    "need to",
    "try to",
];
const ENDS: [&str; 6] = [".", ";", ":", "?", "!", "--"];

/// Text of the grammar, from which comments are cut (4.2.2.10). It is so long that comments seldom
/// repeat.
#[derive(Debug)]
pub(crate) struct TextPool {
    text: String,
}

const POOL_BYTES: usize = 4 << 20;

impl TextPool {
    pub(crate) fn new(seed: u64) -> TextPool {
        let mut draw = Draw::new(seed, u64::MAX - 1);
        let mut text = String::with_capacity(POOL_BYTES + 200);
        while text.len() < POOL_BYTES {
            sentence(&mut text, &mut draw);
        }
        TextPool { text }
    }

    /// A piece of `low..=high` bytes at a random position.
    pub(super) fn cut(&self, draw: &mut Draw, low: i64, high: i64) -> &str {
        let length = draw.between(low, high) as usize;
        let at = draw.between(0, (self.text.len() - length) as i64) as usize;
        &self.text[at..at + length]
    }
}

fn noun_phrase(text: &mut String, draw: &mut Draw) {
    match draw.between(0, 3) {
        0 => {}
        1 => push(text, draw.pick(&ADJECTIVES)),
        2 => {
            push(text, draw.pick(&ADJECTIVES));
            text.pop();
            text.push_str(", ");
            push(text, draw.pick(&ADJECTIVES));
        }
        _ => {
            push(text, draw.pick(&ADVERBS));
            push(text, draw.pick(&ADJECTIVES));
        }
    }
    push(text, draw.pick(&NOUNS));
}

fn verb_phrase(text: &mut String, draw: &mut Draw) {
    let form = draw.between(0, 3);
    if form % 2 == 1 {
        push(text, draw.pick(&AUXILIARIES));
    }
    push(text, draw.pick(&VERBS));
    if form >= 2 {
        push(text, draw.pick(&ADVERBS));
    }
}

fn prepositional_phrase(text: &mut String, draw: &mut Draw) {
    push(text, draw.pick(&PREPOSITIONS));
    push(text, "the");
    noun_phrase(text, draw);
}

fn sentence(text: &mut String, draw: &mut Draw) {
    let form = draw.between(0, 4);
    noun_phrase(text, draw);
    if form == 2 || form == 4 {
        prepositional_phrase(text, draw);
    }
    verb_phrase(text, draw);
    match form {
        1 | 4 => prepositional_phrase(text, draw),
        3 => noun_phrase(text, draw),
        _ => {}
    }
    text.pop();
    push(text, draw.pick(&ENDS));
}

fn push(text: &mut String, word: &str) {
    text.push_str(word);
    text.push(' ');
}
