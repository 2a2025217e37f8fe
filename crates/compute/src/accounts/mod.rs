//! Accounts, roles and their privileges.
//!
//! ```text
//!   'u'@'%.example'  ──►  Account   password hash, lock, roles
//!                           └─ Grants   *.*  │  schema.*  │  schema.table  │  columns
//! ```
//!
//! The book of accounts is completely in memory and shared. A change is stored first and then put
//! in place, so a check only reads memory. A session holds its [`Account`] and its active roles; it
//! compares the book's version to see whether they have changed.
//!
//! Invariants:
//! * no client connects without an account; there is no anonymous account;
//! * passwords are never stored, only the forms that their plugins keep;
//! * an account without a password connects only from loopback.

mod account;
pub(crate) mod attribute;
mod book;
mod document;
mod grants;
pub mod need;
mod passwords;
mod policy;
mod privilege;
mod statements;
mod store;
#[cfg(test)]
mod tests;
mod usage;

pub use account::{Account, AccountName};
pub use book::{AccountBook, AccountStore, StoreError};
pub use grants::{Grants, Level};
pub use policy::{Block, FormerPassword, Limits, Policy, PolicyDefaults};
pub use privilege::{Privilege, PrivilegeSet};
pub use statements::AccountContext;
pub use store::RowsAccountStore;
pub use usage::{Blocked, Exceeded, UsageBook};
