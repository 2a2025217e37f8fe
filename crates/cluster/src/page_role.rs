//! A process's page node.

use std::path::Path;
use std::sync::Arc;

use firn_api::LogStore;
use firn_base::Environment;
use firn_storage::local::PageStoreOptions;
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions};

use crate::layout::{Layout, NodeEntry};
use crate::log_member::database_of;
use crate::process::ProcessError;

/// The node's pages are in this directory below the process's own.
const DIRECTORY: &str = "page-node";

/// Opens the page node over a log. Blocks for I/O and for the log's answer.
pub(crate) fn open(
    environment: &Environment,
    directory: &Path,
    (layout, node): (&Layout, &NodeEntry),
    log: Arc<dyn LogStore>,
    pages: PageStoreOptions,
) -> Result<Arc<PageNode>, ProcessError> {
    let options = PageNodeOptions {
        log: ReceivedLogOptions { name: node.name.clone(), ..ReceivedLogOptions::default() },
        pages,
    };
    let path = directory.join(DIRECTORY);
    Ok(PageNode::open(environment, &path, database_of(layout), log, options)?)
}
