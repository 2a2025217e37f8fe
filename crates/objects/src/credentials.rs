//! What a store wants to know before it lets a process in.

use std::fmt;

/// Names and values that a store is opened with, such as `AWS_ACCESS_KEY_ID`. Never in a message.
#[derive(Clone, Default)]
pub struct Credentials(pub Vec<(String, String)>);

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}
