//! The kept columns, and how often each is used.

use firn_base::TableId;
use firn_format::row::RowVersion;
use firn_sql::types::{SqlType, TimeZone};
use rustc_hash::FxHashMap;

/// A column of a table, by a number that is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ColumnNumber(u32);

/// What the values of a column depend on besides the leaf from which they are decoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ColumnForm {
    pub(crate) table: TableId,
    /// The index whose entries give the column; `None`: the table's rows.
    pub(crate) index: Option<usize>,
    pub(crate) ordinal: u16,
    pub(crate) ty: SqlType,
    /// It determines the values that older rows have in columns added later.
    pub(crate) row_version: RowVersion,
    /// The time zone, if the values depend on one.
    pub(crate) time_zone: Option<TimeZone>,
}

/// How many times more often a column must be wanted than one that is dropped for it.
const VICTIM_SHARE: u32 = 2;
/// The number of scans after which all uses count half.
const HALF_LIFE_SCANS: u32 = 256;

/// The kept columns and their use.
#[derive(Debug, Default)]
pub(super) struct Register {
    columns: FxHashMap<ColumnForm, ColumnNumber>,
    /// How often each was wanted recently, and whether anything is kept of it.
    uses: FxHashMap<ColumnNumber, Uses>,
    next: u32,
    scans: u32,
}

#[derive(Debug, Default, Clone, Copy)]
struct Uses {
    count: u32,
    is_kept: bool,
}

impl Register {
    /// The columns' numbers; each has been wanted once more.
    pub(super) fn number(&mut self, forms: Vec<ColumnForm>) -> Vec<ColumnNumber> {
        self.scans += 1;
        if self.scans.is_multiple_of(HALF_LIFE_SCANS) {
            self.age();
        }
        forms.into_iter().map(|form| self.number_one(form)).collect()
    }

    fn number_one(&mut self, form: ColumnForm) -> ColumnNumber {
        let number = *self.columns.entry(form).or_insert_with(|| {
            self.next += 1;
            ColumnNumber(self.next)
        });
        let uses = self.uses.entry(number).or_default();
        uses.count += 2;
        number
    }

    fn age(&mut self) {
        self.uses.retain(|_, uses| {
            uses.count /= 2;
            uses.count > 0 || uses.is_kept
        });
        let uses = &self.uses;
        self.columns.retain(|_, number| uses.contains_key(number));
    }

    /// Something may have been kept of these columns.
    pub(super) fn note_kept(&mut self, numbers: &[ColumnNumber]) {
        for number in numbers {
            self.uses.entry(*number).or_default().is_kept = true;
        }
    }

    /// Removes and returns the least used kept column, if it is used much less than each of
    /// `wanted`.
    pub(super) fn take_victim(&mut self, wanted: &[ColumnNumber]) -> Option<ColumnNumber> {
        let count = |number: &ColumnNumber| self.uses.get(number).map_or(0, |uses| uses.count);
        let least_wanted = wanted.iter().map(count).min()?;
        let kept = self.uses.iter().filter(|(_, uses)| uses.is_kept);
        let victim = kept.min_by_key(|(number, uses)| (uses.count, **number))?;
        let victim = (victim.1.count * VICTIM_SHARE < least_wanted).then_some(*victim.0)?;
        if let Some(uses) = self.uses.get_mut(&victim) {
            uses.is_kept = false;
        }
        Some(victim)
    }
}
