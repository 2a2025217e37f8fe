//! Which locks are compatible. The two tables are MySQL's
//! (`MDL_object_lock::m_granted_incompatible` and `m_waiting_incompatible`), without the kinds of
//! locks that Firn does not need.

use firn_api::rows::MetadataLock::{
    self, Exclusive, NoReadWrite, NoWrite, Read, ReadOnly, Shared, Upgradable, Write,
};

/// Locks that conflict with a request if another context holds them.
const fn conflicts_of(requested: MetadataLock) -> &'static [MetadataLock] {
    match requested {
        Shared => &[Exclusive],
        Read => &[NoReadWrite, Exclusive],
        Write => &[ReadOnly, NoWrite, NoReadWrite, Exclusive],
        Upgradable => &[Upgradable, NoWrite, NoReadWrite, Exclusive],
        ReadOnly => &[Write, NoReadWrite, Exclusive],
        NoWrite => &[Write, Upgradable, NoWrite, NoReadWrite, Exclusive],
        NoReadWrite => &[Read, Write, Upgradable, ReadOnly, NoWrite, NoReadWrite, Exclusive],
        Exclusive => &[Shared, Read, Write, Upgradable, ReadOnly, NoWrite, NoReadWrite, Exclusive],
    }
}

/// Whether a request must wait for a lock that another context holds.
pub(super) fn conflicts(requested: MetadataLock, held: MetadataLock) -> bool {
    conflicts_of(requested).contains(&held)
}

/// Whether a request yields to another context's waiting request, whichever came first.
pub(super) fn stands_back(requested: MetadataLock, waiting: MetadataLock) -> bool {
    match requested {
        Read => matches!(waiting, NoReadWrite | Exclusive),
        Write => matches!(waiting, NoWrite | NoReadWrite | Exclusive),
        Shared | Upgradable | NoWrite | NoReadWrite => waiting == Exclusive,
        ReadOnly => matches!(waiting, Write | NoReadWrite | Exclusive),
        Exclusive => false,
    }
}

/// Whether the held lock excludes everything that the requested one excludes.
pub(super) fn covers(held: MetadataLock, requested: MetadataLock) -> bool {
    conflicts_of(requested).iter().all(|other| conflicts(held, *other))
}

/// Whether a lock may conflict with `Read` or `Write`, which do not conflict with each other.
pub(super) fn is_obtrusive(lock: MetadataLock) -> bool {
    !matches!(lock, Shared | Read | Write)
}

/// The cost of refusing this request to break a deadlock: a statement is refused rather than a
/// change of definitions.
pub(super) fn weight(lock: MetadataLock) -> u32 {
    if is_obtrusive(lock) { 100 } else { 0 }
}
