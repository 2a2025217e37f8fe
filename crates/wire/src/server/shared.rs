//! State that all threads of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_base::Environment;

use super::options::{Limits, ServerOptions};
use super::poller::Poller;
use super::watch::DisconnectWatch;
use super::workers::Workers;
use crate::auth::{RsaKey, caching_sha2};
use crate::channel::TlsAcceptor;
use crate::connections::Connections;
use crate::flags::Capabilities;
use crate::handshake::SUPPORTED;
use crate::service::Service;

pub(super) struct Shared {
    pub(super) environment: Environment,
    pub(super) options: ServerOptions,
    pub(super) limits: Arc<Limits>,
    pub(super) service: Arc<dyn Service>,
    pub(super) connections: Arc<Connections>,
    pub(super) digests: caching_sha2::DigestCache,
    pub(super) rsa_key: RsaKey,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) poller: Poller,
    pub(super) workers: Workers,
    pub(super) watch: DisconnectWatch,
    /// Set when the server accepts no more connections and commands.
    stopping: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        environment: Environment,
        options: ServerOptions,
        service: Arc<dyn Service>,
        tls: Option<TlsAcceptor>,
        poller: Poller,
    ) -> Shared {
        Shared {
            limits: Arc::clone(&options.limits),
            connections: Arc::new(Connections::new(options.connection_ids.clone())),
            environment,
            options,
            service,
            digests: caching_sha2::DigestCache::default(),
            rsa_key: RsaKey::default(),
            tls,
            poller,
            workers: Workers::default(),
            watch: DisconnectWatch::default(),
            stopping: AtomicBool::new(false),
        }
    }

    /// Capabilities in the greeting.
    pub(super) fn capabilities(&self) -> Capabilities {
        let mut capabilities = SUPPORTED;
        capabilities.set(Capabilities::SSL, self.tls.is_some());
        capabilities
    }

    /// Counts one more prepared statement, unless there are too many.
    pub(super) fn reserve_statement(&self) -> bool {
        let limit = self.limits.max_prepared_stmt_count();
        self.connections
            .statements
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                (open < limit).then_some(open + 1)
            })
            .is_ok()
    }

    /// Subtracts `count` closed prepared statements.
    pub(super) fn release_statements(&self, count: usize) {
        self.connections.statements.fetch_sub(count as u64, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}
