//! Unsigned integers of 256 bits, as far as decimals need them.

/// Least significant word first.
pub(super) type Wide = [u64; 4];

const WORD_BITS: u32 = 64;

pub(super) const fn from_u128(value: u128) -> Wide {
    [value as u64, (value >> WORD_BITS) as u64, 0, 0]
}

pub(super) const fn to_u128(value: Wide) -> Option<u128> {
    if value[2] | value[3] != 0 {
        return None;
    }
    Some(value[0] as u128 | (value[1] as u128) << WORD_BITS)
}

pub(super) const fn is_zero(value: &Wide) -> bool {
    value[0] | value[1] | value[2] | value[3] == 0
}

pub(super) fn compare(a: &Wide, b: &Wide) -> std::cmp::Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// `a + b`, `None` beyond 256 bits.
pub(super) fn add(a: &Wide, b: &Wide) -> Option<Wide> {
    let mut sum = [0; 4];
    let mut carry = false;
    for (slot, (&a, &b)) in sum.iter_mut().zip(a.iter().zip(b)) {
        let (partial, first) = a.overflowing_add(b);
        let (total, second) = partial.overflowing_add(u64::from(carry));
        (*slot, carry) = (total, first | second);
    }
    (!carry).then_some(sum)
}

/// `a - b`, for `a >= b`.
pub(super) fn subtract(a: &Wide, b: &Wide) -> Wide {
    let mut difference = [0; 4];
    let mut borrow = false;
    for (slot, (&a, &b)) in difference.iter_mut().zip(a.iter().zip(b)) {
        let (partial, first) = a.overflowing_sub(b);
        let (total, second) = partial.overflowing_sub(u64::from(borrow));
        (*slot, borrow) = (total, first | second);
    }
    debug_assert!(!borrow, "the minuend is the larger");
    difference
}

/// `value * factor + addend`, `None` beyond 256 bits.
pub(super) const fn multiply_small(value: &Wide, factor: u64, addend: u64) -> Option<Wide> {
    let mut product = [0; 4];
    let mut carry = addend;
    let mut at = 0;
    while at < 4 {
        let word = value[at] as u128 * factor as u128 + carry as u128;
        product[at] = word as u64;
        carry = (word >> WORD_BITS) as u64;
        at += 1;
    }
    if carry == 0 { Some(product) } else { None }
}

/// All 512 bits of `a * b`.
pub(super) fn multiply(a: &Wide, b: &Wide) -> [u64; 8] {
    let mut product = [0; 8];
    for (i, &a) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, &b) in b.iter().enumerate() {
            let word = u128::from(a) * u128::from(b) + u128::from(product[i + j]) + carry;
            product[i + j] = word as u64;
            carry = word >> WORD_BITS;
        }
        product[i + 4] = carry as u64;
    }
    product
}

/// Divides in place by one word and returns the remainder. `divisor` is not 0.
pub(super) fn divide_small(value: &mut [u64], divisor: u64) -> u64 {
    let mut remainder = 0_u128;
    let used = value.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
    for word in value[..used].iter_mut().rev() {
        if remainder == 0 {
            // Most numbers have a single word, and this is one machine division.
            remainder = u128::from(*word % divisor);
            *word /= divisor;
            continue;
        }
        let dividend = remainder << WORD_BITS | u128::from(*word);
        *word = (dividend / u128::from(divisor)) as u64;
        remainder = dividend % u128::from(divisor);
    }
    remainder as u64
}

/// Quotient and remainder; the quotient of 512 bits. `divisor` is not 0.
///
/// This is Knuth's algorithm D (The Art of Computer Programming, volume 2, 4.3.1): long division
/// by words. Shifting the divisor's highest bit to the top of its word makes the guess of a word of
/// the quotient, from the two highest words, at most one too large after its correction.
pub(super) fn divide(dividend: &[u64; 8], divisor: &Wide) -> ([u64; 8], Wide) {
    let length = divisor.iter().rposition(|&word| word != 0).map_or(1, |last| last + 1);
    let mut quotient = [0; 8];
    if length == 1 {
        quotient = *dividend;
        let remainder = divide_small(&mut quotient, divisor[0]);
        return (quotient, [remainder, 0, 0, 0]);
    }
    let shift = divisor[length - 1].leading_zeros();
    let mut rest = [0; 9];
    shift_left(dividend, shift, &mut rest);
    let mut shifted = [0; 5];
    shift_left(divisor, shift, &mut shifted);
    let divisor = &shifted[..length];
    for at in (0..=dividend.len() - length).rev() {
        let part = &mut rest[at..=at + length];
        let word = guess(part, divisor);
        let is_too_large = subtract_product(part, word, divisor);
        if is_too_large {
            add_back(part, divisor);
        }
        quotient[at] = word - u64::from(is_too_large);
    }
    let mut remainder = [0; 4];
    for (at, word) in remainder[..length].iter_mut().enumerate() {
        *word = ((u128::from(rest[at]) | u128::from(rest[at + 1]) << WORD_BITS) >> shift) as u64;
    }
    (quotient, remainder)
}

/// `words << shift` for a shift below 64; `shifted` has one word more.
fn shift_left(words: &[u64], shift: u32, shifted: &mut [u64]) {
    let mut carry = 0;
    for (slot, &word) in shifted.iter_mut().zip(words.iter().chain(&[0])) {
        let wide = u128::from(word) << shift | carry;
        *slot = wide as u64;
        carry = wide >> WORD_BITS;
    }
}

/// The quotient of `part`, which has one word more, by `divisor`, or one more than that.
fn guess(part: &[u64], divisor: &[u64]) -> u64 {
    let n = divisor.len();
    let highest = u128::from(divisor[n - 1]);
    let two = u128::from(part[n]) << WORD_BITS | u128::from(part[n - 1]);
    let (mut word, mut rest) = (two / highest, two % highest);
    while word >> WORD_BITS != 0
        || word * u128::from(divisor[n - 2]) > (rest << WORD_BITS | u128::from(part[n - 2]))
    {
        word -= 1;
        rest += highest;
        if rest >> WORD_BITS != 0 {
            break;
        }
    }
    word as u64
}

/// `part -= word * divisor`, modulo the length of `part`. Returns whether the product was larger.
fn subtract_product(part: &mut [u64], word: u64, divisor: &[u64]) -> bool {
    let (mut carry, mut borrow) = (0, false);
    for (slot, &digit) in part.iter_mut().zip(divisor.iter().chain(&[0])) {
        let product = u128::from(word) * u128::from(digit) + carry;
        carry = product >> WORD_BITS;
        let (partial, first) = slot.overflowing_sub(product as u64);
        let (total, second) = partial.overflowing_sub(u64::from(borrow));
        (*slot, borrow) = (total, first | second);
    }
    borrow
}

/// `part += divisor`, modulo the length of `part`.
fn add_back(part: &mut [u64], divisor: &[u64]) {
    let mut carry = 0;
    for (slot, &digit) in part.iter_mut().zip(divisor.iter().chain(&[0])) {
        let sum = u128::from(*slot) + u128::from(digit) + carry;
        *slot = sum as u64;
        carry = sum >> WORD_BITS;
    }
}

/// The lower half of 512 bits, `None` if the upper half is not zero.
pub(super) fn narrow(value: &[u64; 8]) -> Option<Wide> {
    match *value {
        [a, b, c, d, 0, 0, 0, 0] => Some([a, b, c, d]),
        _ => None,
    }
}

pub(super) fn widen(value: &Wide) -> [u64; 8] {
    let [a, b, c, d] = *value;
    [a, b, c, d, 0, 0, 0, 0]
}
