//! What a process of a cluster tells of the whole cluster in SQL: the survey that `firn cluster
//! status` shows, cut into rows.

use std::sync::Arc;
use std::time::Duration;

use firn_api::cluster::{
    ChunkCopy, ClusterMember, ClusterNode, ClusterOperation, ClusterPart, ClusterReport,
    ClusterSeam, PartKind,
};
use firn_base::network::NodeId;
use firn_base::{Environment, Lsn, PageNo};
use firn_consensus::Role;
use firn_control::{Catalog, EVERY_SPACE, Proposal, Reason, ReplicaState};
use firn_link::LocalNode;
use parking_lot::Mutex;

use crate::durable_history::age_ms;
use crate::layout::catalog::LOG_GROUP;
use crate::message::{LogStatus, NodeStatus, PagesStatus};
use crate::survey::{Control, Survey, SurveyedNode, Surveyor};
use crate::view::View;

/// How long statements get the last report, so that those that join several of the tables see one
/// state.
const FRESH: Duration = Duration::from_millis(500);

/// Surveys the cluster when it is asked.
pub(crate) struct ClusterSurveys {
    environment: Environment,
    surveyor: Surveyor,
    view: Arc<View>,
    /// The last report, and when it was made.
    last: Mutex<Option<(Duration, ClusterReport)>>,
}

impl ClusterSurveys {
    pub(crate) fn new(
        environment: &Environment,
        local: &Arc<LocalNode>,
        view: &Arc<View>,
    ) -> ClusterSurveys {
        ClusterSurveys {
            environment: environment.clone(),
            surveyor: Surveyor::of_node(environment, local, view.layout()),
            view: Arc::clone(view),
            last: Mutex::default(),
        }
    }
}

impl ClusterSeam for ClusterSurveys {
    fn switch(&self, to: Option<&str>) -> Result<(), String> {
        let catalog = self.surveyor.catalog().map_err(|error| error.to_string())?;
        let node = |name: &str| {
            let found = catalog.nodes().iter().find(|(_, node)| node.name == name);
            let unknown =
                || format!("there is no node '{name}'; see information_schema.FIRN_NODES");
            found.map(|(number, _)| *number).ok_or_else(unknown)
        };
        let to = to.map(node).transpose()?;
        let proposal = Proposal::Switch { group: LOG_GROUP, to };
        self.surveyor.propose(proposal).map(drop).map_err(|error| error.to_string())
    }

    fn report(&self) -> ClusterReport {
        let now = self.environment.clock.monotonic();
        if let Some((made, report)) = &*self.last.lock()
            && now.saturating_sub(*made) < FRESH
        {
            return report.clone();
        }
        let mut report = report_of(&self.surveyor.look());
        for node in &mut report.nodes {
            node.since_ms = self.view.state_since(NodeId(node.number));
        }
        let now = self.environment.clock.monotonic();
        *self.last.lock() = Some((now, report.clone()));
        report
    }
}

fn report_of(survey: &Survey) -> ClusterReport {
    let control = survey.control.as_ref().ok();
    let catalog = control.map(|control| &control.catalog);
    let end = survey.durable_end();
    let history = durable_history(survey);
    ClusterReport {
        nodes: survey.nodes.iter().map(|one| node(one, catalog)).collect(),
        parts: survey.nodes.iter().flat_map(|node| parts(node, end, history)).collect(),
        members: catalog.map(members).unwrap_or_default(),
        copies: catalog.map(|catalog| copies(catalog, survey, end)).unwrap_or_default(),
        operations: control.map(operations).unwrap_or_default(),
    }
}

/// When the log was durable up to where, as the node that leads tells; empty if none does.
fn durable_history(survey: &Survey) -> &[(u64, Lsn)] {
    let leader = LogStatus::newest_leader(survey.logs().map(|log| ((), log)));
    leader.map_or(&[], |(_, log)| &log.history)
}

fn behind(end: Lsn, position: Lsn) -> u64 {
    end.0.saturating_sub(position.0)
}

fn node(one: &SurveyedNode, catalog: Option<&Catalog>) -> ClusterNode {
    let SurveyedNode { node, state, status } = one;
    let known = catalog.and_then(|catalog| catalog.nodes().get(&node.number));
    let (serves, error) = match status {
        Ok(status) => (status.serves.clone(), status.failure.clone()),
        Err(error) => (None, Some(error.to_string())),
    };
    ClusterNode {
        name: node.name.clone(),
        number: node.number.0,
        address: node.address.to_string(),
        client_address: node.client_address.as_ref().map(ToString::to_string),
        roles: node.roles.to_string(),
        version: known.map(|known| known.release.to_string()),
        state: state.map(|state| state.to_string()),
        since_ms: None,
        starts: known.map(|known| known.incarnation),
        serves,
        error,
    }
}

fn parts(one: &SurveyedNode, end: Lsn, history: &[(u64, Lsn)]) -> Vec<ClusterPart> {
    let Ok(status) = &one.status else { return Vec::new() };
    let NodeStatus { log, pages, replica, archive, .. } = status;
    let part = |kind| ClusterPart {
        node: one.node.name.clone(),
        kind,
        position: None,
        lag_bytes: None,
        lag_ms: None,
        kept_from: None,
        epoch: None,
        images_per_second: None,
        error: None,
    };
    let log = log.as_ref().map(|log| ClusterPart {
        position: Some(log.durable),
        lag_bytes: Some(behind(end, log.durable)),
        lag_ms: match behind(end, log.durable) {
            0 => Some(0),
            _ => (!history.is_empty()).then(|| age_ms(history, log.durable)),
        },
        kept_from: Some(log.truncated),
        epoch: log.leads,
        error: log.failure.clone(),
        ..part(PartKind::Log)
    });
    let pages = pages.as_ref().map(|pages| {
        let (position, lag_bytes, lag_ms) = of_pages(pages, end);
        ClusterPart {
            position,
            lag_bytes,
            lag_ms,
            kept_from: pages.is_open.then_some(pages.kept_from),
            images_per_second: pages.is_open.then_some(pages.images_per_second),
            error: pages.failure.clone(),
            ..part(PartKind::Pages)
        }
    });
    let replica = replica.as_ref().map(|replica| ClusterPart {
        position: replica.is_open.then_some(replica.applied),
        lag_bytes: replica.is_open.then(|| behind(end, replica.applied)),
        lag_ms: replica.is_open.then_some(replica.behind_ms),
        epoch: Some(replica.epoch),
        error: replica.is_cut_off.then(|| "the node that writes does not answer".to_owned()),
        ..part(PartKind::Replica)
    });
    let archive = archive.as_ref().filter(|archive| archive.is_chosen);
    let archive = archive.map(|archive| ClusterPart {
        position: archive.archived,
        lag_bytes: archive.archived.map(|_| archive.progress.behind_bytes),
        lag_ms: archive.archived.map(|_| archive.progress.behind_ms),
        epoch: Some(archive.epoch),
        error: archive.progress.error.clone(),
        ..part(PartKind::Archive)
    });
    [log, pages, replica, archive].into_iter().flatten().collect()
}

/// Up to where pages are stored, and how much log is missing, in bytes and in milliseconds.
fn of_pages(pages: &PagesStatus, end: Lsn) -> (Option<Lsn>, Option<u64>, Option<u64>) {
    match pages.is_open {
        true => (Some(pages.applied), Some(behind(end, pages.applied)), Some(pages.behind_ms)),
        false => (None, None, None),
    }
}

fn name_of(catalog: &Catalog, node: NodeId) -> String {
    let known = catalog.nodes().get(&node);
    known.map_or_else(|| node.to_string(), |node| node.name.clone())
}

fn members(catalog: &Catalog) -> Vec<ClusterMember> {
    let groups = catalog.groups().iter().flat_map(|(id, group)| {
        group.members.iter().map(|(member, one)| ClusterMember {
            group: u64::from(id.0),
            group_epoch: group.epoch.0,
            member: member.0,
            node: name_of(catalog, one.node),
            role: match one.role {
                Role::Voter => "voter",
                Role::Logger => "logger",
                Role::Learner => "learner",
            },
            leads_in: (group.writer == Some(*member)).then_some(group.term.0),
        })
    });
    groups.collect()
}

fn copies(catalog: &Catalog, survey: &Survey, end: Lsn) -> Vec<ChunkCopy> {
    let pages_of = |node: NodeId| {
        let mut nodes = survey.nodes.iter();
        let surveyed = nodes.find(|surveyed| surveyed.node.number == node)?;
        surveyed.status.as_ref().ok()?.pages.as_ref()
    };
    let chunks = catalog.chunks().iter().flat_map(|(id, chunk)| {
        chunk.replicas.iter().map(move |(node, replica)| {
            let told = pages_of(*node).map(|pages| of_pages(pages, end));
            let (position, lag_bytes, lag_ms) = told.unwrap_or_default();
            ChunkCopy {
                chunk: id.0,
                epoch: chunk.epoch.0,
                space: (chunk.space != EVERY_SPACE).then_some(u64::from(chunk.space.0)),
                first_page: u64::from(chunk.first.0),
                end_page: (chunk.end != PageNo::NONE).then_some(u64::from(chunk.end.0)),
                group: u64::from(chunk.group.0),
                bytes: chunk.bytes,
                pages: u64::from(chunk.pages),
                node: name_of(catalog, *node),
                state: match replica.state {
                    ReplicaState::InService => "in service",
                    ReplicaState::Copying => "copying",
                    ReplicaState::Leaving => "leaving",
                },
                position,
                lag_bytes,
                lag_ms,
            }
        })
    });
    chunks.collect()
}

fn operations(control: &Control) -> Vec<ClusterOperation> {
    let operations = control.status.operations.iter().map(|one| ClusterOperation {
        number: one.operation.0,
        text: one.text.clone(),
        reason: match one.reason {
            Reason::Asked => "asked for",
            Reason::NodeDown => "a node is down",
            Reason::TooFew => "too few copies",
            Reason::Draining => "a node leaves",
            Reason::Zones => "spread over zones",
            Reason::Balance => "balance",
            Reason::Growth => "a chunk has grown",
        },
        done_bytes: one.progress.map(|progress| progress.done),
        total_bytes: one.progress.map(|progress| progress.total),
        waits_for: one.waits_for.clone(),
    });
    operations.collect()
}
