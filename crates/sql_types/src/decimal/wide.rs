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
    debug_assert!(compare(a, b).is_ge(), "the minuend is the larger");
    wrapping_subtract(a, b)
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

/// Quotient and remainder, bit by bit from the highest set one; the quotient of 512 bits. `divisor`
/// is not 0.
pub(super) fn divide(dividend: &[u64; 8], divisor: &Wide) -> ([u64; 8], Wide) {
    let mut quotient = [0; 8];
    if divisor[1..] == [0, 0, 0] {
        quotient = *dividend;
        let remainder = divide_small(&mut quotient, divisor[0]);
        return (quotient, [remainder, 0, 0, 0]);
    }
    let mut remainder = [0; 4];
    for bit in (0..bit_length(dividend)).rev() {
        let top = remainder[3] >> (WORD_BITS - 1) == 1;
        remainder = shift_left_one(&remainder);
        remainder[0] |= dividend[bit / 64] >> (bit % 64) & 1;
        if top || compare(&remainder, divisor).is_ge() {
            remainder = wrapping_subtract(&remainder, divisor);
            quotient[bit / 64] |= 1 << (bit % 64);
        }
    }
    (quotient, remainder)
}

fn wrapping_subtract(a: &Wide, b: &Wide) -> Wide {
    let mut difference = [0; 4];
    let mut borrow = false;
    for (slot, (&a, &b)) in difference.iter_mut().zip(a.iter().zip(b)) {
        let (partial, first) = a.overflowing_sub(b);
        let (total, second) = partial.overflowing_sub(u64::from(borrow));
        (*slot, borrow) = (total, first | second);
    }
    difference
}

fn shift_left_one(value: &Wide) -> Wide {
    std::array::from_fn(|at| {
        let below = if at == 0 { 0 } else { value[at - 1] >> (WORD_BITS - 1) };
        value[at] << 1 | below
    })
}

fn bit_length(value: &[u64; 8]) -> usize {
    let highest = value.iter().rposition(|&word| word != 0);
    highest.map_or(0, |at| at * 64 + 64 - value[at].leading_zeros() as usize)
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
