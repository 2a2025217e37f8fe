//! Accounts, roles and what they may do.
//!
//! ```text
//!   'u'@'%.example'  ──►  Account   password hash, lock, roles
//!                           └─ Grants   *.*  │  schema.*  │  schema.table  │  columns
//! ```
//!
//! The book of accounts is wholly in memory and shared; a change is stored first and then put in place, so
//! a check costs a look at memory only. A session holds its [`Account`] and the roles that it has switched
//! on; it looks at the book's version to see whether they have changed.
//!
//! Invariants:
//! * nobody connects without an account; there is no anonymous one;
//! * passwords are never stored, only what their plugin keeps of them;
//! * an account without a password connects from loopback only.

mod account;
mod book;
mod document;
mod grants;
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
