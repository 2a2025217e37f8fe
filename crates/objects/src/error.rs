//! Why an object store refuses.
//!
//! | error | try again? | whose fault |
//! |---|---|---|
//! | `Unavailable` | yes, later | the store's or the network's |
//! | `Full` | once there is room | the owner's of the store |
//! | `Refused` | after a change of settings or rights | the configuration's |
//! | `Exists`, `NotFound` | no | the caller knows |

/// Why an object could not be written, read, listed or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// There is no object of this name.
    #[error("{location} has no object {name}")]
    NotFound { location: String, name: String },
    /// There is an object of this name already.
    #[error("{location} has an object {name} already")]
    Exists { location: String, name: String },
    /// The store does not answer, or not well. A write may or may not have happened.
    #[error("{location} does not answer ({name}: {reason}); it is tried again")]
    Unavailable { location: String, name: String, reason: String },
    /// The store has no room for the object.
    #[error("{location} is full ({name}: {reason}); free space there")]
    Full { location: String, name: String, reason: String },
    /// The store does not let this process do it.
    #[error("{location} refuses access ({name}: {reason}); check the URL and the credentials")]
    Refused { location: String, name: String, reason: String },
}

impl ObjectError {
    /// Whether the same call may succeed later without a change of settings.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, ObjectError::Unavailable { .. } | ObjectError::Full { .. })
    }

    /// Whether there is no such object.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, ObjectError::NotFound { .. })
    }
}
