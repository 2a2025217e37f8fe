//! Decides whether the certificate of a peer is one of this cluster, and remembers whose it is.

use std::sync::Arc;

use firn_base::network::NodeIdentity;
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError as Refused, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
};

use crate::authority::CertificateFacts;

/// Of one connection. The library checks signatures and times; this adds the identity.
#[derive(Debug)]
pub(crate) struct Verifier {
    mine: NodeIdentity,
    server: Arc<WebPkiServerVerifier>,
    client: Arc<dyn ClientCertVerifier>,
    met: Mutex<Met>,
}

#[derive(Debug, Default)]
struct Met {
    /// The peer, once its certificate was accepted.
    peer: Option<NodeIdentity>,
    /// Why it was not.
    refusal: Option<String>,
}

impl Verifier {
    pub(crate) fn new(
        mine: NodeIdentity,
        server: Arc<WebPkiServerVerifier>,
        client: Arc<dyn ClientCertVerifier>,
    ) -> Verifier {
        Verifier { mine, server, client, met: Mutex::default() }
    }

    /// This side.
    pub(crate) fn mine(&self) -> &NodeIdentity {
        &self.mine
    }

    pub(crate) fn peer(&self) -> Option<NodeIdentity> {
        self.met.lock().peer.clone()
    }

    pub(crate) fn refusal(&self) -> Option<String> {
        self.met.lock().refusal.clone()
    }

    /// Adds what the library does not check, and notes the outcome.
    fn conclude(
        &self,
        certificate: &CertificateDer<'_>,
        checked: Result<(), Error>,
    ) -> Result<(), Error> {
        let facts = CertificateFacts::of(certificate);
        let node = facts.as_ref().ok().and_then(|facts| facts.node.clone());
        let refused = match (&checked, &node) {
            (Err(error), _) => Some(reason(error, facts.as_ref().ok())),
            (Ok(()), None) => Some("it does not say which node it is of".to_owned()),
            (Ok(()), Some(node)) if node.cluster != self.mine.cluster => {
                Some("it is of another cluster".to_owned())
            }
            (Ok(()), Some(_)) => None,
        };
        let Some(why) = refused else {
            self.met.lock().peer = node;
            return Ok(());
        };
        let whose = node.map_or_else(|| "an unknown node".to_owned(), |node| node.to_string());
        let text = format!("{} refuses the certificate of {whose}: {why}", self.mine);
        self.met.lock().refusal = Some(text);
        checked?;
        Err(Error::InvalidCertificate(Refused::ApplicationVerificationFailure))
    }
}

/// Why the library has not accepted a certificate, and what to do.
fn reason(error: &Error, facts: Option<&CertificateFacts>) -> String {
    let when = |time: fn(&CertificateFacts) -> Timestamp| {
        facts.map_or_else(String::new, |facts| time(facts).to_string())
    };
    match error {
        Error::InvalidCertificate(Refused::Expired | Refused::ExpiredContext { .. }) => format!(
            "it expired at {}; make a new one by `firn admin certificates node`",
            when(|facts| facts.valid_until)
        ),
        Error::InvalidCertificate(Refused::NotValidYet | Refused::NotValidYetContext { .. }) => {
            format!("it is valid from {} only; set the clocks", when(|facts| facts.valid_from))
        }
        Error::InvalidCertificate(Refused::UnknownIssuer | Refused::BadSignature) => {
            "it was signed by another authority; use certificates of one `firn admin certificates` \
             directory on all nodes"
                .to_owned()
        }
        error => error.to_string(),
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let checked = self.server.verify_server_cert(certificate, others, name, response, now);
        self.conclude(certificate, checked.map(drop))?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.server.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.server.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.server.supported_verify_schemes()
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.client.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let checked = self.client.verify_client_cert(certificate, others, now);
        self.conclude(certificate, checked.map(drop))?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.client.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.client.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.client.supported_verify_schemes()
    }
}
