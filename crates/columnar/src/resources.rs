//! What the statements of an engine share.

use std::sync::Arc;

use crate::cache::ColumnCache;
use crate::threads::Threads;

#[derive(Debug)]
pub(crate) struct Resources {
    pub(crate) threads: Threads,
    /// Columns that are kept between statements, if they are.
    pub(crate) column_cache: Option<Arc<ColumnCache>>,
}
