//! The primitives of synchronisation that the lock manager stands on.

pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

pub(super) use firn_base::event::Event;
pub(super) use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
