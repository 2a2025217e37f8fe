//! The chunks of a process's page node that are open, and the services over them.

use std::collections::BTreeMap;
use std::sync::Arc;

use firn_api::{PageFilter, PageStore};
use firn_base::Environment;
use firn_control::ChunkId;
use firn_link::{LateService, Service};
use firn_page_service::{PageService, PageServiceOptions};
use firn_storage::page_node::{PageChunks, PageNode};
use parking_lot::Mutex;

use crate::layout::parts::HeldPart;
use crate::page_list::PageListService;

/// The services of a page node.
#[derive(Clone, Default)]
pub(crate) struct PageDoors {
    pub(crate) pages: Arc<LateService>,
    pub(crate) list: Arc<LateService>,
}

/// What readers find. The services answer while a chunk is open.
pub(crate) struct OpenChunks {
    environment: Environment,
    store: Arc<PageChunks>,
    doors: PageDoors,
    part: Arc<dyn Fn(ChunkId) -> Option<HeldPart> + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<ChunkId, Arc<PageNode>>,
    service: Option<Arc<PageService>>,
}

impl OpenChunks {
    /// `part`: which pages the node has of a chunk.
    pub(crate) fn new(
        environment: &Environment,
        name: &str,
        doors: PageDoors,
        part: impl Fn(ChunkId) -> Option<HeldPart> + Send + Sync + 'static,
    ) -> Arc<OpenChunks> {
        Arc::new(OpenChunks {
            environment: environment.clone(),
            part: Arc::new(part),
            store: Arc::new(PageChunks::new(name)),
            doors,
            state: Mutex::default(),
        })
    }

    /// The chunks as one store.
    pub(crate) fn store(&self) -> Arc<dyn PageStore> {
        Arc::clone(&self.store) as Arc<dyn PageStore>
    }

    /// The chunk, while it is open.
    pub(crate) fn node(&self, chunk: ChunkId) -> Option<Arc<PageNode>> {
        self.state.lock().nodes.get(&chunk).cloned()
    }

    /// Readers find the chunk from now on.
    pub(crate) fn opened(self: &Arc<Self>, id: ChunkId, filter: PageFilter, node: &Arc<PageNode>) {
        let mut state = self.state.lock();
        self.store.insert(id.0, filter, Arc::clone(node) as Arc<dyn PageStore>);
        state.nodes.insert(id, Arc::clone(node));
        if state.service.is_none() {
            let options = PageServiceOptions::default();
            let service = PageService::new(&self.environment, self.store(), options);
            self.doors.pages.begin(Arc::clone(&service) as Arc<dyn Service>);
            let chunks = Arc::clone(self);
            let part = Arc::clone(&self.part);
            let find = Box::new(move |chunk| Some((chunks.node(chunk)?, part(chunk)?)));
            let list = Arc::new(PageListService(find));
            self.doors.list.begin(list as Arc<dyn Service>);
            state.service = Some(service);
        }
    }

    /// Readers find the chunk for fewer pages from now on.
    pub(crate) fn narrowed(&self, id: ChunkId, filter: &PageFilter) {
        let state = self.state.lock();
        self.store.narrow(id.0, filter);
        drop(state);
    }

    /// Readers find the chunk no more. Blocks for readers under way if it was the last one.
    pub(crate) fn closed(&self, id: ChunkId) {
        let mut state = self.state.lock();
        self.store.remove(id.0);
        state.nodes.remove(&id);
        if !state.nodes.is_empty() {
            return;
        }
        self.doors.pages.end();
        self.doors.list.end();
        let service = state.service.take();
        drop(state);
        if let Some(service) = service {
            service.close();
        }
    }
}
