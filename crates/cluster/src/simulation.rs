//! The pages of a cluster for an engine that a test runs itself, beside processes of the cluster.
//!
//! The engine's place is that of a node of the layout. It follows control's catalog as the node's
//! process does, and reads where the layout of the moment says.

use std::sync::Arc;

use firn_base::Environment;
use firn_base::network::{Address, NodeId};
use firn_consensus::Term;
use firn_control::{Catalog, DirectoryId, Heartbeat, Order};
use firn_control_service::{ClientOptions, ControlClient, ControlledNode, SelfDescription};
use firn_link::LocalNode;
use firn_page_service::RemotePages;

use crate::engine_pages::EnginePages;
use crate::layout::Layout;
use crate::layout::catalog::{CAPACITY, node_roles, release};
use crate::links::Links;
use crate::view::View;

/// See the module's page.
pub struct FollowedPages {
    followed: Arc<Followed>,
    client: ControlClient,
}

struct Followed {
    view: Arc<View>,
    pages: EnginePages,
}

impl FollowedPages {
    /// Begins to follow control as the node `number`, which has `layout` from before. `incarnation`
    /// counts the starts of the node. Does not wait.
    ///
    /// # Panics
    /// If the layout does not have the node.
    #[must_use]
    pub fn start(
        environment: &Environment,
        layout: &Layout,
        number: NodeId,
        incarnation: u64,
    ) -> FollowedPages {
        let own = layout.node(number).expect("a node of the layout");
        let local = Arc::new(LocalNode::new(layout.identity(own), 0));
        let view = Arc::new(View::new(layout.clone()));
        let links = Links::new(environment, &local);
        let pages = EnginePages::new(environment, (number, None), &view, links);
        let followed = Arc::new(Followed { view, pages });
        let description = SelfDescription {
            node: Some(number),
            directory: DirectoryId(u128::from(number.0)),
            incarnation,
            address: own.address.to_string(),
            client_address: own.client_address.as_ref().map(Address::to_string),
            roles: node_roles(own.roles).into_iter().collect(),
            zone: own.zone.clone(),
            capacity: CAPACITY,
            release: release(),
        };
        let control: Vec<Address> =
            layout.control_members().map(|(_, node)| node.address.clone()).collect();
        let node = Arc::clone(&followed) as Arc<dyn ControlledNode>;
        let options = ClientOptions::default();
        let client = ControlClient::open(environment, local, &control, description, node, options);
        FollowedPages { followed, client }
    }

    /// The pages; `None` if the layout has no page node.
    #[must_use]
    pub fn store(&self) -> Option<Arc<RemotePages>> {
        self.followed.pages.remote()
    }

    /// Follows no more. Blocks until the tasks have ended.
    pub fn close(&self) {
        self.client.close();
        self.followed.pages.close();
    }
}

impl ControlledNode for Followed {
    fn joined(&self, _: NodeId) {}

    fn report(&self) -> Heartbeat {
        Heartbeat::default()
    }

    fn catalog(&self, catalog: &Arc<Catalog>) {
        let Some(layout) = Layout::of_catalog(catalog) else { return };
        if *self.view.layout() != layout {
            self.view.set(layout.clone());
            self.pages.follow(&layout);
        }
    }

    /// Nothing is ordered of a node without parts.
    fn order(&self, _: Term, _: Order) {}

    fn refused(&self, reason: &str) {
        tracing::warn!(reason, "control does not take this node");
    }
}
