//! The authority of a cluster, which signs the certificates of its nodes.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use firn_base::network::host::NotAHostName;
use firn_base::network::{ClusterId, HostName, NodeIdentity};
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use webpki::EndEntityCert;

use crate::identity::NODE_DNS_NAME;
use crate::{identity, pem, validity};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Certificates are valid from this long before they are made: clocks differ.
const TOLERANCE: Duration = Duration::from_secs(3600);
const CERTIFICATE_LABEL: &str = "CERTIFICATE";
const KEY_LABEL: &str = "PRIVATE KEY";

/// Why a certificate or key cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("it is not a certificate in PEM: {0}")]
    NotACertificate(String),
    #[error("it is not a private key in PEM (PKCS #8): {0}")]
    NotAKey(String),
    #[error("it is not a certificate that `firn admin certificates` has made")]
    NoIdentity,
    #[error("the key does not belong to the certificate")]
    OtherKey,
    #[error("the certificate is of cluster {found}, the authority of cluster {expected}")]
    OtherCluster { found: ClusterId, expected: ClusterId },
    #[error("'{0}' cannot be the name of a node; use letters, digits, '.', '_' and '-'")]
    Name(String),
    #[error("it cannot be made: {0}")]
    NotMade(String),
    #[error("it cannot be used: {0}")]
    NotUsable(String),
}

/// Where a node is reached, as its certificate says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateHost {
    Ip(IpAddr),
    Name(HostName),
}

impl FromStr for CertificateHost {
    type Err = NotAHostName;

    fn from_str(text: &str) -> Result<CertificateHost, NotAHostName> {
        match text.parse() {
            Ok(ip) => Ok(CertificateHost::Ip(ip)),
            Err(_) => text.parse().map(CertificateHost::Name),
        }
    }
}

impl fmt::Display for CertificateHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateHost::Ip(ip) => ip.fmt(f),
            CertificateHost::Name(name) => name.fmt(f),
        }
    }
}

impl CertificateHost {
    fn alternative_name(&self) -> Result<SanType, CertificateError> {
        Ok(match self {
            CertificateHost::Ip(ip) => SanType::IpAddress(*ip),
            // The dot that ends a full name is no part of it in certificates.
            CertificateHost::Name(name) => {
                let name = name.as_str().trim_end_matches('.').to_owned();
                SanType::DnsName(name.try_into().map_err(not_made)?)
            }
        })
    }
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct Issued {
    pub certificate: String,
    /// A secret.
    pub key: String,
}

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    pub cluster: ClusterId,
    /// `None` for an authority's.
    pub node: Option<NodeIdentity>,
    pub valid_from: Timestamp,
    pub valid_until: Timestamp,
}

impl CertificateFacts {
    /// Reads a certificate in PEM. Does not check who has signed it.
    ///
    /// # Errors
    /// If it is not one of this module.
    pub fn of_pem(text: &[u8]) -> Result<CertificateFacts, CertificateError> {
        CertificateFacts::of(&read_certificate(text)?)
    }

    pub(crate) fn of(
        certificate: &CertificateDer<'_>,
    ) -> Result<CertificateFacts, CertificateError> {
        let parsed = EndEntityCert::try_from(certificate)
            .map_err(|error| CertificateError::NotACertificate(error.to_string()))?;
        let no_identity = || CertificateError::NoIdentity;
        let (valid_from, valid_until) = validity::validity(certificate).ok_or_else(no_identity)?;
        let node = parsed.valid_uri_names().find_map(identity::read_node);
        let cluster = match &node {
            Some(node) => node.cluster,
            None => {
                let found = parsed.valid_uri_names().find_map(identity::read_cluster);
                found.ok_or_else(no_identity)?
            }
        };
        Ok(CertificateFacts { cluster, node, valid_from, valid_until })
    }
}

pub(crate) fn read_certificate(text: &[u8]) -> Result<CertificateDer<'static>, CertificateError> {
    CertificateDer::from_pem_slice(text)
        .map_err(|error| CertificateError::NotACertificate(error.to_string()))
}

pub(crate) fn read_key(text: &[u8]) -> Result<PrivatePkcs8KeyDer<'static>, CertificateError> {
    PrivatePkcs8KeyDer::from_pem_slice(text)
        .map_err(|error| CertificateError::NotAKey(error.to_string()))
}

/// The authority of a cluster with its key.
pub struct Authority {
    cluster: ClusterId,
    key: KeyPair,
}

impl Authority {
    /// Makes the authority of a new cluster. `now` is the time since the Unix epoch.
    ///
    /// # Errors
    /// [`CertificateError::NotMade`]
    pub fn create(
        cluster: ClusterId,
        now: Duration,
        days: u32,
    ) -> Result<Issued, CertificateError> {
        let key = KeyPair::generate().map_err(not_made)?;
        let certificate = authority_parameters(cluster, now, days)?.self_signed(&key);
        Ok(Issued {
            certificate: pem::encode(CERTIFICATE_LABEL, certificate.map_err(not_made)?.der()),
            key: pem::encode(KEY_LABEL, key.serialized_der()),
        })
    }

    /// Reads an authority from its two files.
    ///
    /// # Errors
    /// If they are not those of an authority.
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Authority, CertificateError> {
        let certificate = read_certificate(certificate)?;
        let facts = CertificateFacts::of(&certificate)?;
        if facts.node.is_some() {
            return Err(CertificateError::NoIdentity);
        }
        let key = read_key(key)?;
        let key = KeyPair::try_from(&key)
            .map_err(|error| CertificateError::NotAKey(error.to_string()))?;
        let parsed = EndEntityCert::try_from(&certificate)
            .map_err(|error| CertificateError::NotACertificate(error.to_string()))?;
        if parsed.subject_public_key_info().as_ref() != key.subject_public_key_info() {
            return Err(CertificateError::OtherKey);
        }
        Ok(Authority { cluster: facts.cluster, key })
    }

    /// A new certificate for the same key. Those of nodes stay valid.
    ///
    /// # Errors
    /// [`CertificateError::NotMade`]
    pub fn certificate(&self, now: Duration, days: u32) -> Result<String, CertificateError> {
        let made = authority_parameters(self.cluster, now, days)?.self_signed(&self.key);
        Ok(pem::encode(CERTIFICATE_LABEL, made.map_err(not_made)?.der()))
    }

    #[must_use]
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// Makes a key and a certificate for a node of this cluster. The hosts are for programs that
    /// look at them; nodes know each other by identity.
    ///
    /// # Errors
    /// If the identity is not one of this cluster, or cannot be written down.
    pub fn issue(
        &self,
        node: &NodeIdentity,
        hosts: &[CertificateHost],
        now: Duration,
        days: u32,
    ) -> Result<Issued, CertificateError> {
        if node.cluster != self.cluster {
            let (found, expected) = (node.cluster, self.cluster);
            return Err(CertificateError::OtherCluster { found, expected });
        }
        if !firn_base::network::identity::is_node_name(&node.name) {
            return Err(CertificateError::Name(node.name.clone()));
        }
        let key = KeyPair::generate().map_err(not_made)?;
        let parameters = node_parameters(node, hosts, now, days)?;
        let of_authority = authority_parameters(self.cluster, now, days)?;
        let issuer = Issuer::from_params(&of_authority, &self.key);
        let certificate = parameters.signed_by(&key, &issuer).map_err(not_made)?;
        Ok(Issued {
            certificate: pem::encode(CERTIFICATE_LABEL, certificate.der()),
            key: pem::encode(KEY_LABEL, key.serialized_der()),
        })
    }
}

fn not_made(error: rcgen::Error) -> CertificateError {
    CertificateError::NotMade(error.to_string())
}

fn valid_for(parameters: &mut CertificateParams, now: Duration, days: u32) {
    let epoch = date_time_ymd(1970, 1, 1);
    parameters.not_before = epoch + now.saturating_sub(TOLERANCE);
    parameters.not_after = epoch + (now + DAY * days);
}

fn uri(text: String) -> Result<SanType, CertificateError> {
    Ok(SanType::URI(text.try_into().map_err(not_made)?))
}

fn authority_parameters(
    cluster: ClusterId,
    now: Duration,
    days: u32,
) -> Result<CertificateParams, CertificateError> {
    let mut parameters = CertificateParams::default();
    valid_for(&mut parameters, now, days);
    // Issued certificates name the authority by this text and by its key.
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, format!("Firn cluster {cluster}"));
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters.subject_alt_names = vec![uri(identity::cluster_uri(cluster))?];
    Ok(parameters)
}

fn node_parameters(
    node: &NodeIdentity,
    hosts: &[CertificateHost],
    now: Duration,
    days: u32,
) -> Result<CertificateParams, CertificateError> {
    let mut parameters = CertificateParams::default();
    valid_for(&mut parameters, now, days);
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, node.name.clone());
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    parameters.use_authority_key_identifier_extension = true;
    let common_name = NODE_DNS_NAME.to_owned().try_into().map_err(not_made)?;
    parameters.subject_alt_names =
        vec![uri(identity::node_uri(node))?, SanType::DnsName(common_name)];
    for host in hosts {
        parameters.subject_alt_names.push(host.alternative_name()?);
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests;
