//! Records of earlier releases.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use firn_base::Lsn;
use firn_base::network::{Address, ClusterId, NodeId, Roles};
use firn_consensus::MemberId;
use firn_control::{ChunkId, DirectoryId, Epoch};
use serde::{Deserialize, Serialize};

use super::{MemberPlace, Record};
use crate::layout::old::{LayoutOfOneChunk, LayoutWithoutZones};
use crate::layout::{DEFAULT_ZONE, Layout};

/// A record of a time in which a node had all pages or none.
pub(super) type RecordOfOneChunk = OldRecord<Option<(ChunkId, Epoch)>, LayoutOfOneChunk>;
/// A record of a time without zones.
pub(super) type RecordWithoutZone = OldRecord<BTreeMap<ChunkId, Epoch>, LayoutWithoutZones>;

/// See [`Record`] for the fields. The chunks that the node has, and the layout, have had several
/// forms.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OldRecord<H, L> {
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
    held: H,
    told: Vec<Address>,
    layout: Option<L>,
    log_member: Option<MemberPlace>,
    left: Option<MemberId>,
}

impl<H, L> From<OldRecord<H, L>> for Record
where
    H: IntoIterator<Item = (ChunkId, Epoch)>,
    L: Into<Layout>,
{
    fn from(old: OldRecord<H, L>) -> Record {
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
            layout: old.layout.map(Into::into),
            log_member: old.log_member,
            left: old.left,
            zone: DEFAULT_ZONE.to_owned(),
            generation: 0,
            taken_over_at: Lsn(0),
        }
    }
}
