//! `firn_base::network` with TLS: the nodes of a cluster prove to each other who they are.
//!
//! ```text
//!   authority  ── signs ──►  certificate of each node: cluster, node, name, roles
//!   Credentials              authority's certificate + own certificate and key
//!   SecureNetwork            TCP: TLS 1.3, both sides certified;  Unix sockets: as they are
//! ```
//!
//! Without certificates there is only plaintext, and only where no other machine can listen:
//! loopback addresses and Unix sockets. With certificates every TCP connection has TLS, loopback
//! included, so that a node which listens at all addresses asks the same of everybody.
//!
//! The frames inside are those of the system's network. A certificate says who a peer is
//! ([`firn_base::network::Connection::certified`]); `firn_link` compares that with what it says.

mod authority;
mod credentials;
mod directory;
mod identity;
mod network;
mod pem;
mod stream;
mod validity;
mod verifier;

pub use authority::{Authority, CertificateError, CertificateFacts, CertificateHost, Issued};
pub use credentials::Credentials;
pub use directory::{CertificateDirectory, DirectoryError, NodeRequest};
pub use network::SecureNetwork;
