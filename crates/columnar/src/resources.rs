//! What the statements of an engine share.

use std::sync::Arc;

use crate::cache::ColumnCache;
use crate::spill::Spill;
use crate::threads::Threads;

#[derive(Debug)]
pub(crate) struct Resources {
    pub(crate) threads: Threads,
    /// The place for spilled data, if there is one.
    pub(crate) spill: Option<Spill>,
    /// Columns that are kept between statements, if they are.
    pub(crate) column_cache: Option<Arc<ColumnCache>>,
}
