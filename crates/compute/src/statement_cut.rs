//! Cutting a statement: it ends as if it had not been run, because it will be run elsewhere.
//!
//! ```text
//!   closed ── a statement begins ──► open ── it sends rows, or is about to commit ──► closed
//!     │                               └─ somebody cuts it ──► cut ── it ends ──► closed
//!     └──────────── somebody kills it, in any state ──► killed ── a command begins ──► closed
//! ```
//!
//! Invariant: what was cut ends with an error, or had done its work before it saw that. Then it
//! goes on as if it had not been cut.

use std::sync::atomic::{AtomicU8, Ordering};

const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const CUT: u8 = 2;
const KILLED: u8 = 3;

/// Whether the running statement may be cut, and was.
#[derive(Debug, Default)]
pub(crate) struct Cut(AtomicU8);

impl Cut {
    pub(crate) fn begin_command(&self) {
        if self.0.load(Ordering::SeqCst) != CLOSED {
            self.0.store(CLOSED, Ordering::SeqCst);
        }
    }

    /// A statement begins that may be cut, unless its command was killed.
    pub(crate) fn open(&self) {
        self.change(CLOSED, OPEN);
    }

    /// Cuts the statement; false if that is not possible.
    pub(crate) fn cut(&self) -> bool {
        self.change(OPEN, CUT)
    }

    /// Whether the statement has to end.
    pub(crate) fn is_cut(&self) -> bool {
        self.0.load(Ordering::SeqCst) == CUT
    }

    /// The command has to end for another reason.
    pub(crate) fn kill(&self) {
        self.0.store(KILLED, Ordering::SeqCst);
    }

    /// From here on it cannot be cut. False: it was before.
    pub(crate) fn may_go_on(&self) -> bool {
        self.change(OPEN, CLOSED) || !self.is_cut()
    }

    /// The statement has ended. Returns whether it was cut.
    pub(crate) fn close(&self) -> bool {
        !self.change(OPEN, CLOSED) && self.change(CUT, CLOSED)
    }

    fn change(&self, from: u8, to: u8) -> bool {
        // The look is cheap, and most of these changes find nothing to change.
        self.0.load(Ordering::SeqCst) == from
            && self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_open_statement_is_cut() {
        let cut = Cut::default();
        assert!(!cut.cut(), "nothing runs");
        cut.open();
        assert!(cut.cut() && cut.is_cut() && !cut.cut());
        assert!(!cut.may_go_on());
        assert!(cut.close() && !cut.close());
        cut.open();
        assert!(cut.may_go_on());
        assert!(!cut.cut() && cut.may_go_on() && !cut.close());
    }

    #[test]
    fn a_kill_takes_the_place_of_a_cut() {
        let cut = Cut::default();
        cut.open();
        assert!(cut.cut());
        cut.kill();
        assert!(cut.may_go_on() && !cut.close());
        // Nor is the next statement of the command.
        cut.open();
        assert!(!cut.cut());
        cut.begin_command();
        cut.open();
        assert!(cut.cut() && cut.close());
    }
}
