//! A node joins a cluster that runs, by hand: it is told where control nodes are, and what it may
//! be used for.
//!
//! The node draws a number for its directory and writes it down before it asks. So a request that
//! is repeated, in this life or a later one, is known as the same.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_control::{Applied, Catalog, Proposal};
use firn_control_service::{Administrator, ClientOptions, ProposeError};
use firn_link::{LinkError, LocalNode, meet};

use crate::layout::catalog::join_request;
use crate::layout::{Layout, NodeEntry, node_problem};
use crate::record::{Record, RecordError, RecordFile};

/// How long one control node has to say which cluster it is of.
const MEETING: Duration = Duration::from_secs(2);
/// How long control has to take the node.
const JOINING: Duration = Duration::from_secs(10);
/// How often a request whose outcome is unknown is made.
const ATTEMPTS: u32 = 3;

/// What a node that joins is told.
#[derive(Debug, Clone)]
pub struct JoinRequest {
    /// Control nodes of the cluster, at least one of those that run.
    pub told: Vec<Address>,
    pub name: String,
    pub roles: Roles,
    /// What fails together with it. It is a standby if the other nodes there are.
    pub zone: String,
    /// Its zone follows the others. Only the first node of a zone decides that.
    pub is_standby: bool,
    /// Where the other nodes reach it.
    pub address: Address,
    /// Where clients reach it while its engine runs.
    pub client_address: Option<Address>,
    /// Whom the node's certificate is of, if it has one.
    pub certified: Option<NodeIdentity>,
}

/// Why a node does not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("{0}")]
    Impossible(String),
    #[error(
        "the certificate is of {certified} with the roles {}, and {name} is to join with the roles {roles}; make another certificate (firn admin certificates node)",
        certified.roles
    )]
    Certificate { certified: Box<NodeIdentity>, name: String, roles: Roles },
    /// Nobody at the addresses is a node of a cluster without certificates.
    #[error(
        "no control node answers: {0}. Check the addresses of --join; a cluster with certificates wants --cluster-certificates"
    )]
    Nobody(LinkError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Control(#[from] ProposeError),
    #[error("control has not founded the cluster yet; try again later")]
    Unfounded,
}

/// Has control take a node with this directory, unless it has done so in an earlier life. After
/// that [`crate::RunningProcess::start`] needs no layout. Blocks for I/O and for control.
///
/// # Errors
/// [`JoinError`]
pub fn join(
    environment: &Environment,
    directory: &Path,
    request: &JoinRequest,
) -> Result<(), JoinError> {
    check(request)?;
    let found = RecordFile::read(&*environment.disk, directory)?;
    let mut record = match found {
        Some(found) => found,
        None => new_record(environment, request)?,
    };
    let wanted = NodeIdentity { name: request.name.clone(), ..record.identity() };
    if record.name != request.name || record.roles != request.roles {
        let (found, wanted) = (Box::new(record.identity()), Box::new(wanted));
        return Err(RecordError::OtherNode { found, wanted }.into());
    }
    record.address.clone_from(&request.address);
    record.client_address.clone_from(&request.client_address);
    record.told.clone_from(&request.told);
    let file = RecordFile::write(&environment.disk, directory, record)?;
    if file.get().layout.is_none() {
        let (number, layout) = ask(environment, &file.get(), request.is_standby)?;
        file.change(|record| {
            record.number = Some(number);
            record.layout = Some(layout);
        })?;
    }
    Ok(())
}

fn check(request: &JoinRequest) -> Result<(), JoinError> {
    let node = request.entry(NodeId(1));
    if let Some(problem) = node_problem(&node) {
        return Err(JoinError::Impossible(problem));
    }
    let may_join =
        [Role::Pages, Role::Log, Role::Database, Role::Control, Role::Replica, Role::Proxy];
    if let Some(role) =
        Role::ALL.into_iter().find(|role| node.has(*role) && !may_join.contains(role))
    {
        let what =
            format!("nodes with the role {} are those that the cluster began with", role.name());
        return Err(JoinError::Impossible(format!(
            "{what}; join with pages, log, database+log, control, replica or proxy"
        )));
    }
    if node.roles == Roles::default() {
        return Err(JoinError::Impossible("a node has at least one role".to_owned()));
    }
    match &request.certified {
        Some(own) if own.name != request.name || own.roles != request.roles => {
            let (name, roles) = (request.name.clone(), request.roles);
            Err(JoinError::Certificate { certified: Box::new(own.clone()), name, roles })
        }
        _ => Ok(()),
    }
}

impl JoinRequest {
    fn entry(&self, number: NodeId) -> NodeEntry {
        NodeEntry {
            number,
            name: self.name.clone(),
            address: self.address.clone(),
            client_address: self.client_address.clone(),
            roles: self.roles,
            zone: self.zone.clone(),
            is_standby: self.is_standby,
        }
    }
}

fn new_record(environment: &Environment, request: &JoinRequest) -> Result<Record, JoinError> {
    let (cluster, number) = match &request.certified {
        Some(own) => (own.cluster, own.node),
        None => (cluster_at(environment, request)?, NodeId(0)),
    };
    Ok(Record::new(environment, cluster, &request.entry(number)))
}

/// The cluster of the first control node that answers.
fn cluster_at(environment: &Environment, request: &JoinRequest) -> Result<ClusterId, JoinError> {
    let own = NodeIdentity {
        cluster: ClusterId(0),
        node: NodeId(0),
        name: request.name.clone(),
        roles: request.roles,
    };
    let mut last = None;
    for address in &request.told {
        match meet(environment, address, own.clone(), MEETING) {
            Ok(node) => return Ok(node.cluster),
            Err(error) => last = Some(error),
        }
    }
    let none = || JoinError::Impossible("--join names no control node".to_owned());
    Err(last.map_or_else(none, JoinError::Nobody))
}

/// Asks control to take the node. Returns its number, and the cluster.
fn ask(
    environment: &Environment,
    record: &Record,
    is_standby: bool,
) -> Result<(NodeId, Layout), JoinError> {
    let local = Arc::new(LocalNode::new(record.identity(), 0));
    let options = ClientOptions::default();
    let administrator = Administrator::new(environment, &local, &record.told, &options);
    // The node knows its zone from the layout, which it does not have yet.
    let own = NodeEntry { is_standby, ..record.entry() };
    let request = join_request(record.cluster, &own, record.directory);
    let proposal = || Proposal::Join(request.clone());
    let mut answer = administrator.propose(proposal(), JOINING);
    for _ in 1..ATTEMPTS {
        if matches!(answer, Err(ProposeError::Unknown(_))) {
            answer = administrator.propose(proposal(), JOINING);
        }
    }
    let Applied::Node(number) = answer? else { return Err(JoinError::Unfounded) };
    let catalog: Catalog = administrator.catalog(0, JOINING)?;
    Ok((number, Layout::of_catalog(&catalog).ok_or(JoinError::Unfounded)?))
}
