//! What a node keeps of itself: who it is, and the cluster as control described it last.
//!
//! The file `node.record` in the node's directory has it.
//! It is a [framed file](crate::framed_file). `docs/formats/cluster.md` describes the record.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_base::disk::{DirectoryLock, Disk, create_durable_directory};
use firn_base::event::Event;
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Roles};
use firn_base::{Environment, Lsn};
use firn_consensus::MemberId;
use firn_control::{ChunkId, DirectoryId, Epoch};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use self::old::{RecordOfFoundedControl, RecordOfOneChunk, RecordWithoutZone};
use crate::framed_file::{self, exact};
use crate::layout::parts::HeldPart;
use crate::layout::{Layout, NodeEntry};

/// The file's name in the node's directory.
pub(crate) const FILE_NAME: &str = "node.record";
const MAGIC: [u8; 4] = *b"FnNd";
const VERSION: u8 = 7;
/// Records of this version do not say which pages the node has of a chunk: it has all.
const WITHOUT_PARTS: u8 = 6;
/// In records of this version, control nodes are those of the founding.
const FOUNDED_CONTROL: u8 = 5;
/// Records of this version have no zone.
const WITHOUT_ZONE: u8 = 4;
/// In records of this version, nodes have all pages or none.
const ONE_CHUNK: u8 = 3;
/// Records of this version have nothing behind the layout either.
const WITHOUT_MEMBER: u8 = 2;

/// The record. The order of the fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) cluster: ClusterId,
    /// The node's number, once the cluster has given it one.
    pub(crate) number: Option<NodeId>,
    pub(crate) name: String,
    /// Drawn when the directory was made.
    pub(crate) directory: DirectoryId,
    /// How often the node has started.
    pub(crate) incarnation: u64,
    pub(crate) address: Address,
    pub(crate) client_address: Option<Address>,
    /// Where it listens for the other nodes, if that is not its address.
    pub(crate) listen: Option<SocketAddr>,
    /// Where it listens for clients, if that is not its address for clients.
    pub(crate) client_listen: Option<SocketAddr>,
    pub(crate) roles: Roles,
    /// Control has taken the node with this directory, so its parts may be made.
    pub(crate) is_member: bool,
    /// The chunks that the node has, whole, each as of its last change.
    pub(crate) held: BTreeMap<ChunkId, Epoch>,
    /// Control nodes that the node was told of when it joined.
    pub(crate) told: Vec<Address>,
    /// The cluster, as control described it last.
    pub(crate) layout: Option<Layout>,
    /// The member of the log group that the node has.
    pub(crate) log_member: Option<MemberPlace>,
    /// The last member that the node had and gave up. Orders about it, and about earlier ones, come
    /// late.
    pub(crate) left: Option<MemberId>,
    /// What fails together with the node.
    pub(crate) zone: String,
    /// How often a standby has taken the cluster over. Nodes that have missed it do not go on.
    pub(crate) generation: u64,
    /// Up to here the log is as it was before the last of them.
    pub(crate) taken_over_at: Lsn,
    /// The member of the control group that the node has.
    pub(crate) control_member: Option<MemberPlace>,
    /// The last one that it had and gave up.
    pub(crate) control_left: Option<MemberId>,
    /// Which pages the node has of each chunk that it has. What is missing here is as the layout
    /// says.
    pub(crate) parts: BTreeMap<ChunkId, HeldPart>,
}

/// Which member of a group a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberPlace {
    pub(crate) member: MemberId,
    /// Whether the group was founded with it. Others begin with an empty log.
    pub(crate) is_founder: bool,
    /// Its files were made. Without them the member has forgotten what it promised, so it is not
    /// made again.
    pub(crate) is_made: bool,
}

/// Why the record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{} is damaged or of another release; start the node with the release that wrote it, or let it join again with an empty directory",
        path.display()
    )]
    Unreadable { path: PathBuf },
    #[error("the directory is that of {found}, and {wanted} is to start; check the directory")]
    OtherNode { found: Box<NodeIdentity>, wanted: Box<NodeIdentity> },
    #[error("another process uses {}; stop it first", path.display())]
    Locked { path: PathBuf },
}

impl Record {
    /// A node that starts for the first time.
    pub(crate) fn new(environment: &Environment, cluster: ClusterId, node: &NodeEntry) -> Record {
        let high = u128::from(environment.random.next_u64());
        Record {
            cluster,
            number: Some(node.number).filter(|number| number.0 != 0),
            name: node.name.clone(),
            // 0 is no directory.
            directory: DirectoryId(high << 64 | u128::from(environment.random.next_u64() | 1)),
            incarnation: 0,
            address: node.address.clone(),
            client_address: node.client_address.clone(),
            listen: None,
            client_listen: None,
            roles: node.roles,
            is_member: false,
            held: BTreeMap::new(),
            told: Vec::new(),
            layout: None,
            log_member: None,
            left: None,
            zone: node.zone.clone(),
            generation: 0,
            taken_over_at: Lsn(0),
            control_member: None,
            control_left: None,
            parts: BTreeMap::new(),
        }
    }

    /// Notes which pages the node has of chunks of which it does not say so.
    pub(crate) fn note_parts(&mut self, layout: &Layout) {
        for chunk in self.held.keys() {
            if let (false, Some(part)) = (self.parts.contains_key(chunk), layout.held_part(*chunk))
            {
                self.parts.insert(*chunk, part);
            }
        }
    }

    /// The node as the others know it. Its number is 0 before it has joined.
    pub(crate) fn entry(&self) -> NodeEntry {
        NodeEntry {
            number: self.number.unwrap_or_default(),
            name: self.name.clone(),
            address: self.address.clone(),
            client_address: self.client_address.clone(),
            roles: self.roles,
            zone: self.zone.clone(),
            is_standby: self.is_standby(),
        }
    }

    /// Whether the node's zone follows the others, as far as the node has been told.
    fn is_standby(&self) -> bool {
        let known = self.layout.as_ref().zip(self.number);
        known.and_then(|(layout, number)| layout.node(number)).is_some_and(|node| node.is_standby)
    }

    pub(crate) fn identity(&self) -> NodeIdentity {
        NodeIdentity {
            cluster: self.cluster,
            node: self.number.unwrap_or_default(),
            name: self.name.clone(),
            roles: self.roles,
        }
    }

    fn encode(&self) -> Vec<u8> {
        framed_file::frame(MAGIC, VERSION, self)
    }

    /// `None` if the bytes are no record of this version.
    fn decode(bytes: &[u8]) -> Option<Record> {
        let (version, body) = framed_file::unframe(MAGIC, bytes)?;
        match version {
            VERSION => exact(body),
            WITHOUT_PARTS => exact(&[body, &[0]].concat()),
            FOUNDED_CONTROL => exact::<RecordOfFoundedControl>(body).map(Record::from),
            WITHOUT_ZONE => exact::<RecordWithoutZone>(body).map(Record::from),
            ONE_CHUNK => exact::<RecordOfOneChunk>(body).map(Record::from),
            WITHOUT_MEMBER => {
                let nothing = [0, 0];
                let record = exact::<RecordOfOneChunk>(&[body, &nothing].concat());
                record.map(Record::from).map(Record::with_founder)
            }
            _ => None,
        }
    }

    /// Nodes that did not note their member had one from the founding on.
    fn with_founder(mut self) -> Record {
        let member = self.layout.as_ref().zip(self.number);
        let member = member.and_then(|(layout, number)| layout.log_member_on(number));
        self.log_member = member.filter(|_| self.is_member).map(|member| MemberPlace {
            member,
            is_founder: true,
            is_made: true,
        });
        self
    }
}

/// The record of a directory, in memory and on disk.
pub(crate) struct RecordFile {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// The mutex is a leaf.
    state: Mutex<State>,
    /// Notified when a change ends.
    changed: Event,
    _lock: Box<dyn DirectoryLock>,
}

struct State {
    /// As it is on disk.
    record: Record,
    /// Somebody writes the file. Who changes the record too waits.
    is_changing: bool,
}

impl RecordFile {
    /// The record of a directory, if it has one. Blocks for I/O.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn read(disk: &dyn Disk, directory: &Path) -> Result<Option<Record>, RecordError> {
        let path = directory.join(FILE_NAME);
        let bytes = match framed_file::read(disk, &path) {
            Err(source) => return Err(RecordError::Io { path, source }),
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => bytes,
        };
        let record = Record::decode(&bytes).ok_or(RecordError::Unreadable { path })?;
        Ok(Some(record))
    }

    /// Keeps others from using a directory for as long as the result lives. Blocks for I/O.
    ///
    /// # Errors
    /// If another process uses it, or it cannot be locked.
    pub(crate) fn lock(
        disk: &dyn Disk,
        directory: &Path,
    ) -> Result<Box<dyn DirectoryLock>, RecordError> {
        disk.lock_directory(directory).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => RecordError::Locked { path: directory.to_owned() },
            _ => RecordError::Io { path: directory.join(FILE_NAME), source },
        })
    }

    /// Writes a record into a directory, which is made if it is missing, and keeps others from
    /// using it. Blocks for I/O.
    ///
    /// # Errors
    /// If another process uses the directory, or the file cannot be written.
    pub(crate) fn write(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        record: Record,
    ) -> Result<RecordFile, RecordError> {
        let at = |source| RecordError::Io { path: directory.join(FILE_NAME), source };
        create_durable_directory(&**disk, directory).map_err(at)?;
        let lock = RecordFile::lock(&**disk, directory)?;
        write(&**disk, directory, &record).map_err(at)?;
        let (disk, directory) = (Arc::clone(disk), directory.to_owned());
        let state = Mutex::new(State { record, is_changing: false });
        Ok(RecordFile { disk, directory, state, changed: Event::new(), _lock: lock })
    }

    pub(crate) fn get(&self) -> Record {
        self.state.lock().record.clone()
    }

    /// See [`Record::number`].
    pub(crate) fn number(&self) -> Option<NodeId> {
        self.state.lock().record.number
    }

    /// See [`Record::generation`].
    pub(crate) fn generation(&self) -> u64 {
        self.state.lock().record.generation
    }

    /// See [`Record::held`].
    pub(crate) fn held(&self) -> BTreeMap<ChunkId, Epoch> {
        self.state.lock().record.held.clone()
    }

    /// The epoch of a chunk that the node has.
    pub(crate) fn held_epoch(&self, chunk: ChunkId) -> Option<Epoch> {
        self.state.lock().record.held.get(&chunk).copied()
    }

    /// See [`Record::parts`].
    pub(crate) fn part(&self, chunk: ChunkId) -> Option<HeldPart> {
        self.state.lock().record.parts.get(&chunk).copied()
    }

    /// The parts of the other chunks that the node has.
    pub(crate) fn parts_beside(&self, chunk: ChunkId) -> Vec<HeldPart> {
        let state = self.state.lock();
        let others = state.record.parts.iter().filter(|(other, _)| **other != chunk);
        others.map(|(_, part)| *part).collect()
    }

    /// See [`Record::log_member`].
    pub(crate) fn log_member(&self) -> Option<MemberPlace> {
        self.state.lock().record.log_member
    }

    /// Changes the record, on disk first: until it is there, others see it as before. Blocks for
    /// I/O.
    ///
    /// # Errors
    /// If the file cannot be written. Then the record is as before.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Record)) -> Result<(), RecordError> {
        let before = self.begin_change();
        let mut changed = before.clone();
        change(&mut changed);
        let written = match changed == before {
            true => Ok(()),
            false => write(&*self.disk, &self.directory, &changed),
        };
        let mut state = self.state.lock();
        if written.is_ok() {
            state.record = changed;
        }
        state.is_changing = false;
        drop(state);
        self.changed.notify_all();
        let path = || self.directory.join(FILE_NAME);
        written.map_err(|source| RecordError::Io { path: path(), source })
    }

    /// Waits until nobody changes the record. Nobody else does until the caller ends its change.
    fn begin_change(&self) -> Record {
        let mut begun = None;
        self.changed.wait_until(None, || {
            let mut state = self.state.lock();
            if !state.is_changing {
                state.is_changing = true;
                begun = Some(state.record.clone());
            }
            begun.is_some()
        });
        begun.expect("the wait ends when the change has begun")
    }
}

fn write(disk: &dyn Disk, directory: &Path, record: &Record) -> io::Result<()> {
    framed_file::write(disk, directory, FILE_NAME, &record.encode())
}

mod old;
#[cfg(test)]
mod tests;
