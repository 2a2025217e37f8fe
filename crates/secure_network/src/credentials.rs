//! What a node proves itself with, and what it asks of its peers.

use std::fmt;
use std::sync::Arc;

use firn_base::clock::Clock;
use firn_base::network::NodeIdentity;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use crate::authority::{CertificateError, CertificateFacts, read_certificate, read_key};
use crate::identity::NODE_DNS_NAME;
use crate::verifier::Verifier;

/// A node's certificate and key, and the authority's certificate.
#[derive(Debug)]
pub struct Credentials {
    identity: NodeIdentity,
    authority: CertificateDer<'static>,
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
    time: Arc<Time>,
}

impl Credentials {
    /// Reads credentials from their three files, in PEM. `clock` decides what has expired.
    ///
    /// # Errors
    /// If they do not belong together. An expired certificate is no error here: peers refuse it.
    pub fn read(
        authority: &[u8],
        certificate: &[u8],
        key: &[u8],
        clock: Arc<dyn Clock>,
    ) -> Result<Credentials, CertificateError> {
        let (authority, certificate) =
            (read_certificate(authority)?, read_certificate(certificate)?);
        let expected = CertificateFacts::of(&authority)?.cluster;
        let facts = CertificateFacts::of(&certificate)?;
        let identity = facts.node.ok_or(CertificateError::NoIdentity)?;
        if identity.cluster != expected {
            let found = identity.cluster;
            return Err(CertificateError::OtherCluster { found, expected });
        }
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone()).map_err(not_usable)?;
        let credentials = Credentials {
            identity,
            authority,
            certificate,
            key: read_key(key)?,
            roots: Arc::new(roots),
            provider: Arc::new(ring::default_provider()),
            time: Arc::new(Time(clock)),
        };
        // Finds a key that does not belong to the certificate now, not at the first connection.
        credentials.client()?;
        Ok(credentials)
    }

    /// Whom the certificate is of.
    #[must_use]
    pub fn identity(&self) -> &NodeIdentity {
        &self.identity
    }

    fn verifier(&self) -> Result<Arc<Verifier>, CertificateError> {
        let (roots, provider) = (|| Arc::clone(&self.roots), || Arc::clone(&self.provider));
        let server = WebPkiServerVerifier::builder_with_provider(roots(), provider()).build();
        let client = WebPkiClientVerifier::builder_with_provider(roots(), provider()).build();
        let server = server.map_err(not_usable)?;
        let client = client.map_err(not_usable)?;
        Ok(Arc::new(Verifier::new(self.identity.clone(), server, client)))
    }

    /// The client's side of one connection. Each connection has its verifier, which remembers whom
    /// it has met; nothing is resumed, so that every connection meets its peer.
    pub(crate) fn client(&self) -> Result<(rustls::Connection, Arc<Verifier>), CertificateError> {
        let verifier = self.verifier()?;
        let (provider, time) = (Arc::clone(&self.provider), Arc::clone(&self.time) as _);
        let mut config = ClientConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(not_usable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
            .with_client_auth_cert(vec![self.certificate.clone()], self.key.clone_key().into())
            .map_err(of_key)?;
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        let name = ServerName::try_from(NODE_DNS_NAME).map_err(not_usable)?;
        let connection = ClientConnection::new(Arc::new(config), name).map_err(not_usable)?;
        Ok((connection.into(), verifier))
    }

    /// The server's side of one connection.
    pub(crate) fn server(&self) -> Result<(rustls::Connection, Arc<Verifier>), CertificateError> {
        let verifier = self.verifier()?;
        let (provider, time) = (Arc::clone(&self.provider), Arc::clone(&self.time) as _);
        let mut config = ServerConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(not_usable)?
            .with_client_cert_verifier(Arc::clone(&verifier) as _)
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key().into())
            .map_err(of_key)?;
        config.send_tls13_tickets = 0;
        let connection = ServerConnection::new(Arc::new(config)).map_err(not_usable)?;
        Ok((connection.into(), verifier))
    }

    /// The authority's certificate in DER.
    #[must_use]
    pub fn authority(&self) -> &[u8] {
        &self.authority
    }
}

fn not_usable(error: impl fmt::Display) -> CertificateError {
    CertificateError::NotUsable(error.to_string())
}

fn of_key(error: rustls::Error) -> CertificateError {
    match error {
        rustls::Error::InconsistentKeys(_) => CertificateError::OtherKey,
        error => not_usable(error),
    }
}

/// The injected clock, for the library.
struct Time(Arc<dyn Clock>);

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the process's clock")
    }
}

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        let now = std::time::Duration::from_millis(self.0.wall_time_ms());
        Some(UnixTime::since_unix_epoch(now))
    }
}
