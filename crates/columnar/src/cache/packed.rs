//! A packed column of some leaves' rows, as it is kept between statements.
//!
//! ```text
//!   numbers   17, 19, 17, 400      base 17, words of two bytes  [nulls] 0000 0200 0000 7f01
//!   texts     "ab", "", "c"        ends of two bytes            [nulls] 0200 0200 0300 "abc"
//!   repeated  "AIR", "RAIL", "AIR" a byte for each row          [nulls] 00 01 00 | 0300 0700 "AIRRAIL"
//! ```
//!
//! Invariants:
//! * `unpack(pack(column)) == column` for every column that a scan makes;
//! * there is a null bitmap in front only if there are nulls; a null has a word like any other row.
//!
//! Doubles are stored by their bits, decimals as unscaled integers; decimals beyond 64 bits are
//! stored whole.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, PrimitiveBuilder};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type, UInt64Type};

use crate::value::Builder;

/// A column with up to this many distinct texts stores each text once.
const MOST_REPEATED: usize = 32;
/// The least number of rows per distinct text for which that is worthwhile.
const LEAST_REPETITION: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Packed {
    form: Form,
    has_nulls: bool,
    bytes: Arc<[u8]>,
}

/// The layout after the null bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Fixed-width offsets from `base`. Width 0: every row equals `base`.
    Words { base: i64, width: u8 },
    /// Numbers of 128 bits.
    Wide,
    /// The end offset of each row's text, `width` bytes wide; then the texts.
    Texts { width: u8 },
    /// A byte for each row, which is the number of one of the following `texts`; their end offsets
    /// are `width` bytes wide.
    Repeated { texts: u8, width: u8 },
}

/// Which rows of a column are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// A range of the column's rows.
    pub(crate) rows: Range<usize>,
    /// The rows of the range whose bit is set; `None`: all.
    pub(crate) bits: Option<BooleanBuffer>,
}

impl Chosen {
    #[inline]
    pub(crate) fn for_each(&self, mut work: impl FnMut(usize)) {
        match &self.bits {
            None => self.rows.clone().for_each(work),
            Some(bits) => bits.set_indices().for_each(|bit| work(self.rows.start + bit)),
        }
    }
}

impl Packed {
    /// Packs a column that [`Builder::finish`] has made.
    pub(crate) fn pack(column: &ArrayRef) -> Packed {
        use arrow::datatypes::DataType;
        let rows = column.len();
        let mut bytes = Vec::new();
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        if let Some(nulls) = nulls {
            bytes.extend((0..rows.div_ceil(8)).map(|byte| null_byte(nulls, byte, rows)));
        }
        let form = match column.data_type() {
            DataType::Int64 => pack_words(column.as_primitive::<Int64Type>().values(), &mut bytes),
            DataType::UInt64 => {
                let words = column.as_primitive::<UInt64Type>().values().iter();
                pack_words(&words.map(|word| *word as i64).collect::<Vec<_>>(), &mut bytes)
            }
            DataType::Float64 => {
                let words = column.as_primitive::<Float64Type>().values().iter();
                let words = words.map(|number| number.to_bits() as i64);
                pack_words(&words.collect::<Vec<_>>(), &mut bytes)
            }
            DataType::Decimal128(..) => {
                pack_wide(column.as_primitive::<Decimal128Type>().values(), &mut bytes)
            }
            DataType::Binary => pack_texts(column.as_binary::<i32>(), &mut bytes),
            other => unreachable!("scans make no columns of {other}"),
        };
        Packed { form, has_nulls: nulls.is_some(), bytes: bytes.into() }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Packed>() + 2 * size_of::<usize>() + self.bytes.len()
    }

    /// Appends the chosen rows of the column, which has `rows` rows.
    ///
    /// # Panics
    /// If the column was made by a builder of another kind.
    pub(crate) fn unpack(&self, rows: usize, chosen: &Chosen, builder: &mut Builder) {
        let (nulls, bytes) = self.bytes.split_at(match self.has_nulls {
            true => rows.div_ceil(8),
            false => 0,
        });
        let column = Column { form: self.form, rows, nulls, bytes };
        match builder {
            Builder::Int(builder, _) => column.numbers(chosen, builder, |word| word),
            Builder::UInt(builder) => column.numbers(chosen, builder, |word| word as u64),
            Builder::Double(builder) => {
                column.numbers(chosen, builder, |word| f64::from_bits(word as u64));
            }
            Builder::Decimal(builder, _) if self.form == Form::Wide => {
                let (wide, _) = bytes.as_chunks();
                chosen.for_each(|row| match column.is_null(row) {
                    true => builder.append_null(),
                    false => builder.append_value(i128::from_le_bytes(wide[row])),
                });
            }
            Builder::Decimal(builder, _) => column.numbers(chosen, builder, i128::from),
            Builder::Bytes(builder) => column.texts(chosen, |text| builder.append_option(text)),
        }
    }
}

/// A packed column, split into its parts.
struct Column<'a> {
    form: Form,
    rows: usize,
    nulls: &'a [u8],
    bytes: &'a [u8],
}

impl Column<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
    }

    fn numbers<T: ArrowPrimitiveType>(
        &self,
        chosen: &Chosen,
        builder: &mut PrimitiveBuilder<T>,
        from: impl Fn(i64) -> T::Native + Copy,
    ) {
        let Form::Words { base, width } = self.form else {
            panic!("a column of numbers is packed as {:?}", self.form)
        };
        match width {
            0 => self.words(chosen, builder, |_| from(base)),
            1 => self.words(chosen, builder, self.word::<1, T::Native>(base, from)),
            2 => self.words(chosen, builder, self.word::<2, T::Native>(base, from)),
            4 => self.words(chosen, builder, self.word::<4, T::Native>(base, from)),
            _ => self.words(chosen, builder, self.word::<8, T::Native>(base, from)),
        }
    }

    /// How the word of a row is read.
    fn word<const WIDTH: usize, N>(
        &self,
        base: i64,
        from: impl Fn(i64) -> N,
    ) -> impl Fn(usize) -> N {
        let (words, _) = self.bytes.as_chunks::<WIDTH>();
        move |row| {
            let mut word = [0; 8];
            word[..WIDTH].copy_from_slice(&words[row]);
            from(base.wrapping_add(i64::from_le_bytes(word)))
        }
    }

    fn words<T: ArrowPrimitiveType>(
        &self,
        chosen: &Chosen,
        builder: &mut PrimitiveBuilder<T>,
        word: impl Fn(usize) -> T::Native,
    ) {
        match chosen {
            Chosen { rows, bits: None } if self.nulls.is_empty() => {
                let start = builder.values_slice().len();
                builder.append_value_n(T::default_value(), rows.len());
                let places = builder.values_slice_mut()[start..].iter_mut();
                places.zip(rows.clone()).for_each(|(place, row)| *place = word(row));
            }
            _ => chosen.for_each(|row| match self.is_null(row) {
                true => builder.append_null(),
                false => builder.append_value(word(row)),
            }),
        }
    }

    fn texts(&self, chosen: &Chosen, mut append: impl FnMut(Option<&[u8]>)) {
        let of_row = |texts: &Texts<'_>, code: usize, row: usize| match self.is_null(row) {
            true => append(None),
            false => append(Some(texts.get(code))),
        };
        let mut of_row = of_row;
        match self.form {
            Form::Texts { width } => {
                let texts = Texts::new(self.bytes, self.rows, width);
                chosen.for_each(|row| of_row(&texts, row, row));
            }
            Form::Repeated { texts, width } => {
                let (codes, bytes) = self.bytes.split_at(self.rows);
                let texts = Texts::new(bytes, texts.into(), width);
                chosen.for_each(|row| of_row(&texts, codes[row].into(), row));
            }
            form => panic!("a column of texts is packed as {form:?}"),
        }
    }
}

/// Texts after their end offsets.
struct Texts<'a> {
    ends: &'a [u8],
    bytes: &'a [u8],
    width: usize,
}

impl<'a> Texts<'a> {
    fn new(bytes: &'a [u8], count: usize, width: u8) -> Texts<'a> {
        let width = usize::from(width);
        let (ends, bytes) = bytes.split_at(count * width);
        Texts { ends, bytes, width }
    }

    #[inline]
    fn get(&self, number: usize) -> &'a [u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.end(before));
        &self.bytes[start..self.end(number)]
    }

    #[inline]
    fn end(&self, number: usize) -> usize {
        let at = number * self.width;
        match self.width {
            2 => usize::from(u16::from_le_bytes([self.ends[at], self.ends[at + 1]])),
            _ => {
                let (ends, _) = self.ends.as_chunks();
                u32::from_le_bytes(ends[number]) as usize
            }
        }
    }
}

/// Eight bits, set for rows that are null.
fn null_byte(nulls: &NullBuffer, byte: usize, rows: usize) -> u8 {
    let bits = byte * 8..rows.min(byte * 8 + 8);
    bits.fold(0, |bits, row| bits | u8::from(nulls.is_null(row)) << (row % 8))
}

fn pack_words(words: &[i64], bytes: &mut Vec<u8>) -> Form {
    let base = words.iter().copied().min().unwrap_or_default();
    let largest = words.iter().copied().max().unwrap_or_default().wrapping_sub(base) as u64;
    let width = match largest {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    for word in words {
        bytes.extend_from_slice(&word.wrapping_sub(base).to_le_bytes()[..width]);
    }
    Form::Words { base, width: width as u8 }
}

fn pack_wide(numbers: &[i128], bytes: &mut Vec<u8>) -> Form {
    match numbers.iter().map(|number| i64::try_from(*number)).collect::<Result<Vec<_>, _>>() {
        Ok(words) => pack_words(&words, bytes),
        Err(_) => {
            numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
            Form::Wide
        }
    }
}

fn pack_texts(column: &BinaryArray, bytes: &mut Vec<u8>) -> Form {
    if let Some((codes, texts)) = repeated(column) {
        bytes.extend_from_slice(&codes);
        let width = append_texts(texts.iter().copied(), bytes);
        return Form::Repeated { texts: texts.len() as u8, width };
    }
    Form::Texts { width: append_texts((0..column.len()).map(|row| column.value(row)), bytes) }
}

/// The distinct texts of a column, and for each row the number of its text; `None` if that would
/// not be shorter.
fn repeated(column: &BinaryArray) -> Option<(Vec<u8>, Vec<&[u8]>)> {
    let most = (column.len() / LEAST_REPETITION).min(MOST_REPEATED);
    let (mut codes, mut texts) = (Vec::with_capacity(column.len()), Vec::<&[u8]>::new());
    for row in 0..column.len() {
        let text = column.value(row);
        let code = texts.iter().position(|known| *known == text).unwrap_or(texts.len());
        if code == texts.len() {
            if code == most {
                return None;
            }
            texts.push(text);
        }
        codes.push(code as u8);
    }
    Some((codes, texts))
}

/// Appends the ends of texts and then the texts; returns the bytes of an end.
fn append_texts<'t>(texts: impl Iterator<Item = &'t [u8]> + Clone, bytes: &mut Vec<u8>) -> u8 {
    let total: usize = texts.clone().map(<[u8]>::len).sum();
    let width = if total <= usize::from(u16::MAX) { 2 } else { 4 };
    let mut end = 0;
    for text in texts.clone() {
        end += text.len();
        bytes.extend_from_slice(&(end as u32).to_le_bytes()[..width]);
    }
    texts.for_each(|text| bytes.extend_from_slice(text));
    width as u8
}

#[cfg(test)]
mod tests {
    use firn_sql::types::{Datum, Decimal};

    use super::*;
    use crate::value::Physical;

    /// Packs a column of these values, unpacks all of it and every third row, and compares.
    fn survives(physical: Physical, values: &[Datum]) -> Packed {
        let build = |chosen: &dyn Fn(usize) -> bool| {
            let mut builder = physical.builder(values.len());
            let rows = values.iter().enumerate().filter(|(row, _)| chosen(*row));
            rows.for_each(|(_, value)| builder.append(value).unwrap());
            builder.finish()
        };
        let column = build(&|_| true);
        let packed = Packed::pack(&column);
        let unpack = |chosen: Chosen| {
            let mut builder = physical.builder(0);
            packed.unpack(values.len(), &chosen, &mut builder);
            builder.finish()
        };
        let rows = 0..values.len();
        assert_eq!(&unpack(Chosen { rows: rows.clone(), bits: None }), &column);
        let bits = BooleanBuffer::collect_bool(values.len(), |row| row % 3 == 1);
        let some = unpack(Chosen { rows: rows.clone(), bits: Some(bits) });
        assert_eq!(&some, &build(&|row| row % 3 == 1));
        let middle = rows.len() / 4..rows.len() / 2;
        assert_eq!(
            &unpack(Chosen { rows: middle.clone(), bits: None }),
            &build(&|row| middle.contains(&row))
        );
        packed
    }

    fn every(count: i64, value: impl Fn(i64) -> Datum) -> Vec<Datum> {
        (0..count).map(value).collect()
    }

    #[test]
    fn numbers_take_the_bytes_that_their_differences_need() {
        let size = |values: Vec<Datum>| survives(Physical::Int, &values).bytes.len();
        assert_eq!(size(every(100, |_| Datum::Int(-5))), 0);
        assert_eq!(size(every(100, |row| Datum::Int(i64::MAX - row))), 100);
        assert_eq!(size(every(100, |row| Datum::Int(-100 * row))), 200);
        assert_eq!(size(every(100, |row| Datum::Int(row << 20))), 400);
        assert_eq!(size(vec![Datum::Int(i64::MIN), Datum::Int(i64::MAX)]), 16);
        assert_eq!(size(Vec::new()), 0);
    }

    #[test]
    fn nulls_stand_in_front() {
        let value = |row| if row % 5 == 0 { Datum::Null } else { Datum::Int(row + 1000) };
        // The place of a null holds 0.
        assert_eq!(survives(Physical::Int, &every(20, value)).bytes.len(), 3 + 40);
        survives(Physical::Int, &every(9, |_| Datum::Null));
        let text = |row| if row % 2 == 0 { Datum::Null } else { Datum::text(&b"text"[..]) };
        survives(Physical::Bytes, &every(17, text));
        let wide = |row: i64| match row % 3 {
            0 => Datum::Null,
            _ => Datum::Decimal(Decimal::from_unscaled(i128::from(row) << 90, 2)),
        };
        survives(Physical::Decimal(2), &every(12, wide));
    }

    #[test]
    fn every_kind_of_number_survives() {
        survives(Physical::UInt, &[0, 1, u64::MAX, 1 << 63].map(Datum::UInt));
        survives(Physical::Double, &[0.0, -0.0, 1.5, f64::MAX, -3e-300].map(Datum::Double));
        survives(Physical::Date, &every(50, |day| Datum::Date(19_000 + day)));
        let decimal = |digits: i128| Datum::Decimal(Decimal::from_unscaled(digits, 3));
        let few = survives(Physical::Decimal(3), &[decimal(1), decimal(-1), decimal(250)]);
        assert_eq!(few.bytes.len(), 3);
        let many = survives(Physical::Decimal(3), &[decimal(i128::from(i64::MAX) + 1), decimal(0)]);
        assert_eq!(many.form, Form::Wide);
    }

    #[test]
    fn texts_that_are_repeated_are_kept_once() {
        let mode = |row| Datum::text([&b"AIR"[..], b"RAIL", b""][row as usize % 3]);
        let packed = survives(Physical::Bytes, &every(90, mode));
        assert_eq!(packed.bytes.len(), 90 + 3 * 2 + 7);
        let name = |row: i64| Datum::text(row.to_string().as_bytes());
        assert!(matches!(
            survives(Physical::Bytes, &every(90, name)).form,
            Form::Texts { width: 2 }
        ));
        let long = |row: i64| Datum::text(vec![row as u8; 9000].as_slice());
        assert!(matches!(
            survives(Physical::Bytes, &every(10, long)).form,
            Form::Texts { width: 4 }
        ));
    }
}
