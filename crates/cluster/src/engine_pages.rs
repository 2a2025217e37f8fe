//! Where the engine of a process reads pages: from the page node of the same process, if that has
//! all of them, or from all page nodes, which may include it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_api::PageStore;
use firn_base::network::NodeId;
use firn_base::{Environment, Lsn, PageId};
use firn_control::ChunkId;
use firn_page_service::client::MAX_COPIES;
use firn_page_service::{PageNodeLink, PlacedPart, Placement, RemotePages, RemotePagesOptions};
use parking_lot::Mutex;

use crate::layout::{Layout, PagePart};
use crate::links::Links;
use crate::page_list::{self, ListError};
use crate::page_role::{OwnPages, PageRole};
use crate::view::View;

/// The nodes that each chunk is read from.
type Parts = BTreeMap<ChunkId, Vec<NodeId>>;

/// The pages of a process's engines, one after the other.
pub(crate) struct EnginePages {
    environment: Environment,
    own_number: NodeId,
    own: Option<Arc<PageRole>>,
    view: Arc<View>,
    links: Links,
    /// The page nodes over links, once an engine has read there, and where the pages were then.
    remote: Mutex<Option<(Arc<RemotePages>, Parts)>>,
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
        let own = self.own.as_ref().filter(|own| own.has_all_pages());
        self.reads_own.store(own.is_some(), Ordering::SeqCst);
        match own {
            Some(own) => {
                let pages = own.own_pages()?;
                Some((Arc::clone(&pages.store), Some(pages)))
            }
            None => Some((self.remote()? as Arc<dyn PageStore>, None)),
        }
    }

    /// Whether the engine that was opened last has to read elsewhere.
    pub(crate) fn are_leaving(&self) -> bool {
        let leaves = self.own.as_ref().is_some_and(|own| !own.has_all_pages());
        leaves && self.reads_own.load(Ordering::SeqCst)
    }

    /// The page nodes over links; `None` if none is known.
    pub(crate) fn remote(&self) -> Option<Arc<RemotePages>> {
        let layout = self.view.layout();
        let mut remote = self.remote.lock();
        if remote.is_none() {
            let parts = self.parts(&layout, &Parts::new());
            let placement = self.placement(&layout, &parts)?;
            let options = RemotePagesOptions::default();
            *remote = Some((RemotePages::open(&self.environment, placement, options), parts));
        }
        remote.as_ref().map(|(remote, _)| Arc::clone(remote))
    }

    /// The page nodes over links, if the pages are divided among them and each part is somewhere.
    pub(crate) fn divided(&self) -> Option<Arc<RemotePages>> {
        let layout = self.view.layout();
        let parts = self.parts(&layout, &Parts::new());
        let is_whole = parts.len() > 1 && parts.values().all(|nodes| !nodes.is_empty());
        is_whole.then(|| self.remote()).flatten()
    }

    /// Pages of all chunks behind `after`, in order; none if there are no more. Each page that
    /// existed at `position` is among them. Blocks until nodes have stored them.
    ///
    /// # Errors
    /// If a chunk has no node that tells its pages.
    pub(crate) fn list(
        &self,
        position: Lsn,
        after: Option<PageId>,
    ) -> Result<Vec<PageId>, ListError> {
        let layout = self.view.layout();
        let parts = self.parts(&layout, &Parts::new());
        let list = |(chunk, nodes): (&ChunkId, &Vec<NodeId>)| {
            let part = layout
                .held_part(*chunk)
                .ok_or_else(|| ListError::Failed(format!("chunk {chunk} is not known any more")))?;
            let mut last = ListError::Failed(format!("no node that has chunk {chunk} is known"));
            for node in nodes.iter().filter_map(|node| layout.node(*node)) {
                let (link, places) = (self.links.to(node), part.places());
                match page_list::list(&link, *chunk, &places, position, after) {
                    Ok(listed) => return Ok(listed.pages),
                    Err(error) => last = error,
                }
            }
            Err(last)
        };
        Ok(merged(parts.iter().map(list).collect::<Result<_, _>>()?))
    }

    /// The nodes that have the pages are those of `layout` from now on.
    pub(crate) fn follow(&self, layout: &Layout) {
        let mut remote = self.remote.lock();
        let Some((pages, before)) = &mut *remote else { return };
        let parts = self.parts(layout, before);
        if parts != *before
            && let Some(placement) = self.placement(layout, &parts)
        {
            pages.set_placement(placement);
            *before = parts;
        }
        self.links.keep(|node| layout.node(node).is_some());
    }

    /// The nodes to read each chunk from. While nobody has a chunk, those that had it may have it
    /// again.
    fn parts(&self, layout: &Layout, before: &Parts) -> Parts {
        let is_whole = layout.chunks().count() == 1;
        let part = |(id, part): (ChunkId, &PagePart)| {
            // An engine that reads all pages over links does so because this node lacks them.
            let nodes = part.nodes.iter().filter(|node| !is_whole || **node != self.own_number);
            let nodes = nodes.filter(|node| layout.node(**node).is_some());
            let mut nodes: Vec<NodeId> = nodes.copied().collect();
            nodes.sort_by_key(|node| layout.are_apart(self.own_number, *node));
            nodes.truncate(MAX_COPIES);
            match before.get(&id) {
                Some(before) if nodes.is_empty() => (id, before.clone()),
                _ => (id, nodes),
            }
        };
        layout.chunks().map(part).collect()
    }

    fn placement(&self, layout: &Layout, parts: &Parts) -> Option<Placement> {
        let numbers: BTreeSet<NodeId> = parts.values().flatten().copied().collect();
        let link = |number: &NodeId| {
            let node = layout.node(*number)?;
            let is_far = layout.are_apart(self.own_number, *number);
            Some(PageNodeLink { node: *number, caller: self.links.to(node), is_far })
        };
        let links: Vec<PageNodeLink> = numbers.iter().filter_map(link).collect();
        if parts.len() == 1 {
            return Placement::everywhere(links).ok();
        }
        // A part without nodes is left out: what is there can be read.
        let known = |node: &NodeId| links.iter().any(|link| link.node == *node);
        let placed = layout.chunks().filter_map(|(id, part)| {
            let nodes: Vec<NodeId> = parts[&id].iter().copied().filter(known).collect();
            let (first, end) = (part.first.0, part.end.0);
            (!nodes.is_empty()).then_some(PlacedPart { first, end, nodes })
        });
        let placed: Vec<PlacedPart> = placed.collect();
        if placed.is_empty() {
            return None;
        }
        Placement::spread(links, layout.extents, placed).ok()
    }

    pub(crate) fn close(&self) {
        if let Some((remote, _)) = &*self.remote.lock() {
            remote.close();
        }
    }
}

/// Lists of chunks as one, as far as all of them surely go: a list may have more behind its end.
fn merged(lists: Vec<Vec<PageId>>) -> Vec<PageId> {
    let end = lists.iter().filter_map(|list| list.last().copied()).min();
    let pages = lists.into_iter().flatten();
    let mut pages: Vec<PageId> = pages.filter(|page| Some(*page) <= end).collect();
    pages.sort_unstable();
    // While a chunk is cut in two, a node may list pages of both.
    pages.dedup();
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_chunks_are_taken_together_in_order() {
        let all: Vec<PageId> = (0..100).map(PageId::from_u64).collect();
        let of_chunk = |chunk: u64, after: Option<PageId>| -> Vec<PageId> {
            let pages = all.iter().filter(|page| page.to_u64() % 7 % 3 == chunk);
            pages.filter(|page| Some(**page) > after).copied().take(4).collect()
        };
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let listed = merged((0..3).map(|chunk| of_chunk(chunk, after)).collect());
            let Some(last) = listed.last() else { break };
            after = Some(*last);
            found.extend(listed);
        }
        assert_eq!(found, all);
    }
}
