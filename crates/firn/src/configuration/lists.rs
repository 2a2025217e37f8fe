//! Values that are lists, with commas between their parts. Roles may have `+` there too, as a
//! certificate and the state of a cluster show them.

use std::fmt;
use std::str::FromStr;

use firn_base::network::{Address, Role, Roles};

/// Addresses of other processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AddressList(pub(crate) Vec<Address>);

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

/// Where another node is reached: a port of TCP at an IP address or at the host of a name.
pub(super) fn address_of_node(text: &str) -> Option<Address> {
    text.parse().ok().filter(|address: &Address| address.port().is_some())
}

impl FromStr for AddressList {
    type Err = String;

    fn from_str(text: &str) -> Result<AddressList, String> {
        let address = |part: &str| {
            let refuse = || format!("has '{part}', which is no address; write HOST:PORT,HOST:PORT");
            address_of_node(part).ok_or_else(refuse)
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
        parts(text)
            .flat_map(|part| part.split('+'))
            .map(role)
            .collect::<Result<_, _>>()
            .map(RoleList)
    }
}

impl fmt::Display for AddressList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(Address::to_string).collect();
        f.write_str(&parts.join(","))
    }
}

impl fmt::Display for RoleList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|role| role.name()).collect();
        f.write_str(&parts.join(","))
    }
}
