//! The state of a cluster, as control and the nodes themselves tell it. `firn cluster status` shows
//! it, and so do the SQL tables about the cluster ([`crate::report`]).

use std::sync::Arc;
use std::time::Duration;

use firn_base::network::{NodeId, NodeIdentity, Roles};
use firn_base::{Environment, Lsn};
use firn_control::{Applied, Catalog, NodeState, Proposal};
use firn_control_service::message::StatusReply;
use firn_control_service::{Administrator, ClientOptions, ProposeError};
use firn_link::{Caller, LocalNode};
use parking_lot::Mutex;

use crate::layout::{Layout, NodeEntry};
use crate::links::Links;
use crate::message::{LogStatus, NodeStatus};
use crate::status::{AskError, ask};

/// How long control has to take a change: somebody asks for it, and control nodes that hang cost a
/// second each.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long control has to answer.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the nodes have to answer, which are asked at the same time.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// Asks a cluster how it is, and changes it, without being a node of it.
pub struct Surveyor {
    environment: Environment,
    local: Arc<LocalNode>,
    administrator: Administrator,
    /// What is known of the cluster while control does not answer.
    known: Mutex<Arc<Layout>>,
    links: Links,
}

pub struct Survey {
    /// What the leader of the control group says, or why nobody does.
    pub control: Result<Control, String>,
    /// The cluster as control has it, or as it was known last.
    pub layout: Arc<Layout>,
    /// By number.
    pub nodes: Vec<SurveyedNode>,
}

impl Survey {
    /// What the members of the log that answer have told.
    pub(crate) fn logs(&self) -> impl Iterator<Item = &LogStatus> {
        self.nodes.iter().filter_map(|node| node.status.as_ref().ok()?.log.as_ref())
    }

    /// The end of the durable log, as the member that knows most of it tells.
    #[must_use]
    pub fn durable_end(&self) -> Lsn {
        self.logs().map(|log| log.durable).max().unwrap_or(Lsn(0))
    }
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
        Surveyor::of_node(environment, &local, Arc::new(layout))
    }

    /// For the cluster of `layout`, on behalf of a process that is one of its nodes.
    pub(crate) fn of_node(
        environment: &Environment,
        local: &Arc<LocalNode>,
        layout: Arc<Layout>,
    ) -> Surveyor {
        let controls = layout.control_members().map(|(_, node)| node.address.clone());
        let (addresses, options) = (controls.collect::<Vec<_>>(), ClientOptions::default());
        let administrator = Administrator::new(environment, local, &addresses, &options);
        Surveyor {
            environment: environment.clone(),
            local: Arc::clone(local),
            administrator,
            known: Mutex::new(layout),
            links: Links::new(environment, local),
        }
    }

    /// Asks everybody. Blocks for as long as they have to answer.
    #[must_use]
    pub fn look(&self) -> Survey {
        self.look_at(|_| true)
    }

    /// Asks control, and these nodes. Blocks for as long as they have to answer.
    #[must_use]
    pub fn look_at(&self, is_asked: impl Fn(&NodeEntry) -> bool) -> Survey {
        let control = self.control();
        if let Ok(control) = &control
            && let Some(layout) = Layout::of_catalog(&control.catalog)
        {
            *self.known.lock() = Arc::new(layout);
        }
        self.survey(control, is_asked)
    }

    /// Asks the nodes that are known, and not control, which may be lost. Blocks for as long as
    /// they have to answer.
    #[must_use]
    pub fn look_at_nodes(&self) -> Survey {
        self.survey(Err("it was not asked".to_owned()), |_| true)
    }

    fn survey(
        &self,
        control: Result<Control, String>,
        is_asked: impl Fn(&NodeEntry) -> bool,
    ) -> Survey {
        let layout = Arc::clone(&self.known.lock());
        self.links.keep(|node| layout.node(node).is_some());
        let catalog = control.as_ref().ok().map(|control| &control.catalog);
        let state = |node: &NodeEntry| catalog.and_then(|catalog| catalog.node_state(node.number));
        let nodes: Vec<NodeEntry> = layout.nodes().filter(|node| is_asked(node)).cloned().collect();
        let told = self.ask_all(&nodes).into_iter().zip(nodes);
        let surveyed = |(status, node)| SurveyedNode { state: state(&node), status, node };
        let nodes = told.map(surveyed).collect();
        Survey { control, layout, nodes }
    }

    /// Asks nodes at the same time, so that those that do not answer cost the timeout once.
    fn ask_all(&self, nodes: &[NodeEntry]) -> Vec<Result<NodeStatus, AskError>> {
        let asked = nodes.iter().map(|node| {
            let (caller, answer) = (self.links.to(node), Arc::new(Mutex::new(None)));
            let own = Arc::clone(&answer);
            let body = move || *own.lock() = Some(ask(&caller, NODE_TIMEOUT));
            (self.environment.spawner.spawn("survey", Box::new(body)), answer)
        });
        let asked: Vec<_> = asked.collect();
        let answers = asked.into_iter().map(|(task, answer)| {
            task.join();
            answer.lock().take().expect("a task that asks a node does not panic")
        });
        answers.collect()
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

    /// Control's newest catalog.
    ///
    /// # Errors
    /// [`ProposeError::NoLeader`]
    pub fn catalog(&self) -> Result<Catalog, ProposeError> {
        self.administrator.catalog(0, CONTROL_TIMEOUT)
    }

    /// What is known of the cluster while control does not answer.
    pub(crate) fn known(&self) -> Arc<Layout> {
        Arc::clone(&self.known.lock())
    }

    pub(crate) fn set_known(&self, layout: Layout) {
        *self.known.lock() = Arc::new(layout);
    }

    pub(crate) fn link_to(&self, node: &NodeEntry) -> Arc<Caller> {
        self.links.to(node)
    }

    /// Asks another cluster, by the same name.
    pub(crate) fn of_cluster(&self, layout: Layout) -> Surveyor {
        Surveyor::of_node(&self.environment, &self.local, Arc::new(layout))
    }

    /// Changes the catalog. Blocks until the change is durable.
    ///
    /// # Errors
    /// [`ProposeError`]
    pub fn propose(&self, proposal: Proposal) -> Result<Applied, ProposeError> {
        self.administrator.propose(proposal, CHANGE_TIMEOUT)
    }
}
