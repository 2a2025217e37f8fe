//! What a process answers over HTTP: probes of a container platform, and the metrics of its engine
//! or replica.
//!
//! | path | answer |
//! |---|---|
//! | `/live` | the process runs; restarting it would cure nothing |
//! | `/ready` | its roles answer, or 503 with the reason |
//! | `/metrics` | those of the endpoint that clients reach now, or 503 |
//!
//! A process whose engine or replica is paused is ready, and says that it is: scrapes and probes do
//! not wake it. A database node that stands by is ready: it takes over when it is elected. A node
//! that is not ready should not be restarted; it may wait for other nodes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use firn_base::Environment;
use firn_base::network::{Role, Roles};
use firn_node::http::{HttpServer, Reply};
use firn_node::metrics::MetricsPage;
use parking_lot::Mutex;

use crate::message::NodeStatus;

/// What a paused process shows instead of metrics.
const PAUSED: &str = "# HELP firn_paused Whether the compute is closed until a client comes.\n\
                      # TYPE firn_paused gauge\nfirn_paused 1\n";

/// The metrics of the endpoint that clients reach, while there is one.
#[derive(Default)]
pub(crate) struct MetricsDoor(Mutex<Shown>);

#[derive(Default)]
enum Shown {
    #[default]
    Nothing,
    Paused,
    Metrics(Arc<MetricsPage>),
}

impl MetricsDoor {
    pub(crate) fn begin(&self, page: &Arc<MetricsPage>) {
        *self.0.lock() = Shown::Metrics(Arc::clone(page));
    }

    /// There is none because the cluster is paused.
    pub(crate) fn pause(&self) {
        *self.0.lock() = Shown::Paused;
    }

    pub(crate) fn end(&self) {
        *self.0.lock() = Shown::Nothing;
    }

    fn is_paused(&self) -> bool {
        matches!(&*self.0.lock(), Shown::Paused)
    }

    fn reply(&self) -> Reply {
        let page = match &*self.0.lock() {
            Shown::Metrics(page) => Arc::clone(page),
            Shown::Paused => return Reply::text(PAUSED),
            Shown::Nothing => {
                return Reply::unavailable("no engine or replica answers clients here\n");
            }
        };
        page.reply()
    }
}

/// Answers probes and scrapes. `obstacle` says why the roles do not answer, if they do not.
///
/// # Errors
/// If the process cannot listen at the address.
pub(crate) fn serve(
    environment: &Environment,
    address: SocketAddr,
    metrics: &Arc<MetricsDoor>,
    obstacle: impl Fn() -> Option<String> + Send + Sync + 'static,
) -> io::Result<HttpServer> {
    let metrics = Arc::clone(metrics);
    let pages = move |path: &str| match path {
        "/live" => Some(Reply::text("live\n")),
        "/ready" => Some(match obstacle() {
            None if metrics.is_paused() => Reply::text("ready, paused\n"),
            None => Reply::text("ready\n"),
            Some(reason) => Reply::unavailable(format!("{reason}\n")),
        }),
        "/metrics" => Some(metrics.reply()),
        _ => None,
    };
    HttpServer::start(environment, address, Box::new(pages))
}

/// Why the roles of a process do not answer, if they do not.
pub(crate) fn obstacle(status: &NodeStatus, roles: Roles) -> Option<String> {
    let part = |reason: &str| Some(reason.to_owned());
    if status.failure.is_some() {
        return status.failure.clone();
    }
    let log = status.log.as_ref();
    match log {
        None if roles.has(Role::Log) => return part("its log member is not open"),
        Some(log) if log.failure.is_some() => return log.failure.clone(),
        Some(log) if log.leader.is_none() => return part("no member of the log group leads"),
        _ => {}
    }
    let leads = log.is_some_and(|log| log.leads.is_some());
    if roles.has(Role::Database) && leads && status.serves.is_none() {
        return part("its engine is being opened");
    }
    let has_replica = status.is_paused || status.replica.as_ref().is_some_and(|one| one.is_open);
    if roles.has(Role::Replica) && !has_replica {
        return part("its replica is being opened");
    }
    // A page node that has no pages to keep has nothing to answer.
    let pages = status.pages.as_ref().filter(|pages| !pages.is_open)?;
    Some(pages.failure.clone().unwrap_or_else(|| "its pages are not open".to_owned()))
}

#[cfg(test)]
mod tests {
    use firn_base::Lsn;
    use firn_base::network::NodeId;

    use super::*;
    use crate::message::{LogStatus, PagesStatus, ReplicaStatus};

    fn log(leads: Option<u64>, leader: Option<u64>) -> Option<LogStatus> {
        let (truncated, durable) = (Lsn::FIRST, Lsn::FIRST);
        Some(LogStatus {
            leads,
            leader,
            truncated,
            durable,
            end: durable,
            history: Vec::new(),
            failure: None,
        })
    }

    #[test]
    fn a_node_is_ready_when_each_role_answers_or_stands_by() {
        let everything = Roles::of(&[Role::Database, Role::Log, Role::Pages, Role::Control]);
        let says = |status: &NodeStatus| obstacle(status, everything).unwrap_or_default();
        let mut status = NodeStatus::of(NodeId(1));
        assert_eq!(says(&status), "its log member is not open");
        status.log = log(None, None);
        assert_eq!(says(&status), "no member of the log group leads");
        status.log = log(None, Some(2));
        assert_eq!(says(&status), "", "it stands by");
        status.log = log(Some(3), Some(1));
        assert_eq!(says(&status), "its engine is being opened");
        status.serves = Some("10.0.0.1:3306".to_owned());
        assert_eq!(says(&status), "");
        status.pages = Some(PagesStatus::default());
        assert_eq!(says(&status), "its pages are not open");
        status.pages = Some(PagesStatus { is_open: true, ..PagesStatus::default() });
        assert_eq!(says(&status), "");
        status.failure = Some("it waits until control takes it".to_owned());
        assert_eq!(says(&status), "it waits until control takes it");
    }

    #[test]
    fn a_node_with_one_role_is_judged_by_that_role() {
        let mut status = NodeStatus::of(NodeId(4));
        assert_eq!(obstacle(&status, Roles::of(&[Role::Pages])), None, "it has no pages to keep");
        let replica = Roles::of(&[Role::Replica]);
        assert_eq!(obstacle(&status, replica).as_deref(), Some("its replica is being opened"));
        status.replica = Some(ReplicaStatus { is_open: true, ..ReplicaStatus::default() });
        assert_eq!(obstacle(&status, replica), None);
        (status.replica, status.is_paused) = (Some(ReplicaStatus::default()), true);
        assert_eq!(obstacle(&status, replica), None, "it is paused");
    }
}
