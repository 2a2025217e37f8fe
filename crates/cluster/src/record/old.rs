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
pub(super) type RecordOfOneChunk = OldRecord<Option<(ChunkId, Epoch)>, LayoutOfOneChunk, NoZone>;
/// A record of a time without zones.
pub(super) type RecordWithoutZone = OldRecord<BTreeMap<ChunkId, Epoch>, LayoutWithoutZones, NoZone>;
/// A record of a time in which the control nodes were those of the founding.
pub(super) type RecordOfFoundedControl = OldRecord<BTreeMap<ChunkId, Epoch>, Layout, ZoneFacts>;

/// See [`Record`] for the fields. The chunks that the node has, the layout, and what is behind them
/// have had several forms.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OldRecord<H, L, Z> {
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
    /// The node was founded as a control node.
    has_control: bool,
    is_member: bool,
    held: H,
    told: Vec<Address>,
    layout: Option<L>,
    log_member: Option<MemberPlace>,
    left: Option<MemberId>,
    zone: Z,
}

/// A node that does not know zones. Has no bytes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct NoZone;

/// See [`Record`] for the fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ZoneFacts {
    zone: String,
    generation: u64,
    taken_over_at: Lsn,
}

impl From<NoZone> for ZoneFacts {
    fn from(_: NoZone) -> ZoneFacts {
        ZoneFacts { zone: DEFAULT_ZONE.to_owned(), generation: 0, taken_over_at: Lsn(0) }
    }
}

impl<H, L, Z> From<OldRecord<H, L, Z>> for Record
where
    H: IntoIterator<Item = (ChunkId, Epoch)>,
    L: Into<Layout>,
    Z: Into<ZoneFacts>,
{
    fn from(old: OldRecord<H, L, Z>) -> Record {
        let ZoneFacts { zone, generation, taken_over_at } = old.zone.into();
        // Founders have the numbers of their nodes.
        let founder = old.number.filter(|_| old.has_control).map(|number| MemberPlace {
            member: MemberId(number.0),
            is_founder: true,
            is_made: true,
        });
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
            is_member: old.is_member,
            held: old.held.into_iter().collect(),
            told: old.told,
            layout: old.layout.map(Into::into),
            log_member: old.log_member,
            left: old.left,
            zone,
            generation,
            taken_over_at,
            control_member: founder,
            control_left: None,
            parts: BTreeMap::new(),
        }
    }
}
