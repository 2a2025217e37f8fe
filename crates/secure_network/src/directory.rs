//! The directory in which the certificates of a cluster are made.
//!
//! ```text
//!   DIR/authority/certificate.pem   key.pem   next-node
//!   DIR/nodes/NAME/authority.pem    certificate.pem    key.pem     goes to the node's machine
//! ```
//!
//! Only the owner may read any of it. The authority's key stays where it was made, because its
//! holder can make nodes of the cluster.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "secrets need modes that the disk seam does not know"
)]

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::network::{ClusterId, NodeId, NodeIdentity, Roles};

use crate::authority::{Authority, CertificateError, CertificateFacts, CertificateHost, Issued};
use crate::credentials::Credentials;

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
const AUTHORITY: &str = "authority.pem";
const NEXT_NODE: &str = "next-node";
/// Only the owner reads and writes.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Why a command on certificates did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Certificate { path: PathBuf, source: CertificateError },
    #[error("{} has no authority; make one by `firn admin certificates create --dir`", .0.display())]
    NoAuthority(PathBuf),
    #[error(
        "{} has an authority already; --renew makes a new certificate for it, with the same key",
        .0.display()
    )]
    IsThere(PathBuf),
    #[error("node {id} is {owner}; choose another number, or leave --id away")]
    IdTaken { id: NodeId, owner: String },
    #[error("{}: '{text}' is not the number of a node; write the lowest one that no node has had", path.display())]
    NotANumber { path: PathBuf, text: String },
}

/// What is asked of a node's certificate.
#[derive(Debug, Clone)]
pub struct NodeRequest {
    pub name: String,
    /// `None`: the one that the node has, or the next one.
    pub id: Option<NodeId>,
    /// `None`: those that the node has, or all.
    pub roles: Option<Roles>,
    pub hosts: Vec<CertificateHost>,
    pub days: u32,
}

#[derive(Debug, Clone)]
pub struct CertificateDirectory {
    path: PathBuf,
}

impl CertificateDirectory {
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> CertificateDirectory {
        CertificateDirectory { path: path.into() }
    }

    /// Where the files for a node's machine are.
    #[must_use]
    pub fn of_node(&self, name: &str) -> PathBuf {
        self.path.join("nodes").join(name)
    }

    fn of_authority(&self) -> PathBuf {
        self.path.join("authority")
    }

    /// Makes the authority of a new cluster with this id.
    ///
    /// # Errors
    /// If there is one.
    pub fn create(
        &self,
        cluster: ClusterId,
        now: Duration,
        days: u32,
    ) -> Result<CertificateFacts, DirectoryError> {
        let directory = self.of_authority();
        if directory.join(KEY).exists() {
            return Err(DirectoryError::IsThere(self.path.clone()));
        }
        let issued = in_directory(&directory, Authority::create(cluster, now, days))?;
        write_pair(&directory, &issued)?;
        facts(&directory.join(CERTIFICATE))
    }

    /// Makes a new certificate for the authority, which keeps its key, and gives it to all nodes of
    /// this directory. Certificates of nodes stay valid.
    ///
    /// # Errors
    /// If there is no authority.
    pub fn renew(&self, now: Duration, days: u32) -> Result<CertificateFacts, DirectoryError> {
        let (authority, _) = self.authority()?;
        let directory = self.of_authority();
        let certificate = in_directory(&directory, authority.certificate(now, days))?;
        write(&directory.join(CERTIFICATE), certificate.as_bytes())?;
        for node in self.nodes()? {
            write(&node.join(AUTHORITY), certificate.as_bytes())?;
        }
        facts(&directory.join(CERTIFICATE))
    }

    /// The authority, and its certificate.
    fn authority(&self) -> Result<(Authority, Vec<u8>), DirectoryError> {
        let directory = self.of_authority();
        if !directory.join(KEY).exists() {
            return Err(DirectoryError::NoAuthority(self.path.clone()));
        }
        let (certificate, key) = (read(&directory.join(CERTIFICATE))?, read(&directory.join(KEY))?);
        let authority = in_directory(&directory, Authority::read(&certificate, &key))?;
        Ok((authority, certificate))
    }

    /// Makes a key and a certificate for a node, or new ones for a node that has some. A node keeps
    /// its number and roles unless others are asked for.
    ///
    /// # Errors
    /// If there is no authority, or another node has the number.
    pub fn make_node(
        &self,
        request: &NodeRequest,
        now: Duration,
    ) -> Result<CertificateFacts, DirectoryError> {
        let (authority, of_authority) = self.authority()?;
        let directory = self.of_node(&request.name);
        if !firn_base::network::identity::is_node_name(&request.name) {
            let source = CertificateError::Name(request.name.clone());
            return Err(DirectoryError::Certificate { path: self.path.clone(), source });
        }
        let before = match directory.join(CERTIFICATE).exists() {
            true => facts(&directory.join(CERTIFICATE))?.node,
            false => None,
        };
        let node = match request.id.or(before.as_ref().map(|node| node.node)) {
            Some(id) => id,
            None => self.next_node()?,
        };
        self.check_free(node, &request.name)?;
        let roles = request.roles.or(before.map(|node| node.roles));
        let identity = NodeIdentity {
            cluster: authority.cluster(),
            node,
            name: request.name.clone(),
            roles: roles.unwrap_or(Roles::of(&firn_base::network::Role::ALL)),
        };
        let issued = authority.issue(&identity, &request.hosts, now, request.days);
        let issued = in_directory(&directory, issued)?;
        self.note_node(node)?;
        write_pair(&directory, &issued)?;
        write(&directory.join(AUTHORITY), &of_authority)?;
        facts(&directory.join(CERTIFICATE))
    }

    /// The facts of all certificates: the authority's, then the nodes' by name.
    ///
    /// # Errors
    /// If there is no authority, or a file is not a certificate.
    pub fn list(&self) -> Result<Vec<CertificateFacts>, DirectoryError> {
        self.authority()?;
        let nodes = self.nodes()?;
        let mut paths = vec![self.of_authority()];
        paths.extend(nodes);
        paths.iter().map(|path| facts(&path.join(CERTIFICATE))).collect()
    }

    /// The directories of the nodes, by name.
    fn nodes(&self) -> Result<Vec<PathBuf>, DirectoryError> {
        let directory = self.path.join("nodes");
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>),
        };
        let entries = entries.map_err(of_path(&directory))?;
        let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        // A directory without a certificate was left by a command that did not get that far.
        paths.retain(|path| path.join(CERTIFICATE).exists());
        paths.sort();
        Ok(paths)
    }

    fn check_free(&self, id: NodeId, name: &str) -> Result<(), DirectoryError> {
        for path in self.nodes()? {
            let Some(node) = facts(&path.join(CERTIFICATE))?.node else { continue };
            if node.node == id && node.name != name {
                return Err(DirectoryError::IdTaken { id, owner: node.name });
            }
        }
        Ok(())
    }

    /// The lowest number that no node has had, also if its files were removed.
    fn next_node(&self) -> Result<NodeId, DirectoryError> {
        let path = self.of_authority().join(NEXT_NODE);
        if !path.exists() {
            return Ok(NodeId(1));
        }
        let bytes = read(&path)?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        match text.parse() {
            Ok(number) => Ok(NodeId(number)),
            Err(_) => Err(DirectoryError::NotANumber { path, text }),
        }
    }

    fn note_node(&self, node: NodeId) -> Result<(), DirectoryError> {
        let next = self.next_node()?.0.max(node.0.saturating_add(1));
        write(&self.of_authority().join(NEXT_NODE), format!("{next}\n").as_bytes())
    }
}

impl Credentials {
    /// Reads the credentials of a node from its directory.
    ///
    /// # Errors
    /// If a file is missing, or the files do not belong together.
    pub fn from_directory(
        directory: &Path,
        clock: Arc<dyn Clock>,
    ) -> Result<Credentials, DirectoryError> {
        let part = |name| read(&directory.join(name));
        let (authority, certificate, key) = (part(AUTHORITY)?, part(CERTIFICATE)?, part(KEY)?);
        in_directory(directory, Credentials::read(&authority, &certificate, &key, clock))
    }
}

fn of_path(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::Io { path, source }
}

fn in_directory<T>(path: &Path, made: Result<T, CertificateError>) -> Result<T, DirectoryError> {
    made.map_err(|source| DirectoryError::Certificate { path: path.to_owned(), source })
}

fn facts(path: &Path) -> Result<CertificateFacts, DirectoryError> {
    in_directory(path, CertificateFacts::of_pem(&read(path)?))
}

fn read(path: &Path) -> Result<Vec<u8>, DirectoryError> {
    fs::read(path).map_err(of_path(path))
}

/// Writes key and certificate. Between the two the pair does not fit, which readers notice; making
/// it again repairs it.
fn write_pair(directory: &Path, issued: &Issued) -> Result<(), DirectoryError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(directory)
        .map_err(of_path(directory))?;
    write(&directory.join(KEY), issued.key.as_bytes())?;
    write(&directory.join(CERTIFICATE), issued.certificate.as_bytes())
}

/// Replaces a file as a whole.
fn write(path: &Path, bytes: &[u8]) -> Result<(), DirectoryError> {
    let new = path.with_extension("new");
    let written = || {
        // What a killed command left may have another mode.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(FILE_MODE).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().map_err(of_path(path))
}

#[cfg(test)]
mod tests;
