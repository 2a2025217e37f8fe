//! How much memory a statement may hold, and the error if its rows cannot go to disk.
//!
//! Operators that keep rows reserve their memory in a [`Reservation`], which returns it when it is
//! dropped: the sum of all reservations is `used`, and `used <= limit`. An operator that is refused
//! spills, or ends the statement with error 1041.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::memory::{self, NoRoom};

use crate::error::{Result, SqlError};
use crate::types::Datum;
use crate::types::byte_string::INLINE_BYTES;

/// The limit of a statement unless its session sets another one.
pub const DEFAULT_LIMIT_BYTES: u64 = 256 << 20;

/// A statement's memory; copies share it.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<Account>);

#[derive(Debug)]
struct Account {
    limit_bytes: AtomicU64,
    used_bytes: AtomicU64,
    /// Up to here, the server's memory budget has granted memory.
    granted_bytes: AtomicU64,
    /// What the server's memory budget has refused, if the last refusal was its own.
    ungranted_bytes: AtomicU64,
}

/// How much a statement requests at a time from the server's memory budget; it does not request
/// less.
const GRANT_BYTES: u64 = 1 << 20;

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget::new(DEFAULT_LIMIT_BYTES)
    }
}

impl MemoryBudget {
    /// A budget of this many bytes, all of them free.
    #[must_use]
    pub fn new(limit_bytes: u64) -> MemoryBudget {
        let limit_bytes = AtomicU64::new(limit_bytes);
        let (used_bytes, granted_bytes) = (AtomicU64::new(0), AtomicU64::new(GRANT_BYTES));
        let ungranted_bytes = AtomicU64::new(0);
        MemoryBudget(Arc::new(Account { limit_bytes, used_bytes, granted_bytes, ungranted_bytes }))
    }

    /// Changes the limit for later reservations.
    pub fn set_limit_bytes(&self, limit_bytes: u64) {
        self.0.limit_bytes.store(limit_bytes, Ordering::Relaxed);
    }

    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.0.limit_bytes.load(Ordering::Relaxed)
    }

    /// What is reserved at present.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.0.used_bytes.load(Ordering::Relaxed)
    }

    /// The error of a statement that was refused memory: it names the limit that was reached.
    #[must_use]
    pub fn refusal(&self) -> SqlError {
        match self.0.ungranted_bytes.load(Ordering::Relaxed) {
            0 => SqlError::out_of_memory(self.limit_bytes()),
            ungranted_bytes => NoRoom(ungranted_bytes).into(),
        }
    }

    /// Takes this many bytes, for a caller that keeps its own account; false, and nothing taken, if
    /// there is not enough.
    #[must_use]
    pub fn take(&self, size_bytes: u64) -> bool {
        let used_bytes = self.0.used_bytes.fetch_add(size_bytes, Ordering::Relaxed) + size_bytes;
        let granted_bytes = self.0.granted_bytes.load(Ordering::Relaxed);
        if used_bytes > self.limit_bytes() {
            self.0.ungranted_bytes.store(0, Ordering::Relaxed);
        } else if used_bytes <= granted_bytes || self.is_granted(used_bytes - granted_bytes) {
            return true;
        }
        self.give_back(size_bytes);
        false
    }

    /// Whether the server's memory budget has room for this many bytes beyond those that were
    /// granted.
    #[cold]
    fn is_granted(&self, missing_bytes: u64) -> bool {
        let step_bytes = missing_bytes.max(GRANT_BYTES);
        let granted = memory::ask(usize::try_from(step_bytes).unwrap_or(usize::MAX)).is_ok();
        if granted {
            self.0.granted_bytes.fetch_add(step_bytes, Ordering::Relaxed);
        } else {
            self.0.ungranted_bytes.store(step_bytes, Ordering::Relaxed);
        }
        granted
    }

    /// Takes this many bytes, even if there is not enough.
    pub fn take_anyway(&self, size_bytes: u64) {
        self.0.used_bytes.fetch_add(size_bytes, Ordering::Relaxed);
    }

    /// Returns what was taken.
    pub fn give_back(&self, size_bytes: u64) {
        let used_bytes = self.0.used_bytes.fetch_sub(size_bytes, Ordering::Relaxed) - size_bytes;
        // After a time with less, further memory has to be granted again.
        if self.0.granted_bytes.load(Ordering::Relaxed) > used_bytes + 2 * GRANT_BYTES {
            self.0.granted_bytes.store(used_bytes + GRANT_BYTES, Ordering::Relaxed);
        }
    }

    #[must_use]
    pub fn reservation(&self) -> Reservation {
        Reservation { budget: self.clone(), size_bytes: 0 }
    }
}

/// A part of a budget; returned when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    size_bytes: u64,
}

impl Reservation {
    /// Takes this many more bytes; false, and nothing taken, if there is not enough.
    #[must_use]
    pub fn grow(&mut self, size_bytes: usize) -> bool {
        let is_taken = self.budget.take(size_bytes as u64);
        if is_taken {
            self.size_bytes += size_bytes as u64;
        }
        is_taken
    }

    /// Takes this many more bytes, for data that cannot spill.
    ///
    /// # Errors
    /// 1041 if there is not enough.
    pub fn require(&mut self, size_bytes: usize) -> Result<()> {
        if self.grow(size_bytes) {
            return Ok(());
        }
        Err(self.budget.refusal())
    }

    /// Returns this many of the bytes it has taken.
    pub fn shrink(&mut self, size_bytes: usize) {
        let size_bytes = self.size_bytes.min(size_bytes as u64);
        self.budget.give_back(size_bytes);
        self.size_bytes -= size_bytes;
    }

    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Returns everything.
    pub fn clear(&mut self) {
        self.budget.give_back(self.size_bytes);
        self.size_bytes = 0;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Approximate memory of values.
#[must_use]
pub(crate) fn size_of_values(values: &[Datum]) -> usize {
    let heap = |datum: &Datum| match datum {
        Datum::Text(octets) if octets.len() > INLINE_BYTES => octets.len(),
        Datum::Json(_) => 256,
        _ => 0,
    };
    size_of_val(values) + values.iter().map(heap).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_base::memory::{self, Keeper};

    use super::MemoryBudget;

    /// An amount that no other test requests.
    const REFUSED_BYTES: u64 = 7_654_321;

    struct WithoutRoom;

    impl Keeper for WithoutRoom {
        fn has_room(&self, size_bytes: u64, _: u64) -> bool {
            size_bytes != REFUSED_BYTES
        }
    }

    #[test]
    fn a_refusal_names_the_limit_that_was_reached() {
        let keeper: Arc<dyn Keeper> = Arc::new(WithoutRoom);
        memory::install(Arc::clone(&keeper));
        let budget = MemoryBudget::new(10 << 20);
        assert!(!budget.take(11 << 20));
        assert!(budget.refusal().to_string().ends_with("more than its limit of 10485760 bytes"));
        assert!(!budget.take((1 << 20) + REFUSED_BYTES));
        assert!(budget.refusal().to_string().ends_with("raise memory_budget"));
        assert!(!budget.take(11 << 20));
        assert!(budget.refusal().to_string().ends_with("more than its limit of 10485760 bytes"));
        assert_eq!(budget.used_bytes(), 0);
        memory::uninstall(&keeper);
    }
}
