//! Records of releases in which a node had all pages or none.

use std::net::SocketAddr;

use firn_base::network::{Address, ClusterId, NodeId, Roles};
use firn_consensus::MemberId;
use firn_control::{ChunkId, DirectoryId, Epoch};
use serde::{Deserialize, Serialize};

use super::{MemberPlace, Record};
use crate::layout::old::OldLayout;

/// See [`Record`] for the fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OldRecord {
    cluster: ClusterId,
    number: Option<NodeId>,
    name: String,
    directory: DirectoryId,
    incarnation: u64,
    address: Address,
    client_address: Option<Address>,
    listen: Option<SocketAddr>,
    client_listen: Option<SocketAddr>,
    roles: Roles,
    has_control: bool,
    is_member: bool,
    pub(super) held: Option<(ChunkId, Epoch)>,
    told: Vec<Address>,
    pub(super) layout: Option<OldLayout>,
    log_member: Option<MemberPlace>,
    left: Option<MemberId>,
}

impl From<OldRecord> for Record {
    fn from(old: OldRecord) -> Record {
        Record {
            cluster: old.cluster,
            number: old.number,
            name: old.name,
            directory: old.directory,
            incarnation: old.incarnation,
            address: old.address,
            client_address: old.client_address,
            listen: old.listen,
            client_listen: old.client_listen,
            roles: old.roles,
            has_control: old.has_control,
            is_member: old.is_member,
            held: old.held.into_iter().collect(),
            told: old.told,
            layout: old.layout.map(OldLayout::current),
            log_member: old.log_member,
            left: old.left,
        }
    }
}
