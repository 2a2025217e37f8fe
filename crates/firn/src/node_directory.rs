//! The directories of nodes of clusters: commands about a standalone server refuse them.

use std::path::Path;

use firn_base::Environment;

use crate::CommandError;

/// Refuses the directory of a node of a cluster, for commands that want that of a standalone
/// server.
///
/// # Errors
/// If the directory has the files of a node.
pub(crate) fn refuse_node_directory(path: &Path) -> Result<(), CommandError> {
    match firn_cluster::is_node_directory(&*Environment::system().disk, path) {
        false => Ok(()),
        true => Err(CommandError::Usage(format!(
            "{} has the files of a node of a cluster; firn start --data-dir runs it",
            path.display()
        ))),
    }
}
