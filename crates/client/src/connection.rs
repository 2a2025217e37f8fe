//! The connection of `firn sql`: connecting, reconnecting, interrupting.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use firn_base::Environment;
use mysql::prelude::Queryable;
use mysql::{Conn, DriverError, LocalInfileHandler, OptsBuilder, SslOpts};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use super::ClientError;
use super::options::{Target, Tls};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// MySQL's number for a wrong password.
const ACCESS_DENIED: u16 = 1045;

/// The client library's options for a target.
fn parameters(target: &Target, tls: bool) -> OptsBuilder {
    let socket = target.socket.clone();
    let ssl = tls.then(|| ssl(&target.tls)).flatten();
    let mut builder = OptsBuilder::new()
        .ip_or_hostname(Some(target.host.clone()))
        .tcp_port(target.port)
        .prefer_socket(false)
        .user(Some(target.user.clone()))
        .pass(target.password.clone())
        .db_name(target.schema.clone())
        .tcp_connect_timeout(Some(CONNECT_TIMEOUT))
        .ssl_opts(ssl.filter(|_| socket.is_none()))
        .socket(socket);
    if target.local_infile {
        builder = builder.local_infile_handler(Some(LocalInfileHandler::new(|name, stream| {
            let path = std::str::from_utf8(name).map_err(io::Error::other)?;
            io::copy(&mut std::fs::File::open(path)?, stream).map(|_| ())
        })));
    }
    builder
}

fn ssl(tls: &Tls) -> Option<SslOpts> {
    let unverified = || {
        SslOpts::default()
            .with_danger_accept_invalid_certs(true)
            .with_danger_skip_domain_validation(true)
    };
    match tls {
        Tls::Disabled => None,
        Tls::Preferred | Tls::Required => Some(unverified()),
        Tls::Verified(authority) => Some(SslOpts::default().with_root_cert_path(authority.clone())),
    }
}

/// Connects. Asks for a password if the server wants one and standard input is a terminal.
///
/// # Errors
/// The error of the network or the server.
pub(crate) fn connect(target: &mut Target) -> Result<Conn, ClientError> {
    if target.asks_password {
        ask_password(target)?;
    }
    match connect_once(target) {
        Err(ClientError::Server(mysql::Error::MySqlError(error)))
            if error.code == ACCESS_DENIED
                && target.password.is_none()
                && io::stdin().is_terminal() =>
        {
            ask_password(target)?;
            connect_once(target)
        }
        done => done,
    }
}

fn connect_once(target: &Target) -> Result<Conn, ClientError> {
    match Conn::new(parameters(target, true)) {
        Err(mysql::Error::DriverError(DriverError::TlsNotSupported))
            if target.tls == Tls::Preferred =>
        {
            Ok(Conn::new(parameters(target, false))?)
        }
        done => Ok(done?),
    }
}

fn ask_password(target: &mut Target) -> Result<(), ClientError> {
    let question = format!("Password of {}@{}: ", target.user, target.place());
    target.password = Some(rpassword::prompt_password(question)?);
    target.asks_password = false;
    Ok(())
}

impl Target {
    /// Where the server is, as shown to the user.
    pub(crate) fn place(&self) -> String {
        match &self.socket {
            Some(socket) => socket.clone(),
            None if self.port == 3306 => self.host.clone(),
            None => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Ends the running statement when the user presses Ctrl-C: `KILL QUERY` over a second connection.
pub(crate) struct Interrupter {
    /// The connection whose statement runs, or 0.
    running: Arc<AtomicU32>,
}

impl Interrupter {
    /// Handles Ctrl-C from now on. While no statement runs, Ctrl-C ends the process as usual.
    ///
    /// # Errors
    /// If the signal cannot be handled.
    pub(crate) fn start(environment: &Environment, target: &Target) -> io::Result<Interrupter> {
        let running = Arc::new(AtomicU32::new(0));
        let mut signals = Signals::new([SIGINT])?;
        let (seen, target) = (Arc::clone(&running), target.clone());
        let wait = move || {
            for _ in signals.forever() {
                match seen.load(Ordering::SeqCst) {
                    0 => {
                        let _ = signal_hook::low_level::emulate_default_handler(SIGINT);
                    }
                    connection => kill(&target, connection),
                }
            }
        };
        // The task ends with the process.
        drop(environment.spawner.spawn("sql-interrupter", Box::new(wait)));
        Ok(Interrupter { running })
    }

    /// Marks the time in which a statement of the connection runs, until the result is dropped.
    pub(crate) fn running(&self, connection: &Conn) -> Running {
        self.running.store(connection.connection_id(), Ordering::SeqCst);
        Running(Arc::clone(&self.running))
    }
}

/// The mark that [`Interrupter::running`] sets.
pub(crate) struct Running(Arc<AtomicU32>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

fn kill(target: &Target, connection: u32) {
    let killed = connect_once(target)
        .and_then(|mut second| Ok(second.query_drop(format!("KILL QUERY {connection}"))?));
    if let Err(error) = killed {
        eprintln!("The statement could not be interrupted: {error}");
    }
}
