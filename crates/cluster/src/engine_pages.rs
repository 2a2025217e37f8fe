//! Where the engine of a process reads pages: from the page node of the same process, if that has
//! them, or from others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_api::PageStore;
use firn_base::Environment;
use firn_base::network::NodeId;
use firn_page_service::client::MAX_COPIES;
use firn_page_service::{PageNodeLink, Placement, RemotePages, RemotePagesOptions};
use parking_lot::Mutex;

use crate::layout::Layout;
use crate::links::Links;
use crate::page_role::{OwnPages, PageRole};
use crate::view::View;

/// The pages of a process's engines, one after the other.
pub(crate) struct EnginePages {
    environment: Environment,
    own_number: NodeId,
    own: Option<Arc<PageRole>>,
    view: Arc<View>,
    links: Links,
    /// The page nodes elsewhere, once an engine has read there, and which nodes those are.
    remote: Mutex<Option<(Arc<RemotePages>, Vec<NodeId>)>>,
    /// The engine that was opened last reads from the process's own page node.
    reads_own: AtomicBool,
}

impl EnginePages {
    pub(crate) fn new(
        environment: &Environment,
        own: (NodeId, Option<Arc<PageRole>>),
        view: &Arc<View>,
        links: Links,
    ) -> EnginePages {
        let (own_number, own) = own;
        EnginePages {
            environment: environment.clone(),
            own_number,
            own,
            view: Arc::clone(view),
            links,
            remote: Mutex::new(None),
            reads_own: AtomicBool::new(false),
        }
    }

    /// Where an engine that is opened now reads; `None` while the pages cannot be read yet.
    pub(crate) fn source(&self) -> Option<(Arc<dyn PageStore>, Option<OwnPages>)> {
        let own = self.own.as_ref().filter(|own| own.has_pages());
        self.reads_own.store(own.is_some(), Ordering::SeqCst);
        match own {
            Some(own) => {
                let pages = own.own_pages()?;
                Some((Arc::clone(&pages.node) as Arc<dyn PageStore>, Some(pages)))
            }
            None => Some((self.remote()? as Arc<dyn PageStore>, None)),
        }
    }

    /// Whether the engine that was opened last has to read elsewhere.
    pub(crate) fn are_leaving(&self) -> bool {
        let leaves = self.own.as_ref().is_some_and(|own| !own.has_pages());
        leaves && self.reads_own.load(Ordering::SeqCst)
    }

    /// The page nodes elsewhere; `None` if none is known.
    pub(crate) fn remote(&self) -> Option<Arc<RemotePages>> {
        let layout = self.view.layout();
        let mut remote = self.remote.lock();
        if remote.is_none() {
            let (placement, nodes) = self.placement(&layout)?;
            let options = RemotePagesOptions::default();
            *remote = Some((RemotePages::open(&self.environment, placement, options), nodes));
        }
        remote.as_ref().map(|(remote, _)| Arc::clone(remote))
    }

    /// The nodes that have the pages are those of `layout` from now on.
    pub(crate) fn follow(&self, layout: &Layout) {
        let mut remote = self.remote.lock();
        let Some((pages, before)) = &mut *remote else { return };
        // While nobody has the pages, those that had them may have them again.
        if let Some((placement, nodes)) = self.placement(layout)
            && nodes != *before
        {
            pages.set_placement(placement);
            *before = nodes;
        }
        self.links.keep(|node| layout.node(node).is_some());
    }

    fn placement(&self, layout: &Layout) -> Option<(Placement, Vec<NodeId>)> {
        let nodes = layout.page_nodes().filter(|node| node.number != self.own_number);
        let nodes: Vec<_> = nodes.take(MAX_COPIES).collect();
        let link = |node: &&crate::layout::NodeEntry| PageNodeLink {
            node: node.number,
            caller: self.links.to(node),
        };
        let placement = Placement::everywhere(nodes.iter().map(link).collect()).ok()?;
        Some((placement, nodes.iter().map(|node| node.number).collect()))
    }

    pub(crate) fn close(&self) {
        if let Some((remote, _)) = &*self.remote.lock() {
            remote.close();
        }
    }
}
