//! The state of a cluster, as control and the nodes themselves tell it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::{Address, NodeId, NodeIdentity, Roles};
use firn_control::{Catalog, NodeState, Proposal};
use firn_control_service::message::StatusReply;
use firn_control_service::{Administrator, ClientOptions, ProposeError};
use firn_link::{Caller, CallerSettings, LocalNode};

use crate::layout::{Layout, NodeEntry};
use crate::message::NodeStatus;
use crate::status::{AskError, ask};

/// How long control has to answer.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a node has to answer.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// Asks a cluster how it is, and changes it, without being a node of it.
pub struct Surveyor {
    environment: Environment,
    local: Arc<LocalNode>,
    administrator: Administrator,
    /// What is known of the cluster while control does not answer.
    known: Layout,
    links: BTreeMap<NodeId, (NodeEntry, Caller)>,
}

/// What was found.
pub struct Survey {
    /// What the leader of the control group says, or why nobody does.
    pub control: Result<Control, String>,
    /// By number.
    pub nodes: Vec<SurveyedNode>,
}

/// The cluster in control's eyes.
pub struct Control {
    pub status: StatusReply,
    pub catalog: Catalog,
}

pub struct SurveyedNode {
    pub node: NodeEntry,
    /// What control makes of it, if control answers.
    pub state: Option<NodeState>,
    pub status: Result<NodeStatus, AskError>,
}

impl Surveyor {
    /// For the cluster of `layout`. `identity` is that of a certificate, if there is one.
    #[must_use]
    pub fn new(
        environment: &Environment,
        layout: Layout,
        identity: Option<NodeIdentity>,
    ) -> Surveyor {
        let identity = identity.unwrap_or_else(|| NodeIdentity {
            cluster: layout.cluster,
            node: NodeId(0),
            name: "administrator".to_owned(),
            roles: Roles::default(),
        });
        let local = Arc::new(LocalNode::new(identity, 0));
        let controls = layout.control_members().map(|(_, node)| Address::Tcp(node.address));
        let (addresses, options) = (controls.collect::<Vec<_>>(), ClientOptions::default());
        let administrator = Administrator::new(environment, &local, &addresses, &options);
        let (environment, links) = (environment.clone(), BTreeMap::new());
        Surveyor { environment, local, administrator, known: layout, links }
    }

    /// Asks everybody. Blocks for as long as they have to answer.
    pub fn look(&mut self) -> Survey {
        let control = self.control();
        if let Ok(control) = &control
            && let Some(layout) = Layout::of_catalog(&control.catalog)
        {
            self.known = layout;
        }
        let nodes: Vec<NodeEntry> = self.known.nodes().cloned().collect();
        self.links.retain(|_, (linked, _)| nodes.contains(linked));
        let catalog = control.as_ref().ok().map(|control| &control.catalog);
        let state = |node: &NodeEntry| catalog.and_then(|catalog| catalog.node_state(node.number));
        let asked = nodes.into_iter().map(|node| SurveyedNode {
            state: state(&node),
            status: ask(self.link(&node), NODE_TIMEOUT),
            node,
        });
        let nodes = asked.collect();
        Survey { control, nodes }
    }

    /// The cluster in control's eyes, or why nobody says.
    ///
    /// # Errors
    /// If no control node leads, or none is reached.
    pub fn control(&self) -> Result<Control, String> {
        let status =
            self.administrator.status(CONTROL_TIMEOUT).map_err(|error| error.to_string())?;
        let catalog = self.catalog().map_err(|error| error.to_string())?;
        Ok(Control { status, catalog })
    }

    fn link(&mut self, node: &NodeEntry) -> &Caller {
        let (environment, local) = (&self.environment, &self.local);
        let (_, caller) = self.links.entry(node.number).or_insert_with(|| {
            let address = Address::Tcp(node.address);
            let settings =
                CallerSettings { wanted: Some(node.number), ..CallerSettings::new(address) };
            (node.clone(), Caller::new(environment, Arc::clone(local), settings))
        });
        caller
    }

    /// Control's newest catalog.
    ///
    /// # Errors
    /// [`ProposeError::NoLeader`]
    pub fn catalog(&self) -> Result<Catalog, ProposeError> {
        self.administrator.catalog(0, CONTROL_TIMEOUT)
    }

    /// Changes the catalog. Blocks until the change is durable.
    ///
    /// # Errors
    /// [`ProposeError`]
    pub fn propose(&self, proposal: Proposal) -> Result<(), ProposeError> {
        self.administrator.propose(proposal, CONTROL_TIMEOUT).map(drop)
    }
}
