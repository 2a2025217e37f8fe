//! What a cluster begins with when it does not begin empty: a moment of an archive.
//!
//! The layout has the moment as a position, so that all founders begin at the same one. Each node
//! keeps it in the file `node.origin` in its directory, as the text that the layout has, from
//! before the node is made: founders that were interrupted go on with it.

use std::io;
use std::path::Path;

use firn_api::Watermarks;
use firn_base::Lsn;
use firn_base::disk::{Disk, create_durable_directory};
use toml::de::DeTable;

use super::{LayoutError, Reader};
use crate::framed_file;

/// The file's name in the node's directory.
const FILE_NAME: &str = "node.origin";

/// A moment of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The URL of the archive.
    pub archive: String,
    /// Everything up to here is there. The cluster's log begins here.
    pub position: Lsn,
    /// Ids below which all were that had been handed out by then.
    pub watermarks: Watermarks,
}

impl Origin {
    /// The lines of the layout's table `[origin]`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Watermarks { trx_id_limit, cts_limit } = self.watermarks;
        // A URL has no control characters.
        let archive = self.archive.replace('\\', "\\\\").replace('"', "\\\"");
        format!(
            "archive = \"{archive}\"\nposition = {}\ntransaction_ids = {trx_id_limit}\n\
             commit_timestamps = {cts_limit}\n",
            self.position,
        )
    }

    fn parse(text: &str) -> Result<Origin, LayoutError> {
        let reader = Reader { text };
        let table = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            reader.refuse(&span, error.message().to_owned())
        })?;
        reader.origin(table.get_ref(), &table.span())
    }

    /// Reads the file of a node's directory, if it has one. Blocks for I/O.
    pub(crate) fn read(disk: &dyn Disk, directory: &Path) -> io::Result<Option<Origin>> {
        let Some(bytes) = framed_file::read(disk, &directory.join(FILE_NAME))? else {
            return Ok(None);
        };
        let text = String::from_utf8(bytes).map_err(io::Error::other)?;
        Origin::parse(&text).map(Some).map_err(io::Error::other)
    }

    /// Writes the file, durably, into a directory, which is made if it is missing. Blocks for I/O.
    pub(crate) fn write(&self, disk: &dyn Disk, directory: &Path) -> io::Result<()> {
        create_durable_directory(disk, directory)?;
        framed_file::write(disk, directory, FILE_NAME, self.to_text().as_bytes())
    }
}
