//! Names of hosts, and which addresses they have now.
//!
//! The system's resolver (`getaddrinfo`) blocks for as long as it likes, often for many seconds
//! while a name server is away. So a separate task asks it, and the caller waits for that task
//! until the caller's time is over. Callers that want the same name at the same time wait for one
//! task, so a name server that is away holds up one thread for each name, however often links try.
//! Nothing is remembered: a host that has moved is found where it is now.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use crate::event::Event;
use crate::task::{Spawner, ThreadSpawner};

/// The length of the longest name in bytes.
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// The name of a host, in small letters: labels of letters, digits, `-` and `_` of ASCII, with
/// dots between them. A dot at the end keeps resolvers from trying the domains of this machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(Box<str>);

/// The text is not the name of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not the name of a host; write labels of letters, digits and '-', with dots between"
)]
pub struct NotAHostName(String);

impl HostName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The addresses that the host has now, one at least. Blocks for `timeout` at most.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if the resolver has not answered;
    /// [`io::ErrorKind::NotFound`] with the resolver's reason.
    pub fn resolve(&self, timeout: Duration) -> io::Result<Vec<IpAddr>> {
        resolve_by(self, timeout, ask_system)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HostName {
    type Err = NotAHostName;

    fn from_str(text: &str) -> Result<HostName, NotAHostName> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let is_label = |label: &str| {
            (1..=MAX_LABEL_BYTES).contains(&label.len()) && label.bytes().all(allowed)
        };
        let relative = text.strip_suffix('.').unwrap_or(text);
        // Resolvers take `10.0.1` for an address of four bytes; nobody means that.
        let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
        let is_address = relative.rsplit('.').next().is_some_and(is_number);
        if text.len() > MAX_NAME_BYTES || !relative.split('.').all(is_label) || is_address {
            return Err(NotAHostName(text.to_owned()));
        }
        Ok(HostName(text.to_ascii_lowercase().into()))
    }
}

/// What asks for the addresses of a name. Blocks.
type Resolver = fn(&HostName) -> io::Result<Vec<IpAddr>>;

fn ask_system(name: &HostName) -> io::Result<Vec<IpAddr>> {
    // Port 0 is no port that anybody connects to; only the addresses are used.
    Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// A question that the resolver is answering.
struct Lookup {
    answer: OnceLock<Result<Vec<IpAddr>, String>>,
    answered: Event,
}

/// The questions that are not answered yet. The lock is held to look and to start a thread, never
/// while the resolver works.
static LOOKUPS: Mutex<BTreeMap<HostName, Arc<Lookup>>> = Mutex::new(BTreeMap::new());

fn resolve_by(name: &HostName, timeout: Duration, ask: Resolver) -> io::Result<Vec<IpAddr>> {
    let lookup = lookup(name, ask);
    lookup.answered.wait_until(Some(timeout), || lookup.answer.get().is_some());
    match lookup.answer.get() {
        None => Err(io::Error::new(io::ErrorKind::TimedOut, "the resolver did not answer in time")),
        Some(Ok(addresses)) if !addresses.is_empty() => Ok(addresses.clone()),
        Some(Ok(_)) => Err(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
        Some(Err(reason)) => Err(io::Error::new(io::ErrorKind::NotFound, reason.clone())),
    }
}

/// The running question for a name; a new one if there is none.
fn lookup(name: &HostName, ask: Resolver) -> Arc<Lookup> {
    let mut lookups = LOOKUPS.lock();
    if let Some(running) = lookups.get(name) {
        return Arc::clone(running);
    }
    let lookup = Arc::new(Lookup { answer: OnceLock::new(), answered: Event::new() });
    let (asked, told) = (name.clone(), Arc::clone(&lookup));
    let body = move || {
        let answer = ask(&asked).map_err(|error| error.to_string());
        // A caller that comes after this line asks again.
        LOOKUPS.lock().remove(&asked);
        let _ = told.answer.set(answer);
        told.answered.notify_all();
    };
    drop(ThreadSpawner.spawn("resolve", Box::new(body)));
    lookups.insert(name.clone(), Arc::clone(&lookup));
    lookup
}

#[cfg(test)]
mod tests;
