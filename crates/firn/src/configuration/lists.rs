//! Values that are lists, with commas between their parts.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use firn_base::network::{Role, Roles};

/// Addresses of other processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AddressList(pub(crate) Vec<SocketAddr>);

/// Roles of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RoleList(pub(crate) Vec<Role>);

impl RoleList {
    pub(crate) fn roles(&self) -> Roles {
        Roles::of(&self.0)
    }
}

/// The parts of a list; none if the text is empty.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(move |_| !text.is_empty())
}

impl FromStr for AddressList {
    type Err = String;

    fn from_str(text: &str) -> Result<AddressList, String> {
        let address = |part: &str| {
            let mut found = part.to_socket_addrs().map_err(|error| {
                format!("has '{part}', which is no address ({error}); write HOST:PORT,HOST:PORT")
            })?;
            found.next().ok_or_else(|| format!("has '{part}', which names no address"))
        };
        parts(text).map(address).collect::<Result<_, _>>().map(AddressList)
    }
}

impl FromStr for RoleList {
    type Err = String;

    fn from_str(text: &str) -> Result<RoleList, String> {
        let role = |part: &str| {
            let known = Role::ALL.into_iter().find(|role| role.name() == part);
            known.ok_or_else(|| {
                let names: Vec<_> = Role::ALL.into_iter().map(Role::name).collect();
                format!("has '{part}', which is none of {}", names.join(", "))
            })
        };
        parts(text).map(role).collect::<Result<_, _>>().map(RoleList)
    }
}

impl fmt::Display for AddressList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(SocketAddr::to_string).collect();
        f.write_str(&parts.join(","))
    }
}

impl fmt::Display for RoleList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|role| role.name()).collect();
        f.write_str(&parts.join(","))
    }
}
