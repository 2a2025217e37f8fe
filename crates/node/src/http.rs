//! The part of HTTP that scrapes and probes need: one `GET`, one answer, then the connection ends.
//!
//! One client is served at a time. It has [`PATIENCE`] for its request and as much for each write
//! of the answer, so that clients occupy one thread only, and each of them only for a short time.
//! `httparse` parses requests.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::clock::Clock;
use firn_base::task::TaskHandle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest wait for a client before the server checks whether it must end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Longer requests are refused.
const LONGEST_REQUEST_BYTES: usize = 8 << 10;
/// More header lines are refused.
const MOST_HEADERS: usize = 64;

/// The answer to a `GET`.
pub struct Reply {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Reply {
    #[must_use]
    pub fn text(body: impl Into<String>) -> Reply {
        Reply { status: OK, kind: PLAIN, body: body.into() }
    }

    /// The text of a scrape.
    #[must_use]
    pub fn metrics(body: String) -> Reply {
        Reply { status: OK, kind: OPEN_METRICS, body }
    }

    /// What is asked for cannot be answered now.
    #[must_use]
    pub fn unavailable(reason: impl Into<String>) -> Reply {
        Reply { status: "503 Service Unavailable", kind: PLAIN, body: reason.into() }
    }

    fn failed(status: &'static str) -> Reply {
        Reply { status, kind: PLAIN, body: format!("{status}\n") }
    }
}

/// What is at a path; `None`: nothing. Called for each request.
pub type Pages = Box<dyn Fn(&str) -> Option<Reply> + Send + Sync>;

/// Serves pages until it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    task: Option<Box<dyn TaskHandle>>,
}

impl HttpServer {
    /// Starts answering at an address.
    ///
    /// # Errors
    /// If the server cannot listen there.
    pub fn start(
        environment: &Environment,
        address: SocketAddr,
        pages: Pages,
    ) -> io::Result<HttpServer> {
        let listener = TcpListener::bind(address).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot listen at {address} for scrapes and probes: {error}"),
            )
        })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        let (seen, clock) = (Arc::clone(&ends), environment.clock.clone());
        let body = move || serve(&listener, &seen, &*clock, &pages);
        let task = environment.spawner.spawn("http", Box::new(body));
        Ok(HttpServer { address, ends, task: Some(task) })
    }

    /// The address, with the port that the system has chosen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(task) = self.task.take() {
            task.join();
        }
    }
}

fn serve(listener: &TcpListener, ends: &AtomicBool, clock: &dyn Clock, pages: &Pages) {
    while !ends.load(Ordering::Relaxed) {
        let mut wait = [PollFd::new(listener, PollFlags::IN)];
        // Interrupted or not, the code below checks for a client.
        let _ = poll(&mut wait, Some(&LOOK));
        let Ok((stream, _)) = listener.accept() else { continue };
        if let Err(error) = answer(stream, clock, pages) {
            tracing::debug!(%error, "a scrape or probe was given up");
        }
    }
}

fn answer(mut stream: TcpStream, clock: &dyn Clock, pages: &Pages) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let deadline = clock.monotonic() + PATIENCE;
    let mut request = Vec::new();
    let reply = loop {
        match respond(&request, pages) {
            Some(response) => break response,
            None if clock.monotonic() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
            None => {}
        }
        let mut part = [0; 1024];
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => request.extend_from_slice(&part[..length]),
        }
    };
    let Reply { status, kind, body } = reply;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

const OK: &str = "200 OK";
const PLAIN: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The reply to a request; `None` while the request is incomplete.
fn respond(request: &[u8], pages: &Pages) -> Option<Reply> {
    let refused = |status: &'static str| Some(Reply::failed(status));
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) if request.len() < LONGEST_REQUEST_BYTES => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return refused("431 Request Header Fields Too Large"),
        Err(_) => return refused("400 Bad Request"),
    }
    let path = parsed.path.unwrap_or("").split('?').next().unwrap_or("");
    match (parsed.method, path) {
        (Some("GET"), path) => match pages(path) {
            Some(reply) => Some(reply),
            None => refused("404 Not Found"),
        },
        _ => refused("405 Method Not Allowed"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn status(request: &[u8]) -> Option<&'static str> {
        let page = |path: &str| match path {
            "/metrics" => Some(Reply::metrics("firn_x 1\n".to_owned())),
            "/ready" => Some(Reply::unavailable("not yet\n")),
            _ => None,
        };
        let pages: Pages = Box::new(page);
        respond(request, &pages).map(|reply| reply.status)
    }

    #[test]
    fn only_the_pages_are_served() {
        assert_eq!(status(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), Some(OK));
        assert_eq!(status(b"GET /metrics?x=1 HTTP/1.0\r\n\r\n"), Some(OK));
        let unavailable = Some("503 Service Unavailable");
        assert_eq!(status(b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n"), unavailable);
        assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), Some("404 Not Found"));
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), Some("405 Method Not Allowed"));
        assert_eq!(status(b"GET /metrics HTTP/1.1\r\n"), None);
        assert_eq!(status(b"\x00\x01\r\n\r\n"), Some("400 Bad Request"));
        let long = [b"GET /".as_slice(), &vec![b'a'; LONGEST_REQUEST_BYTES]].concat();
        assert_eq!(status(&long), Some("431 Request Header Fields Too Large"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = status(&bytes);
        }
    }
}
