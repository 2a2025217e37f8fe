//! Nodes for measurements: each in a fresh directory that is removed when the node ends, with one
//! tree.

#![allow(clippy::disallowed_methods, reason = "files and sockets of the user who runs the binary")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_api::WriterEpoch;
use firn_base::{Environment, IndexId, SpaceId, TableId};
use firn_engine::log::writer::Purpose;
use firn_engine::mini_transaction::MiniTransaction;
use firn_engine::pages::Restart;
use firn_engine::transaction::{IsolationLevel, Transaction, TransactionSystem};
use firn_format::space::SpacePurpose;
use firn_node::node::{Node, NodeError, NodeOptions};
use firn_storage::local::LocalStorage;
use tempfile::TempDir;

use crate::BenchError;

const SPACE: SpaceId = SpaceId(100);
/// Rows that are loaded in one transaction.
const LOAD_BATCH: u64 = 1000;

/// Makes directories and nodes.
pub(crate) struct Workshop {
    parent: PathBuf,
}

impl Workshop {
    /// Directories go to `parent`, or to the system's temporary directory.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub(crate) fn open(parent: Option<&Path>) -> Result<Workshop, BenchError> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        std::fs::create_dir_all(&parent)?;
        Ok(Workshop { parent })
    }

    /// A fresh directory that is removed when it is dropped.
    pub(crate) fn directory(&self) -> Result<TempDir, BenchError> {
        Ok(tempfile::Builder::new().prefix("firn-bench-").tempdir_in(&self.parent)?)
    }

    /// A node with one empty tree. Blocks for I/O.
    pub(crate) fn node(&self, options: &NodeOptions) -> Result<BenchNode, BenchError> {
        let directory = self.directory()?;
        let environment = Environment::system();
        let storage = LocalStorage::open(&environment, directory.path(), options.storage.clone())
            .map_err(NodeError::from)?;
        let opened = Arc::new(storage.clone());
        let node = Node::open_over(&environment, opened, WriterEpoch::Next, options)?;
        let index = create_tree(node.engine().system())?;
        Ok(BenchNode { node, storage, index, directory })
    }
}

/// A node with one tree, in a fresh directory.
pub(crate) struct BenchNode {
    node: Node,
    storage: LocalStorage,
    index: IndexId,
    directory: TempDir,
}

impl BenchNode {
    pub(crate) fn system(&self) -> &Arc<TransactionSystem> {
        self.node.engine().system()
    }

    pub(crate) fn index(&self) -> IndexId {
        self.index
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn begin(&self, isolation: IsolationLevel) -> Result<Transaction, BenchError> {
        Ok(self.node.engine().begin(isolation)?)
    }

    /// Loads `rows` rows with the keys that `key` returns. Blocks.
    pub(crate) fn load(
        &self,
        rows: u64,
        row_bytes: usize,
        key: impl Fn(u64) -> u64,
    ) -> Result<(), BenchError> {
        let mut payload = vec![0; row_bytes];
        let mut row = 0;
        while row < rows {
            let mut trx = self.begin(IsolationLevel::RepeatableRead)?;
            let end = rows.min(row + LOAD_BATCH);
            for row in row..end {
                fill(&mut payload, row);
                trx.insert(self.index, &key(row).to_be_bytes(), &payload)?;
            }
            row = end;
            trx.commit_without_waiting()?;
        }
        let log = &self.system().pages().log;
        Ok(log.wait_durable(log.end_lsn()).map_err(firn_engine::EngineError::from)?)
    }

    /// Makes the page store bring its pages up to date, so that it leaves the disk alone for a
    /// while. Blocks.
    pub(crate) fn settle(&self) -> Result<(), BenchError> {
        let end = self.system().pages().log.durable_lsn();
        let settled = self.storage.pages.materialise_up_to(end);
        Ok(settled.map_err(firn_engine::EngineError::from)?)
    }

    /// Stops the node and removes its directory. Blocks.
    pub(crate) fn close(self) -> Result<(), NodeError> {
        self.node.close()
    }
}

/// Fills a payload with the number of its row.
pub(crate) fn fill(payload: &mut [u8], row: u64) {
    let number = row.to_le_bytes();
    let length = number.len().min(payload.len());
    payload[..length].copy_from_slice(&number[..length]);
}

/// Checks whether a payload belongs to `row`.
pub(crate) fn check(payload: &[u8], row: u64) -> Result<(), BenchError> {
    if payload.starts_with(&row.to_le_bytes()) { Ok(()) } else { Err(BenchError::WrongRow { row }) }
}

fn create_tree(system: &TransactionSystem) -> Result<IndexId, BenchError> {
    let forest = system.forest();
    forest.spaces().create(SPACE, SpacePurpose::Table, TableId(1))?;
    let mut frames = forest.pages().pool.reserve(1);
    let index = forest.pages().run(|| {
        let mut mtr = MiniTransaction::begin(forest.pages(), Purpose::Forward)?;
        let index = forest.create_root(&mut mtr, &mut frames, SPACE)?;
        let _ = mtr.commit();
        Ok::<_, Restart>(index)
    });
    Ok(index?)
}
