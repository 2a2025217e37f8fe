//! The wire's service: which clients may log in, and the sessions that are opened for them.

use std::sync::Arc;

use firn_sql::execute::error::from_rows;
use firn_wire::auth::AuthPlugin;
use firn_wire::{
    Canceller, Capabilities, Carried, CommandIdentity, CommittedAnswer, Credentials, Execution,
    FieldDefinition, LastResults, Login, PeerAddress, Prepared, Query, Replies, ServerError,
    Service, Session, WireError,
};

use crate::accounts::{Account, Blocked, Exceeded};
use crate::instance::Instance;
use crate::session::{Beginning, HandoverError, SqlSession, wire_error};
use crate::session_facts::Facts;

/// Serves the clients of an instance.
pub struct SqlService {
    instance: Arc<Instance>,
}

impl SqlService {
    /// A service over an instance.
    #[must_use]
    pub fn new(instance: Arc<Instance>) -> SqlService {
        SqlService { instance }
    }
}

/// Whether an address belongs to this machine.
fn is_loopback(peer: &PeerAddress) -> bool {
    matches!(peer.host().as_str(), "localhost" | "127.0.0.1" | "::1")
}

impl SqlService {
    /// How the session of a client that may log in begins.
    fn beginning(&self, login: &Login) -> Result<Beginning, ServerError> {
        let host = login.peer().host();
        let account = self.instance.accounts.find(&login.user, &host);
        let account = account.filter(|account| account.name.to_string() == login.account);
        let denied = || {
            let message = format!("Access denied for user '{}'@'{host}'", login.user);
            ServerError::new(1045, b"28000", message)
        };
        let account = account.ok_or_else(denied)?;
        if account.locked {
            let message =
                format!("Access denied for user '{}'@'{host}'. Account is locked.", login.user);
            return Err(ServerError::new(3118, b"HY000", message));
        }
        if account.authentication.is_empty() && !is_loopback(login.peer()) {
            return Err(denied());
        }
        self.admit(&account, login)?;
        Ok(Beginning {
            control: Arc::clone(&login.connection),
            connections: Arc::clone(&login.connections),
            user: login.user.clone(),
            host,
            account,
            schema: login.schema.clone(),
            collation: login.collation,
            tls: login.tls.clone(),
        })
    }

    /// Refuses a login beyond the account's limits, and one that could do nothing because its
    /// password has expired.
    fn admit(&self, account: &Account, login: &Login) -> Result<(), ServerError> {
        let (instance, user) = (&*self.instance, &login.user);
        let number = |name| instance.variables.get(name).map_or(0, |value| value.number());
        let exceeded = |Exceeded { resource, limit }| {
            let message = format!(
                "User '{user}' has exceeded the '{resource}' resource (current value: {limit})"
            );
            ServerError::new(1226, b"42000", message)
        };
        let (own, of_all) =
            (account.policy.limits.user_connections, number("max_user_connections"));
        let limit = if own > 0 { own } else { of_all };
        if limit > 0 && instance.sessions_of(&account.name) as u64 >= limit {
            if own > 0 {
                return Err(exceeded(Exceeded { resource: "max_user_connections", limit }));
            }
            let message = format!(
                "User {user} already has more than 'max_user_connections' active connections"
            );
            return Err(ServerError::new(1203, b"42000", message));
        }
        let now_s = instance.now_s();
        let lifetime_days = number("default_password_lifetime");
        let is_expired = account.expired || account.policy.is_outlived(lifetime_days, now_s);
        if is_expired && !login.capabilities.contains(Capabilities::EXPIRED_PASSWORDS) {
            let message = "Your password has expired. To log in you must change it using a client that supports \
                           expired passwords.";
            return Err(ServerError::new(1862, b"HY000", message));
        }
        instance.usage.connected(account, now_s).map_err(exceeded)
    }
}

impl Service for SqlService {
    fn credentials(&self, user: &str, host: &str) -> Result<Credentials, ServerError> {
        let Some(account) = self.instance.accounts.find(user, host) else {
            return Ok(Credentials::nobody());
        };
        let Some(plugin) = AuthPlugin::from_name(&account.plugin) else {
            return Ok(Credentials::nobody());
        };
        let name = account.name.to_string();
        let mut credentials =
            Credentials::new(name, plugin, account.authentication.clone().into_bytes());
        credentials.requires_secure_transport = account.requires_tls;
        Ok(credentials)
    }

    fn attempted(&self, user: &str, host: &str, proved: bool) -> Result<(), ServerError> {
        let Some(account) = self.instance.accounts.find(user, host) else { return Ok(()) };
        let noted = self.instance.usage.attempted(&account, proved, self.instance.now_s());
        noted.map_err(|Blocked { days, days_left, attempts }| {
            let (days, left) = match days {
                Some(days) => (days.to_string(), days_left.to_string()),
                None => ("unlimited".to_owned(), "unlimited".to_owned()),
            };
            let message = format!(
                "Access denied for user '{user}'@'{host}'. Account is blocked for {days} day(s) ({left} day(s) \
                 remaining) due to {attempts} consecutive failed logins."
            );
            ServerError::new(3955, b"HY000", message)
        })
    }

    fn committed(&self, command: CommandIdentity) -> Result<Option<CommittedAnswer>, ServerError> {
        let now_ms = self.instance.facts.environment.clock.wall_time_ms();
        self.instance.commits.find(command, now_ms).map_err(|error| {
            let error = from_rows(error);
            ServerError::new(error.code, &error.state, error.message)
        })
    }

    fn open(&self, login: Login) -> Result<Box<dyn Session>, ServerError> {
        let beginning = self.beginning(&login)?;
        let session = SqlSession::open(&self.instance, beginning);
        let session =
            session.map_err(|error| ServerError::new(error.code, &error.state, error.message))?;
        Ok(Box::new(session))
    }

    fn abandon_session(&self, connection: u32) {
        self.instance.left.abandon(u64::from(connection));
    }

    fn resume(
        &self,
        login: Login,
        document: Option<&[u8]>,
        last: &LastResults,
    ) -> Result<Box<dyn Session>, ServerError> {
        let beginning = self.beginning(&login)?;
        match SqlSession::go_on(&self.instance, beginning, document, last) {
            Ok(session) => Ok(Box::new(session)),
            Err(HandoverError::Refused(error)) => {
                Err(ServerError::new(error.code, &error.state, error.message))
            }
            Err(error) => {
                let message = format!("The session cannot go on at another server: {error}");
                Err(ServerError::new(1105, b"HY000", message))
            }
        }
    }
}

/// Marks the time in which a session's command can be cancelled.
struct Running(Arc<Facts>);

impl Running {
    fn new(facts: &Arc<Facts>) -> Running {
        facts.begin_command();
        Running(Arc::clone(facts))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end_command();
    }
}

impl Session for SqlSession {
    fn identify(&mut self, command: CommandIdentity) {
        self.identify_command(command);
    }

    fn query(&mut self, query: Query<'_>, replies: &mut Replies<'_>) -> Result<(), WireError> {
        let _running = Running::new(self.facts());
        self.begin_command();
        let done = self.run_query(query, replies);
        self.end_command(replies);
        done
    }

    fn prepare(&mut self, statement: u32, text: &[u8]) -> Result<Prepared, WireError> {
        let _running = Running::new(self.facts());
        self.prepare_numbered(statement, text).map_err(wire_error)
    }

    fn execute(
        &mut self,
        execution: Execution<'_>,
        replies: &mut Replies<'_>,
    ) -> Result<(), WireError> {
        let _running = Running::new(self.facts());
        self.begin_command();
        let done = self.execute_numbered(execution, replies);
        self.end_command(replies);
        done
    }

    fn close_statement(&mut self, statement: u32) {
        self.forget_numbered(statement);
    }

    fn init_db(&mut self, schema: &[u8], replies: &mut Replies<'_>) -> Result<(), WireError> {
        let schema = String::from_utf8_lossy(schema);
        self.use_schema(&schema).map_err(wire_error)?;
        self.answer_plainly(replies)
    }

    fn reset(&mut self, replies: &mut Replies<'_>) -> Result<(), WireError> {
        SqlSession::reset(self).map_err(wire_error)?;
        self.answer_plainly(replies)
    }

    fn status(&self) -> firn_wire::Status {
        SqlSession::status(self)
    }

    fn statistics(&mut self) -> String {
        self.statistics_line()
    }

    fn kill(&mut self, connection: u32) -> Result<(), WireError> {
        self.kill_connection(u64::from(connection)).map_err(wire_error)
    }

    fn field_list(
        &mut self,
        table: &[u8],
        pattern: &[u8],
    ) -> Result<Vec<FieldDefinition>, WireError> {
        self.fields_of(table, pattern).map_err(wire_error)
    }

    fn was_cut(&mut self) -> bool {
        self.take_cut()
    }

    fn carried(&mut self) -> Carried {
        self.what_is_carried()
    }

    fn leave_session(&mut self) -> bool {
        self.leave_what_ends()
    }

    fn take_left(&mut self) -> bool {
        self.take_what_was_left()
    }

    fn describe_transaction(&mut self) -> Option<Vec<u8>> {
        self.describe_open_transaction()
    }

    fn take_up_transaction(&mut self, described: &[u8]) -> Result<(), ServerError> {
        let _running = Running::new(self.facts());
        self.take_up_described(described)
            .map_err(|error| ServerError::new(error.code, &error.state, error.message))
    }

    fn take_last(&mut self, last: &LastResults) {
        self.take_last_results(last);
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        Arc::clone(self.facts()) as _
    }
}
