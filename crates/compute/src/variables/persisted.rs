//! Values stored by `SET PERSIST`: global variables that the next start takes over, in one of the
//! server's own tables.
//!
//! ```text
//!   max_connections ─► "v1 n 500"  version, kind, value
//!                                  kinds: n signed, u unsigned, r real, t text, 0 NULL
//! ```

use std::sync::Arc;

use firn_api::rows::{DatabaseNode, RowsResult};
use firn_base::Cts;

use super::{GlobalVariables, Setting};
use crate::system_table::SystemTable;

const TABLE: &str = "firn_variables";

pub struct PersistedVariables {
    table: SystemTable,
}

impl PersistedVariables {
    /// The variables of a node. Blocks.
    ///
    /// # Errors
    /// If the table cannot be looked up, or not be made where the node writes.
    pub fn open(node: Arc<dyn DatabaseNode>) -> RowsResult<PersistedVariables> {
        Ok(PersistedVariables { table: SystemTable::open(node, TABLE)? })
    }

    /// The stored names and values, as far as they can be read. Blocks.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn load(&self) -> RowsResult<Vec<(String, Setting)>> {
        let decoded = self.table.load(Cts(0))?.into_iter().filter_map(|(name, value)| {
            let name = String::from_utf8(name).ok()?;
            let setting = decode(&value);
            if setting.is_none() {
                tracing::warn!(variable = name, "a persisted value cannot be read");
            }
            Some((name, setting?))
        });
        Ok(decoded.collect())
    }

    /// Sets the global variables to the stored values; values that a variable no longer accepts are
    /// left out. Blocks.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn apply(&self, variables: &GlobalVariables) -> RowsResult<()> {
        for (name, value) in self.load()? {
            match variables.checked(&name, Some(&value)) {
                Ok((value, _)) => variables.install(&name, value),
                Err(error) => {
                    tracing::warn!(variable = name, %error, "a persisted value was not taken over");
                }
            }
        }
        Ok(())
    }

    /// Stores a value. Blocks until it is durable.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn keep(&self, name: &str, value: &Setting) -> RowsResult<()> {
        self.table.store(&[(name.as_bytes().to_vec(), Some(encode(value)))]).map(drop)
    }

    /// Removes stored values. Blocks until it is durable.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn forget<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> RowsResult<()> {
        let changes: Vec<_> =
            names.into_iter().map(|name| (name.as_bytes().to_vec(), None)).collect();
        self.table.store(&changes).map(drop)
    }
}

/// The stored form of a value, which compute nodes of a server also use among each other.
pub(crate) fn encode(value: &Setting) -> Vec<u8> {
    let kind = match value {
        Setting::Number(_) => 'n',
        Setting::Unsigned(_) => 'u',
        Setting::Real(_) => 'r',
        Setting::Text(_) => 't',
        Setting::Null => '0',
    };
    format!("v1 {kind} {value}").into_bytes()
}

/// The inverse of [`encode`].
pub(crate) fn decode(document: &[u8]) -> Option<Setting> {
    let text = std::str::from_utf8(document).ok()?.strip_prefix("v1 ")?;
    let (kind, value) = text.split_once(' ')?;
    Some(match kind {
        "n" => Setting::Number(value.parse().ok()?),
        "u" => Setting::Unsigned(value.parse().ok()?),
        "r" => Setting::Real(value.parse().ok()?),
        "t" => Setting::text(value),
        "0" => Setting::Null,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        let values = [
            Setting::Number(-5),
            Setting::Unsigned(u64::MAX),
            Setting::Real(0.1),
            Setting::text("a b"),
            Setting::text(""),
            Setting::Null,
        ];
        for value in values {
            assert_eq!(decode(&encode(&value)), Some(value));
        }
        assert_eq!(encode(&Setting::Number(500)), b"v1 n 500");
        for damaged in [&b""[..], b"v1", b"v1 n", b"v1 n x", b"v2 n 5", b"v1 q 5", b"\xff"] {
            assert_eq!(decode(damaged), None);
        }
    }
}
