//! A StatefulSet of Kubernetes, as far as its scale goes: how many pods it should have, how many it
//! has, and the removal of a pod that hangs.
//!
//! ```text
//!     GET, PATCH  /apis/apps/v1/namespaces/NAMESPACE/statefulsets/NAME/scale
//!     DELETE      /api/v1/namespaces/NAMESPACE/pods/NAME-2?gracePeriodSeconds=0
//! ```
//!
//! The process has a service account: its token, which Kubernetes replaces from time to time and
//! which is therefore read for each request, and the authority that certifies the API.

#![allow(
    clippy::disallowed_methods,
    reason = "files and the API of the platform that runs the binary"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use serde::Deserialize;
use ureq::http::Request;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Body};

/// How long the API has to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const MOST_BYTES: u64 = 1 << 20;
/// The type of a patch that names the changed fields alone, with their new values.
const MERGE: &str = "application/merge-patch+json";

/// Why Kubernetes did not do something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KubernetesError {
    #[error(
        "{variable} is not set: this is no pod of Kubernetes; run it as deploy/kubernetes/replicas does"
    )]
    NoPod { variable: &'static str },
    #[error("{} cannot be read: {error}; the pod needs its service account's token", .path.display())]
    File { path: PathBuf, error: std::io::Error },
    #[error("{} has no certificate", .0.display())]
    NoCertificate(PathBuf),
    #[error("the API of Kubernetes does not answer: {0}")]
    NoAnswer(ureq::Error),
    #[error("the API of Kubernetes refuses {what} with status {status}: {message}")]
    Refused { what: String, status: u16, message: String },
    #[error("the API of Kubernetes answers {what} with what is none: {error}")]
    NoScale { what: String, error: serde_json::Error },
}

/// How many pods a set should have, and has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) wanted: u32,
    /// Those that are about to end are among them.
    pub(super) existing: u32,
    /// Of the set: a change of an older one is refused.
    version: String,
}

/// A set, and how it is reached.
pub(super) struct StatefulSet {
    agent: Agent,
    api: String,
    token: PathBuf,
    namespace: String,
    name: String,
}

impl StatefulSet {
    /// The set of that name in the pod's own namespace. `account` is the directory of the service
    /// account, `host` and `port` are those of the API.
    ///
    /// # Errors
    /// If the account's files cannot be read.
    pub(super) fn new(
        account: &Path,
        host: &str,
        port: &str,
        name: &str,
    ) -> Result<StatefulSet, KubernetesError> {
        let authority = account.join("ca.crt");
        let pem = read(&authority)?;
        let roots: Vec<Certificate<'static>> = parse_pem(pem.as_bytes())
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect();
        if roots.is_empty() {
            return Err(KubernetesError::NoCertificate(authority));
        }
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&roots))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .https_only(true)
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .build();
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        Ok(StatefulSet {
            agent: Agent::new_with_config(config),
            api: format!("https://{host}:{port}"),
            token: account.join("token"),
            namespace: read(&account.join("namespace"))?.trim().to_owned(),
            name: name.to_owned(),
        })
    }

    /// Reads the scale. Blocks for [`TIMEOUT`] at most.
    ///
    /// # Errors
    /// If the API does not answer so.
    pub(super) fn scale(&self) -> Result<Scale, KubernetesError> {
        let what = format!("the scale of {}", self.name);
        let text = self.ask(&what, "GET", &self.scale_path(), None)?;
        scale_of(&text).map_err(|error| KubernetesError::NoScale { what, error })
    }

    /// Sets the number of pods, if the set is still as `scale` says. Blocks for [`TIMEOUT`] at
    /// most.
    ///
    /// # Errors
    /// If the API did not take it, which is also so if somebody else has changed the set.
    pub(super) fn set_wanted(&self, scale: &Scale, wanted: u32) -> Result<(), KubernetesError> {
        let change = serde_json::json!({
            "metadata": { "resourceVersion": scale.version },
            "spec": { "replicas": wanted },
        });
        let what = format!("{wanted} pods of {}", self.name);
        self.ask(&what, "PATCH", &self.scale_path(), Some(change.to_string())).map(drop)
    }

    /// Removes a pod at once. The set starts another pod of that name if it should have one. Blocks
    /// for [`TIMEOUT`] at most.
    ///
    /// # Errors
    /// If it may still run.
    pub(super) fn remove_pod(&self, pod: &str) -> Result<(), KubernetesError> {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}?gracePeriodSeconds=0", self.namespace);
        match self.ask(&format!("the end of {pod}"), "DELETE", &path, None) {
            Err(KubernetesError::Refused { status: 404, .. }) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    fn scale_path(&self) -> String {
        let StatefulSet { namespace, name, .. } = self;
        format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}/scale")
    }

    /// Makes a request; returns the text of its answer.
    fn ask(
        &self,
        what: &str,
        method: &str,
        path: &str,
        change: Option<String>,
    ) -> Result<String, KubernetesError> {
        let token = read(&self.token)?;
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.api))
            .header("Authorization", format!("Bearer {}", token.trim()))
            .header("Accept", "application/json");
        let answer = match change {
            Some(text) => {
                let request = request.header("Content-Type", MERGE).body(text);
                request.map_err(Into::into).and_then(|request| self.agent.run(request))
            }
            None => {
                request.body(()).map_err(Into::into).and_then(|request| self.agent.run(request))
            }
        };
        let mut answer = answer.map_err(KubernetesError::NoAnswer)?;
        let status = answer.status();
        let text = text_of(answer.body_mut()).map_err(KubernetesError::NoAnswer)?;
        if status.is_success() {
            return Ok(text);
        }
        let message = message_of(&text);
        Err(KubernetesError::Refused { what: what.to_owned(), status: status.as_u16(), message })
    }
}

fn read(path: &Path) -> Result<String, KubernetesError> {
    fs::read_to_string(path).map_err(|error| KubernetesError::File { path: path.to_owned(), error })
}

fn text_of(body: &mut Body) -> Result<String, ureq::Error> {
    body.with_config().limit(MOST_BYTES).read_to_string()
}

/// What a refusal says, which is a `Status` if it comes from the API itself.
fn message_of(text: &str) -> String {
    #[derive(Deserialize)]
    struct Status {
        message: String,
    }
    match serde_json::from_str::<Status>(text) {
        Ok(status) => status.message,
        Err(_) => text.chars().take(200).collect(),
    }
}

/// Reads a `Scale` of `autoscaling/v1`. Fields that are 0 are left out in it.
fn scale_of(text: &str) -> Result<Scale, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Pods {
        replicas: u32,
    }
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
        #[serde(default)]
        spec: Pods,
        #[serde(default)]
        status: Pods,
    }
    let Object { metadata, spec, status } = serde_json::from_str(text)?;
    let version = metadata.resource_version;
    Ok(Scale { wanted: spec.replicas, existing: status.replicas, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_read_with_and_without_what_is_zero() {
        let text = r#"{"kind":"Scale","apiVersion":"autoscaling/v1",
            "metadata":{"name":"firn-replica","resourceVersion":"812"},
            "spec":{"replicas":2},"status":{"replicas":3,"selector":"a=b"}}"#;
        let scale = Scale { wanted: 2, existing: 3, version: "812".to_owned() };
        assert_eq!(scale_of(text).unwrap(), scale);
        let text = r#"{"metadata":{"resourceVersion":"7"},"spec":{},"status":{"replicas":0}}"#;
        let scale = Scale { wanted: 0, existing: 0, version: "7".to_owned() };
        assert_eq!(scale_of(text).unwrap(), scale);
        for wrong in ["", "{}", r#"{"metadata":{"resourceVersion":"7"},"spec":{"replicas":-1}}"#] {
            assert!(scale_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_refusal_says_what_the_api_says() {
        let text = r#"{"kind":"Status","status":"Failure","message":"no right to do that"}"#;
        assert_eq!(message_of(text), "no right to do that");
        assert_eq!(message_of("<html>"), "<html>");
    }
}
