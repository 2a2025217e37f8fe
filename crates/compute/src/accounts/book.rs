//! The book of accounts: all accounts in memory; changes are stored first.
//!
//! ```text
//!   a change here       begin_account_change ─► read again if changed ─► store ─► end (reports)
//!   a change elsewhere  told += 1, version += 1 ─► read again when an account is next looked up
//! ```
//!
//! The notice of a change names a snapshot that has it: over a database node that follows the log,
//! the rows are read again once the node has come so far.
//!
//! Rules:
//! * only one compute node of the server changes accounts at a time;
//! * `loaded` never passes `told`, and no account is looked up while `loaded < told`. The
//!   exception: if the rows cannot be read, the known accounts stay valid, and the next look-up
//!   tries again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::Incarnation;
use firn_api::rows::RowsError;
use firn_api::server::{ServerState, ServerStateError};
use firn_base::Cts;
use parking_lot::{Mutex, RwLock};

use super::account::{Account, AccountName};
use super::document::{self, DocumentError};
use super::grants::Grants;

/// Why accounts could not be read or stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store failed.
    #[error("accounts could not be stored: {0}")]
    Rows(#[from] RowsError),
    /// A stored account cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The other compute nodes cannot be asked or informed.
    #[error(transparent)]
    Server(#[from] ServerStateError),
}

pub trait AccountStore: Send + Sync {
    /// The documents of all accounts, as a snapshot at `since` sees them, or a later one. Blocks.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn load(&self, since: Cts) -> Result<Vec<Vec<u8>>, StoreError>;
    /// Stores documents by account, and takes those out that have none now; all or nothing. Blocks
    /// until it is durable. Answers a snapshot that sees it.
    ///
    /// # Errors
    /// Why they cannot be stored.
    fn store(&self, changes: &[(AccountName, Option<Vec<u8>>)]) -> Result<Cts, StoreError>;
}

type Accounts = BTreeMap<AccountName, Arc<Account>>;

pub struct AccountBook {
    accounts: RwLock<Arc<Accounts>>,
    version: AtomicU64,
    /// Changes by other compute nodes that were reported to this one.
    told: AtomicU64,
    /// How many of them are in `accounts`.
    loaded: AtomicU64,
    /// A snapshot that has all of them.
    since: AtomicU64,
    /// Held while rows are read again.
    loading: Mutex<()>,
    store: Box<dyn AccountStore>,
    server: Arc<dyn ServerState>,
    node: Incarnation,
    /// Held while a change is prepared and stored: changes come one after the other. Look-ups do
    /// not wait for it.
    changing: Mutex<()>,
}

impl std::fmt::Debug for AccountBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountBook").field("accounts", &*self.accounts.read()).finish()
    }
}

impl AccountBook {
    /// Reads the accounts; if there are none and the database node writes, makes `root` for
    /// loopback, without a password. Blocks.
    ///
    /// # Errors
    /// If the accounts cannot be read or stored.
    pub fn open(
        store: Box<dyn AccountStore>,
        server: Arc<dyn ServerState>,
        node: Incarnation,
    ) -> Result<AccountBook, StoreError> {
        let accounts = load(&*store, Cts(0))?;
        let is_new = accounts.is_empty();
        let book = AccountBook {
            accounts: RwLock::new(Arc::new(accounts)),
            version: AtomicU64::new(1),
            told: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            since: AtomicU64::new(0),
            loading: Mutex::new(()),
            store,
            server,
            node,
            changing: Mutex::new(()),
        };
        if is_new {
            match book.make_root() {
                // A compute node over the node that writes makes it.
                Ok(()) | Err(StoreError::Rows(RowsError::NotLeader { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(book)
    }

    /// Makes `root`, unless another compute node has made accounts meanwhile.
    fn make_root(&self) -> Result<(), StoreError> {
        self.have_changed(Cts(0));
        let name = AccountName::new("root", "localhost");
        let root = Account { grants: Grants::everything(), ..Account::new(name.clone()) };
        self.change(|accounts| {
            if accounts.is_empty() {
                accounts.insert(name, Arc::new(root));
            }
            Ok(())
        })
    }

    /// Another compute node has changed accounts, which a snapshot at `since` sees: they are read
    /// again before one is looked up.
    pub(crate) fn have_changed(&self, since: Cts) {
        self.since.fetch_max(since.0, Ordering::Release);
        self.told.fetch_add(1, Ordering::Release);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Reads the accounts again if another compute node has changed them. Blocks in that case.
    fn catch_up(&self) -> Result<(), StoreError> {
        if self.loaded.load(Ordering::Acquire) == self.told.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one_at_a_time = self.loading.lock();
        let told = self.told.load(Ordering::Acquire);
        if self.loaded.load(Ordering::Acquire) < told {
            let since = Cts(self.since.load(Ordering::Acquire));
            *self.accounts.write() = Arc::new(load(&*self.store, since)?);
            self.loaded.store(told, Ordering::Release);
        }
        Ok(())
    }

    /// The accounts as they are now.
    fn current(&self) -> Arc<Accounts> {
        if let Err(error) = self.catch_up() {
            tracing::warn!(%error, "accounts cannot be read again; what was known of them holds");
        }
        Arc::clone(&self.accounts.read())
    }

    /// Changes with every change of accounts.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The account with exactly this name.
    #[must_use]
    pub fn get(&self, name: &AccountName) -> Option<Arc<Account>> {
        self.current().get(name).cloned()
    }

    /// All accounts, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Account>> {
        self.current().values().cloned().collect()
    }

    /// The account of a client: among the user's accounts that admit the host, the one with the
    /// most specific host.
    #[must_use]
    pub fn find(&self, user: &str, host: &str) -> Option<Arc<Account>> {
        let accounts = self.current();
        let of_user = accounts.values().filter(|account| account.name.user == user);
        let fitting = of_user.filter(|account| account.name.admits(host));
        fitting.max_by_key(|account| specificity(&account.name.host)).cloned()
    }

    /// Whether some account can connect from elsewhere than loopback: it has a password, or a
    /// certificate instead of one.
    #[must_use]
    pub fn has_remote_account(&self) -> bool {
        let accounts = self.current();
        let mut connecting = accounts.values().filter(|account| !account.locked);
        connecting
            .any(|account| !account.authentication.is_empty() && account.name.host != "localhost")
    }

    /// The privileges of an account with some roles active, including the roles' own roles.
    #[must_use]
    pub fn effective(&self, account: &Account, roles: &BTreeSet<AccountName>) -> Grants {
        let accounts = self.current();
        let mut grants = account.grants.clone();
        let mut open: Vec<&AccountName> = roles.iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            let Some(role) = accounts.get(name) else { continue };
            if seen.insert(name) {
                grants.add(&role.grants);
                open.extend(&role.roles);
            }
        }
        grants
    }

    /// Changes accounts: `change` works on a copy; its changes are stored, then put in place.
    /// Blocks.
    ///
    /// # Errors
    /// The error of `change`, in which case nothing is changed; or an error of storing.
    pub fn change<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&mut BTreeMap<AccountName, Arc<Account>>) -> Result<T, E>,
    ) -> Result<T, E> {
        let _one_at_a_time = self.changing.lock();
        self.server.begin_account_change(self.node).map_err(StoreError::Server)?;
        let changed = self.change_alone(change);
        let since = changed.as_ref().ok().map(|(_, since)| *since);
        self.server.end_account_change(self.node, since);
        changed.map(|(answer, _)| answer)
    }

    /// As [`AccountBook::change`], while no other compute node changes accounts. Answers a snapshot
    /// that sees the change, too.
    fn change_alone<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&mut Accounts) -> Result<T, E>,
    ) -> Result<(T, Cts), E> {
        self.catch_up()?;
        let before = Arc::clone(&self.accounts.read());
        let mut after = (*before).clone();
        let answer = change(&mut after)?;
        let since = self.store.store(&differences(&before, &after))?;
        *self.accounts.write() = Arc::new(after);
        self.version.fetch_add(1, Ordering::Release);
        Ok((answer, since))
    }
}

fn load(store: &dyn AccountStore, since: Cts) -> Result<Accounts, StoreError> {
    let mut accounts = Accounts::new();
    for document in store.load(since)? {
        let account = document::decode(&document)?;
        accounts.insert(account.name.clone(), Arc::new(account));
    }
    Ok(accounts)
}

fn differences(before: &Accounts, after: &Accounts) -> Vec<(AccountName, Option<Vec<u8>>)> {
    let is_same = |name: &AccountName, account: &Arc<Account>| {
        before.get(name).is_some_and(|old| Arc::ptr_eq(old, account) || old == account)
    };
    let changed = after.iter().filter(|(name, account)| !is_same(name, account));
    let changed = changed.map(|(name, account)| (name.clone(), Some(document::encode(account))));
    let gone = before.keys().filter(|name| !after.contains_key(name));
    changed.chain(gone.map(|name| (name.clone(), None))).collect()
}

/// How specific a host pattern is: the number of literal characters before the first wildcard, all
/// for a literal.
fn specificity(host: &str) -> usize {
    host.find(['%', '_']).unwrap_or(usize::MAX)
}
