//! The first messages of a link: who both sides are, and whether they may talk.
//!
//! ```text
//!   client                                   server
//!   hello ─────────────────────────────►     judges it
//!        ◄────────────────────  answer       its own hello, and accepted or why not
//!   judges it: goes on, or ends the link
//! ```
//!
//! [`judge`] is the decision of both sides: it depends on the two hellos alone, so both come to the
//! same one and name the same reason. `docs/formats/link.md` describes the bytes.

use firn_base::network::identity::{MAX_NAME_BYTES, is_node_name};
use firn_base::network::{ClusterId, NodeId, NodeIdentity, Roles};

/// The oldest protocol version that this release speaks.
pub const OLDEST_VERSION: u16 = 1;
/// The newest protocol version that this release speaks.
pub const NEWEST_VERSION: u16 = 2;
/// From this version on a connection may have exchanges.
pub(crate) const EXCHANGE_VERSION: u16 = 2;

const HELLO_MAGIC: [u8; 4] = *b"FnHi";
const ANSWER_MAGIC: [u8; 4] = *b"FnHa";
/// The bytes of a hello before the name, without the magic.
const FIXED_BYTES: usize = 45;
/// Reasons are cut to this length in bytes.
const MAX_REASON_BYTES: usize = 1024;

/// What one side says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub identity: NodeIdentity,
    /// The newest fencing epoch that the sender knows of; 0 if it speaks for none.
    pub epoch: u64,
    /// The protocol versions that the sender speaks: the oldest.
    pub oldest: u16,
    /// And the newest.
    pub newest: u16,
    /// Bytes of requests that the sender takes before it has answered any.
    pub window_bytes: u32,
}

impl Hello {
    /// What this release says.
    #[must_use]
    pub fn new(identity: NodeIdentity, epoch: u64, window_bytes: u32) -> Hello {
        let (oldest, newest) = (OLDEST_VERSION, NEWEST_VERSION);
        Hello { identity, epoch, oldest, newest, window_bytes }
    }

    /// The bytes of the first message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = HELLO_MAGIC.to_vec();
        self.put(&mut bytes);
        bytes
    }

    /// Reads the first message.
    ///
    /// # Errors
    /// If the bytes are not a hello.
    pub fn decode(bytes: &[u8]) -> Result<Hello, NotAHello> {
        let rest = bytes.strip_prefix(&HELLO_MAGIC).ok_or(NotAHello)?;
        match Hello::take(rest)? {
            (hello, []) => Ok(hello),
            _ => Err(NotAHello),
        }
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.oldest.to_le_bytes());
        bytes.extend_from_slice(&self.newest.to_le_bytes());
        bytes.extend_from_slice(&self.identity.cluster.0.to_le_bytes());
        bytes.extend_from_slice(&self.identity.node.0.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&self.identity.roles.0.to_le_bytes());
        bytes.extend_from_slice(&self.window_bytes.to_le_bytes());
        bytes.push(self.identity.name.len() as u8);
        bytes.extend_from_slice(self.identity.name.as_bytes());
    }

    /// Reads a hello and returns it with the bytes behind it.
    fn take(bytes: &[u8]) -> Result<(Hello, &[u8]), NotAHello> {
        let (fixed, rest) = bytes.split_first_chunk::<FIXED_BYTES>().ok_or(NotAHello)?;
        let name_bytes = usize::from(fixed[FIXED_BYTES - 1]);
        let (name, rest) = rest.split_at_checked(name_bytes).ok_or(NotAHello)?;
        let name = std::str::from_utf8(name).map_err(|_| NotAHello)?;
        let hello = Hello {
            oldest: u16::from_le_bytes(part(fixed, 0)),
            newest: u16::from_le_bytes(part(fixed, 2)),
            identity: NodeIdentity {
                cluster: ClusterId(u128::from_le_bytes(part(fixed, 4))),
                node: NodeId(u64::from_le_bytes(part(fixed, 20))),
                roles: Roles(u32::from_le_bytes(part(fixed, 36))),
                name: name.to_owned(),
            },
            epoch: u64::from_le_bytes(part(fixed, 28)),
            window_bytes: u32::from_le_bytes(part(fixed, 40)),
        };
        let is_sound = hello.oldest <= hello.newest && is_node_name(name);
        if is_sound { Ok((hello, rest)) } else { Err(NotAHello) }
    }
}

/// The bytes of a field.
fn part<const LENGTH: usize>(fixed: &[u8; FIXED_BYTES], at: usize) -> [u8; LENGTH] {
    fixed[at..at + LENGTH].try_into().expect("a slice of that length")
}

const _: () = assert!(MAX_NAME_BYTES <= u8::MAX as usize);

/// What the server replies to a hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub hello: Hello,
    /// Why the server refuses the client. It ends the connection after this message.
    pub refusal: Option<String>,
}

impl Answer {
    /// The bytes of the server's first message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = ANSWER_MAGIC.to_vec();
        self.hello.put(&mut bytes);
        bytes.push(u8::from(self.refusal.is_some()));
        if let Some(reason) = &self.refusal {
            let end = reason.floor_char_boundary(MAX_REASON_BYTES);
            bytes.extend_from_slice(&reason.as_bytes()[..end]);
        }
        bytes
    }

    /// Reads the server's first message.
    ///
    /// # Errors
    /// If the bytes are not an answer.
    pub fn decode(bytes: &[u8]) -> Result<Answer, NotAHello> {
        let rest = bytes.strip_prefix(&ANSWER_MAGIC).ok_or(NotAHello)?;
        let (hello, rest) = Hello::take(rest)?;
        let refusal = match rest {
            [0] => None,
            [1, reason @ ..] if reason.len() <= MAX_REASON_BYTES => {
                let reason = std::str::from_utf8(reason).map_err(|_| NotAHello)?;
                Some(reason.to_owned())
            }
            _ => return Err(NotAHello),
        };
        Ok(Answer { hello, refusal })
    }
}

/// The bytes are not the first message of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the peer's first message is not a link's; it may be another program or a release that is \
         too new"
)]
pub struct NotAHello;

/// Why two sides may not talk. Each names both sides.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{client} called {server}; check the address, or the data directory of the caller")]
    OtherCluster { client: NodeIdentity, server: NodeIdentity },
    #[error(
        "{client} speaks protocol versions {} to {}, {server} speaks {} to {}; update the older one",
        client_versions.0, client_versions.1, server_versions.0, server_versions.1
    )]
    NoCommonVersion {
        client: NodeIdentity,
        server: NodeIdentity,
        client_versions: (u16, u16),
        server_versions: (u16, u16),
    },
    /// The side with the older epoch has been replaced, or has not yet heard of the newer epoch.
    #[error(
        "{client} knows epoch {client_epoch}, {server} knows epoch {server_epoch}; the older one \
         has been replaced or has to catch up first"
    )]
    OtherEpoch { client: NodeIdentity, server: NodeIdentity, client_epoch: u64, server_epoch: u64 },
    #[error(
        "the client says it is {said}, but has the certificate of {certified}; {server} refuses it"
    )]
    ClientCertificate { said: NodeIdentity, certified: NodeIdentity, server: NodeIdentity },
    #[error(
        "the server says it is {said}, but has the certificate of {certified}; {client} refuses it"
    )]
    ServerCertificate { said: NodeIdentity, certified: NodeIdentity, client: NodeIdentity },
    /// The caller wanted another node.
    #[error("{client} wanted node {wanted} and found {server}; check the address")]
    OtherNode { client: NodeIdentity, server: NodeIdentity, wanted: NodeId },
    /// The server's own words.
    #[error("{server} refused {client}: {reason}")]
    ByServer { client: NodeIdentity, server: NodeIdentity, reason: String },
}

/// Whether two sides may talk, and in which version.
///
/// Epochs differ only if both speak for one.
///
/// # Errors
/// Why not.
pub fn judge(client: &Hello, server: &Hello) -> Result<u16, Box<Refusal>> {
    let named = || (client.identity.clone(), server.identity.clone());
    if client.identity.cluster != server.identity.cluster {
        let (client, server) = named();
        return Err(Box::new(Refusal::OtherCluster { client, server }));
    }
    let version = client.newest.min(server.newest);
    if version < client.oldest.max(server.oldest) {
        let client_versions = (client.oldest, client.newest);
        let server_versions = (server.oldest, server.newest);
        let (client, server) = named();
        let refusal = Refusal::NoCommonVersion { client, server, client_versions, server_versions };
        return Err(Box::new(refusal));
    }
    if client.epoch != server.epoch && client.epoch != 0 && server.epoch != 0 {
        let (client_epoch, server_epoch) = (client.epoch, server.epoch);
        let (client, server) = named();
        let refusal = Refusal::OtherEpoch { client, server, client_epoch, server_epoch };
        return Err(Box::new(refusal));
    }
    Ok(version)
}

/// Any bytes are refused, or read and written back unchanged. For fuzzing.
///
/// # Panics
/// If that does not hold.
pub fn check_any_bytes(bytes: &[u8]) {
    if let Ok(hello) = Hello::decode(bytes) {
        assert_eq!(hello.encode(), bytes);
    }
    if let Ok(answer) = Answer::decode(bytes) {
        assert_eq!(answer.encode(), bytes);
    }
}

#[cfg(test)]
mod tests;
