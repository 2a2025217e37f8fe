//! The names of a disk: those on the medium, those that the operating system shows, and the changes
//! between them.
//!
//! A change of a name is atomic, including a rename, but it may survive without an earlier one.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::inode::Survival;
use crate::random::Random;

pub(super) type InodeId = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(InodeId),
}

#[derive(Debug)]
enum Change {
    Add { path: PathBuf, node: Node },
    Remove { path: PathBuf, node: Node },
    Rename { from: PathBuf, to: PathBuf, node: Node },
}

impl Change {
    fn is_in(&self, directory: &Path) -> bool {
        let parent = |path: &Path| path.parent() == Some(directory);
        match self {
            Change::Add { path, .. } | Change::Remove { path, .. } => parent(path),
            Change::Rename { from, to, .. } => parent(from) || parent(to),
        }
    }
}

type Tree = BTreeMap<PathBuf, Node>;

#[derive(Debug, Default)]
pub(super) struct Names {
    durable: Tree,
    cached: Tree,
    /// The changes with their numbers.
    changes: Vec<(u64, Change)>,
    next_change: u64,
}

impl Names {
    pub(super) fn file(&self, path: &Path) -> io::Result<InodeId> {
        match self.cached.get(path) {
            Some(Node::File(inode)) => Ok(*inode),
            Some(Node::Directory) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn durable_file(&self, path: &Path) -> Option<InodeId> {
        match self.durable.get(path) {
            Some(Node::File(inode)) => Some(*inode),
            _ => None,
        }
    }

    /// All files that have a name.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, InodeId)> {
        self.cached.iter().filter_map(|(path, node)| match node {
            Node::File(inode) => Some((path.as_path(), *inode)),
            Node::Directory => None,
        })
    }

    pub(super) fn create(&mut self, path: &Path, inode: InodeId) -> io::Result<()> {
        if self.cached.contains_key(path) || is_root(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.check_directory(path.parent().unwrap_or(Path::new("")))?;
        self.add(path, Node::File(inode));
        Ok(())
    }

    pub(super) fn create_directory(&mut self, path: &Path) -> io::Result<()> {
        let mut ancestors: Vec<&Path> = path.ancestors().filter(|path| !is_root(path)).collect();
        ancestors.reverse();
        for path in ancestors {
            match self.cached.get(path) {
                Some(Node::Directory) => {}
                Some(Node::File(_)) => return Err(ErrorKind::AlreadyExists.into()),
                None => self.add(path, Node::Directory),
            }
        }
        Ok(())
    }

    pub(super) fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.check_directory(directory)?;
        let inside = self.cached.keys().filter(|path| path.parent() == Some(directory));
        Ok(inside.cloned().collect())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let node = Node::File(self.file(path)?);
        self.cached.remove(path);
        self.push(Change::Remove { path: path.to_owned(), node });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = Node::File(self.file(from)?);
        self.check_directory(to.parent().unwrap_or(Path::new("")))?;
        if self.cached.get(to) == Some(&Node::Directory) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let change = Change::Rename { from: from.to_owned(), to: to.to_owned(), node };
        apply(&mut self.cached, &change);
        self.push(change);
        Ok(())
    }

    pub(super) fn check_directory(&self, path: &Path) -> io::Result<()> {
        match self.cached.get(path) {
            Some(Node::Directory) => Ok(()),
            None if is_root(path) => Ok(()),
            Some(Node::File(_)) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn add(&mut self, path: &Path, node: Node) {
        self.cached.insert(path.to_owned(), node);
        self.push(Change::Add { path: path.to_owned(), node });
    }

    fn push(&mut self, change: Change) {
        self.changes.push((self.next_change, change));
        self.next_change += 1;
    }

    /// The number of changes so far, which a sync that is called now covers.
    pub(super) fn mark(&self) -> u64 {
        self.next_change
    }

    /// Makes the changes before `mark` in `directory` durable.
    pub(super) fn sync(&mut self, directory: &Path, mark: u64) {
        let (synced, rest) = std::mem::take(&mut self.changes)
            .into_iter()
            .partition(|(number, change)| *number < mark && change.is_in(directory));
        self.changes = rest;
        let synced: Vec<(u64, Change)> = synced;
        synced.iter().for_each(|(_, change)| apply(&mut self.durable, change));
    }

    /// Cuts the power and restores it.
    pub(super) fn lose_power(&mut self, random: &Random) {
        let changes = std::mem::take(&mut self.changes);
        let survival = Survival::draw(random);
        let prefix = random.index(changes.len() + 1);
        for (index, (_, change)) in changes.iter().enumerate() {
            let survives = match survival {
                Survival::Nothing => false,
                Survival::Everything => true,
                Survival::Prefix => index < prefix,
                Survival::Scattered => random.chance(0.5),
            };
            if survives {
                apply(&mut self.durable, change);
            }
        }
        drop_orphans(&mut self.durable);
        self.cached = self.durable.clone();
    }
}

fn is_root(path: &Path) -> bool {
    path.parent().is_none()
}

fn apply(tree: &mut Tree, change: &Change) {
    match change {
        Change::Add { path, node } => {
            tree.insert(path.clone(), *node);
        }
        Change::Remove { path, node } => remove_if_same(tree, path, *node),
        Change::Rename { from, to, node } => {
            remove_if_same(tree, from, *node);
            tree.insert(to.clone(), *node);
        }
    }
}

fn remove_if_same(tree: &mut Tree, path: &Path, node: Node) {
    if tree.get(path) == Some(&node) {
        tree.remove(path);
    }
}

/// Drops the entries of lost directories. Parents sort before their entries.
fn drop_orphans(tree: &mut Tree) {
    let mut kept = Tree::new();
    for (path, node) in std::mem::take(tree) {
        let reachable = path
            .parent()
            .is_none_or(|parent| is_root(parent) || kept.get(parent) == Some(&Node::Directory));
        if reachable {
            kept.insert(path, node);
        }
    }
    *tree = kept;
}
