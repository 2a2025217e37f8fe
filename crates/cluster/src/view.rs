//! The cluster as this process knows it now.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::layout::Layout;

/// The newest layout. Parts of the process look at it now and then.
pub(crate) struct View(RwLock<Arc<Layout>>);

impl View {
    pub(crate) fn new(layout: Layout) -> View {
        View(RwLock::new(Arc::new(layout)))
    }

    pub(crate) fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.0.read())
    }

    pub(crate) fn set(&self, layout: Layout) {
        *self.0.write() = Arc::new(layout);
    }
}
