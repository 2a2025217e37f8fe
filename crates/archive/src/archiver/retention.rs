//! What no moment of the window needs any more: a pure decision.
//!
//! ```text
//!        full set      set      set │ window begins          set
//!   ───────┴────────────┴────────┴──┼─────────────────────────┴──────► now
//!          └ needed: the chain ─────┘ base of the window's first moment
//!                                └── log is needed from here on
//! ```

use firn_base::Lsn;

use crate::format::{Manifest, SetEntry};

/// The manifest without what no moment of the window needs at `now_ms`, and no clone that began
/// with one of the sets in `pinned`. `None` if it needs everything.
pub(super) fn without_expired(
    manifest: &Manifest,
    now_ms: u64,
    pinned: &[Lsn],
) -> Option<Manifest> {
    let window_begin = now_ms.saturating_sub(manifest.window_ms);
    let base = manifest.sets.iter().rposition(|set| set.time_ms <= window_begin)?;
    let log_from = manifest.sets[base].start;
    let of_pins = manifest.sets.iter().enumerate().filter(|(_, set)| pinned.contains(&set.start));
    let kept = of_pins.map(|(index, _)| index).chain([base]);
    let first = kept.filter_map(|index| chain_start(&manifest.sets, index)).min()?;
    let mut rest = manifest.clone();
    rest.sets.drain(..first);
    rest.log.retain(|entry| entry.to > log_from);
    rest.gaps.retain(|gap| gap.to > log_from);
    (rest != *manifest).then_some(rest)
}

/// The full set that the set at `index` builds on.
fn chain_start(sets: &[SetEntry], index: usize) -> Option<usize> {
    sets[..=index].iter().rposition(|set| set.is_full)
}

/// Whether the next set should be a full one: the others together are larger than the last full
/// one, or there are `MOST_SETS`, which a read has to search.
pub(super) fn is_full_due(sets: &[SetEntry]) -> bool {
    const MOST_SETS: usize = 64;
    const SMALL_BYTES: u64 = 64 << 20;
    let Some(full) = sets.iter().rposition(|set| set.is_full) else { return true };
    let others = &sets[full + 1..];
    let bytes: u64 = others.iter().map(|set| set.size_bytes).sum();
    others.len() >= MOST_SETS || bytes > sets[full].size_bytes.max(SMALL_BYTES)
}

#[cfg(test)]
mod tests {
    use firn_api::Watermarks;
    use firn_storage::local::DatabaseId;

    use super::*;
    use crate::format::{Gap, LogEntry};

    fn set(time: u64, is_full: bool) -> SetEntry {
        SetEntry {
            start: Lsn(time * 8),
            end: Lsn(time * 8 + 8),
            is_full,
            writer: 1,
            images: 1,
            size_bytes: 100 << 20,
            time_ms: time,
            watermarks: Watermarks::default(),
        }
    }

    /// Sets at 10 (full), 20, 30 (full), 40, 50, and an object of log for each unit of time.
    fn manifest() -> Manifest {
        let mut manifest = Manifest::new(DatabaseId([1; 16]), 1, 15);
        manifest.sets =
            vec![set(10, true), set(20, false), set(30, true), set(40, false), set(50, false)];
        manifest.log = (10..60)
            .map(|time| LogEntry {
                from: Lsn(time * 8),
                to: Lsn(time * 8 + 8),
                writer: 1,
                size_bytes: 8,
                time_ms: time,
            })
            .collect();
        manifest.gaps = vec![Gap { from: Lsn(88), to: Lsn(96), from_ms: 11, to_ms: 12 }];
        manifest
    }

    #[test]
    fn the_chain_of_the_windows_first_moment_is_kept() {
        let rest = without_expired(&manifest(), 59, &[]).unwrap();
        // The window begins at 44: its base is the set of 40, which stands on that of 30.
        assert_eq!(rest.sets.iter().map(|set| set.time_ms).collect::<Vec<_>>(), [30, 40, 50]);
        assert_eq!(rest.log[0].from, Lsn(40 * 8));
        assert!(rest.gaps.is_empty());
        assert_eq!(without_expired(&rest, 59, &[]), None);
    }

    #[test]
    fn nothing_goes_while_the_window_needs_the_first_set() {
        assert_eq!(without_expired(&manifest(), 24, &[]), None);
        let mut long = manifest();
        long.window_ms = 1000;
        assert_eq!(without_expired(&long, 59, &[]), None);
    }

    #[test]
    fn a_clone_keeps_its_sets_but_no_log() {
        let rest = without_expired(&manifest(), 59, &[Lsn(20 * 8)]).unwrap();
        assert_eq!(rest.sets[0].time_ms, 10);
        assert_eq!(rest.log[0].from, Lsn(40 * 8));
    }

    #[test]
    fn a_full_set_is_due_when_the_others_are_larger() {
        assert!(is_full_due(&[]));
        assert!(!is_full_due(&[set(10, true)]));
        assert!(!is_full_due(&[set(10, true), set(20, false)]));
        assert!(is_full_due(&[set(10, true), set(20, false), set(30, false)]));
    }
}
