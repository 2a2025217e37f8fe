//! A process's page node: the chunks that it has, gets and gives away.
//!
//! Each chunk has a directory, a store and a task ([`crate::page_chunk`]). Readers see those that
//! are open as one store ([`crate::open_chunks`]). A chunk that the node got while the cluster had
//! no other one is in the page node's directory itself, and the others are in directories below it.
//!
//! An engine of the process reads that one store, too: while it runs, chunks are cut in two.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_api::{PageStore, PageStoreError};
use firn_base::{Environment, Lsn, PageId};
use firn_control::{ChunkId, ChunkReport, OperationId, Progress};
use firn_storage::local::{OpenError, PageStoreOptions};
use firn_storage::page_node::{PageNodeStatus, ReceivedLogOptions};
use parking_lot::Mutex;

use crate::layout::parts::HeldPart;
use crate::message::PagesStatus;
use crate::page_chunk::{
    OwnChunk, PageChunk, PageChunkOptions, PageParts, PagesOptions, remove_pages,
};
use crate::page_order::PageOrder;
use crate::view::View;

/// The node's pages are in this directory below the process's own.
pub(crate) const DIRECTORY: &str = "page-node";
/// A chunk's pages are in the directory of this name and its number, unless it was alone.
const CHUNK_PREFIX: &str = "chunk-";

/// The chunks of a process's page node.
pub(crate) struct PageRole {
    environment: Environment,
    options: PagesOptions,
    parts: Arc<PageParts>,
    view: Arc<View>,
    chunks: Mutex<BTreeMap<ChunkId, Arc<PageChunk>>>,
}

/// All pages, at this process, while an engine reads them.
pub(crate) struct OwnPages {
    pub(crate) store: Arc<dyn PageStore>,
    view: Arc<View>,
    chunks: BTreeMap<ChunkId, OwnChunk>,
}

impl OwnPages {
    /// Blocks until everything that ends at or before `lsn` is in stored images.
    ///
    /// # Errors
    /// An error of the disk or the log.
    pub(crate) fn materialise_up_to(&self, lsn: Lsn) -> Result<(), PageStoreError> {
        self.chunks.values().try_for_each(|chunk| chunk.node.materialise_up_to(lsn))
    }

    /// Stored pages behind `after`, in order; fewer than `limit` at the end only. `None` if a chunk
    /// was cut in two since this was made: it may have dropped some.
    pub(crate) fn stored_pages(&self, after: Option<PageId>, limit: usize) -> Option<Vec<PageId>> {
        let stored = |chunk: &OwnChunk| chunk.node.stored_pages(after, limit);
        let mut pages: Vec<PageId> = self.chunks.values().flat_map(stored).collect();
        pages.sort_unstable();
        pages.dedup();
        pages.truncate(limit);
        // Chunks follow the layout, so nothing was dropped if it is as it was.
        let layout = self.view.layout();
        layout.chunks().map(|(id, _)| id).eq(self.chunks.keys().copied()).then_some(pages)
    }

    /// The states of the chunks.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = PageNodeStatus> + '_ {
        self.chunks.values().map(|chunk| chunk.node.status())
    }
}

/// Where a chunk's pages are below those of the page node.
pub(crate) fn chunk_path(pages: &Path, id: ChunkId, part: &HeldPart) -> PathBuf {
    match part.is_alone {
        true => pages.to_owned(),
        false => pages.join(format!("{CHUNK_PREFIX}{id}")),
    }
}

impl PageRole {
    /// Begins to open the chunks that the node has. Requests are answered once they are open.
    pub(crate) fn start(
        environment: &Environment,
        options: PagesOptions,
        parts: PageParts,
        view: &Arc<View>,
    ) -> PageRole {
        let role = PageRole {
            environment: environment.clone(),
            options,
            parts: Arc::new(parts),
            view: Arc::clone(view),
            chunks: Mutex::default(),
        };
        role.remove_leftovers();
        for chunk in role.parts.record.held().into_keys() {
            role.chunk(chunk, None);
        }
        role
    }

    /// Removes what copies have left that were interrupted, and that nobody may order again.
    fn remove_leftovers(&self) {
        let (disk, held) = (&*self.environment.disk, self.parts.record.held());
        for path in disk.list(&self.options.path).unwrap_or_default() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let number = name.strip_prefix(CHUNK_PREFIX).and_then(|number| number.parse().ok());
            if number.is_some_and(|number| !held.contains_key(&ChunkId(number))) {
                remove_pages(disk, &path);
            }
        }
    }

    /// The chunk, which begins if it is new here, with what the node has of it, or with `wanted`.
    /// `None` if neither is known.
    fn chunk(&self, id: ChunkId, wanted: Option<&HeldPart>) -> Option<Arc<PageChunk>> {
        let mut chunks = self.chunks.lock();
        if let Some(chunk) = chunks.get(&id) {
            return Some(Arc::clone(chunk));
        }
        let layout = self.view.layout();
        let known = || wanted.copied().or_else(|| layout.held_part(id));
        let Some(part) = self.parts.record.part(id).or_else(known) else {
            tracing::warn!(chunk = id.0, "this node knows of no such chunk of pages yet");
            return None;
        };
        let (options, count) = (&self.options, layout.chunks().count());
        let kept = PagesOptions {
            path: chunk_path(&options.path, id, &part),
            pages: share(&options.pages, count),
            origin: options.origin.clone().filter(|_| part.is_alone),
            ..options.clone()
        };
        let options = PageChunkOptions {
            chunk: id,
            part,
            name: self.parts.log.chunk_name(id, part.is_alone),
            kept,
            log_memory_bytes: (ReceivedLogOptions::default().memory_bytes / count).max(4 << 20),
        };
        let chunk = Arc::new(PageChunk::start(&self.environment, options, &self.parts));
        chunks.insert(id, Arc::clone(&chunk));
        Some(chunk)
    }

    fn all(&self) -> Vec<(ChunkId, Arc<PageChunk>)> {
        self.chunks.lock().iter().map(|(id, chunk)| (*id, Arc::clone(chunk))).collect()
    }

    /// All chunks of the cluster, if each one is known here.
    fn whole(&self) -> Option<Vec<(ChunkId, Arc<PageChunk>)>> {
        let layout = self.view.layout();
        let chunks = self.chunks.lock();
        layout.chunks().map(|(id, _)| Some((id, chunks.get(&id).cloned()?))).collect()
    }

    /// Whether the node has all pages, open or not, and nobody has ordered it to delete any.
    pub(crate) fn has_all_pages(&self) -> bool {
        self.whole().is_some_and(|chunks| chunks.iter().all(|(_, chunk)| chunk.stays()))
    }

    /// All pages, if the node has them open, for an engine. They are not closed while the engine
    /// has them.
    pub(crate) fn own_pages(&self) -> Option<OwnPages> {
        let chunks = self.whole()?.into_iter().map(|(id, one)| Some((id, one.own()?)));
        let chunks = chunks.collect::<Option<_>>()?;
        Some(OwnPages { store: self.parts.open.store(), view: Arc::clone(&self.view), chunks })
    }

    /// From where on the node needs the log, if all that it has is open.
    pub(crate) fn kept_from(&self) -> Option<Lsn> {
        let status = self.status().filter(|status| status.is_open)?;
        Some(status.kept_from)
    }

    /// Opens what is open again: the log that it follows goes.
    pub(crate) fn change_log(&self) {
        self.parts.log.change();
        self.all().iter().for_each(|(_, chunk)| chunk.change_log());
    }

    pub(crate) fn order(&self, order: PageOrder) {
        if let Some(chunk) = self.chunk(order.chunk, order.act.wanted()) {
            chunk.order(order);
        }
    }

    /// What the node has, for control. Called at a steady rate.
    pub(crate) fn report(&self) -> Vec<(ChunkId, ChunkReport)> {
        self.forget_idle();
        let chunks = self.all();
        chunks.iter().for_each(|(_, chunk)| chunk.sample());
        let reports = chunks.iter().filter_map(|(id, chunk)| Some((*id, chunk.report()?)));
        reports.collect()
    }

    /// Ends the tasks of chunks that the node does not have any more.
    fn forget_idle(&self) {
        let idle: Vec<_> = {
            let mut chunks = self.chunks.lock();
            chunks.extract_if(.., |_, chunk| chunk.is_idle()).map(|(_, chunk)| chunk).collect()
        };
        idle.iter().for_each(|chunk| chunk.close());
    }

    /// How far the copies under way are.
    pub(crate) fn copied(&self) -> Vec<(OperationId, Progress)> {
        self.all().iter().filter_map(|(_, chunk)| chunk.copied()).collect()
    }

    /// Why the process must end: a directory of the node cannot be used.
    pub(crate) fn failure(&self) -> Option<Arc<OpenError>> {
        self.all().iter().find_map(|(_, chunk)| chunk.failure())
    }

    /// The node's state. `None` if it has no pages, and gets none.
    pub(crate) fn status(&self) -> Option<PagesStatus> {
        let mut chunks = self.all();
        // What is copied is waited for by control alone, unless there is nothing else.
        if chunks.iter().any(|(_, chunk)| chunk.is_held()) {
            chunks.retain(|(_, chunk)| chunk.is_held());
        }
        chunks.iter().filter_map(|(_, chunk)| chunk.status()).reduce(PagesStatus::and)
    }

    /// Closes all chunks. Blocks until their I/O is done.
    pub(crate) fn close(&self) {
        self.all().iter().for_each(|(_, chunk)| chunk.close());
        self.parts.log.close();
    }
}

impl PagesStatus {
    /// The state of two chunks.
    fn and(self, other: PagesStatus) -> PagesStatus {
        PagesStatus {
            is_open: self.is_open && other.is_open,
            kept_from: self.kept_from.min(other.kept_from),
            received: self.received.min(other.received),
            applied: self.applied.min(other.applied),
            behind_ms: self.behind_ms.max(other.behind_ms),
            images_per_second: self.images_per_second + other.images_per_second,
            failure: self.failure.or(other.failure),
        }
    }
}

/// The part of a node's memory and work that each of `count` chunks has.
fn share(options: &PageStoreOptions, count: usize) -> PageStoreOptions {
    let part = count.max(1) as u64;
    let bytes = |all: u64, least: u64| (all / part).max(least.min(all));
    PageStoreOptions {
        queue_bytes: bytes(options.queue_bytes as u64, 1 << 20) as usize,
        grow_bytes: bytes(options.grow_bytes, 4 << 20),
        reserve_bytes: bytes(options.reserve_bytes, 2 << 20),
        idle_pages_per_second: (options.idle_pages_per_second / part as u32).max(1),
        ..options.clone()
    }
}
