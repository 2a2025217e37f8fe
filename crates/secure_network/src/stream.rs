//! TLS around a socket.
//!
//! Latch rule: the mutex of the library's state is held for encryption and for system calls that do
//! not block. A thread that has to wait for the socket waits without it.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use firn_base::network::NodeIdentity;
use firn_base::network::framed::{Deadline, Stream};
use firn_base::network::system::PlainStream;
use parking_lot::Mutex;

use crate::verifier::Verifier;

/// Encrypted bytes that may wait for the socket. A send takes no more at a time.
const BUFFER_BYTES: usize = 256 << 10;

pub(crate) struct TlsStream {
    socket: PlainStream,
    tls: Mutex<rustls::Connection>,
    verifier: Arc<Verifier>,
}

/// The socket as the library sees it.
struct Socket<'a>(&'a PlainStream);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.receive(into)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.send(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    pub(crate) fn new(
        socket: PlainStream,
        (mut tls, verifier): (rustls::Connection, Arc<Verifier>),
    ) -> TlsStream {
        tls.set_buffer_limit(Some(BUFFER_BYTES));
        TlsStream { socket, tls: Mutex::new(tls), verifier }
    }

    /// Completes the handshake. The peer may still refuse this side: the first receive shows it.
    pub(crate) fn complete(&self, deadline: Deadline) -> io::Result<()> {
        loop {
            let step = {
                let mut tls = self.tls.lock();
                self.write_out(&mut tls)?;
                if !tls.is_handshaking() {
                    return Ok(());
                }
                self.read_in(&mut tls)
            };
            match step {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !deadline.wait_for_input(&self.socket())? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn write_out(&self, tls: &mut rustls::Connection) -> io::Result<()> {
        while tls.wants_write() {
            tls.write_tls(&mut Socket(&self.socket))?;
        }
        Ok(())
    }

    /// Reads what is available and processes it.
    fn read_in(&self, tls: &mut rustls::Connection) -> io::Result<()> {
        if tls.read_tls(&mut Socket(&self.socket))? == 0 && tls.is_handshaking() {
            let text = format!(
                "it ended the connection before it had shown a certificate to {}; it may run \
                 without certificates",
                self.verifier.mine()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let processed = tls.process_new_packets();
        // Answers and alerts go out at once if the socket takes them; otherwise with the next send.
        match self.write_out(tls) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock && processed.is_ok() => {
                return Err(error);
            }
            _ => {}
        }
        processed.map(drop).map_err(|error| self.untrusted(&error))
    }

    /// Why the peer cannot be trusted, or does not trust this side.
    fn untrusted(&self, error: &rustls::Error) -> io::Error {
        let mine = self.verifier.mine();
        let text = match (self.verifier.refusal(), error) {
            (Some(refusal), _) => refusal,
            (None, rustls::Error::AlertReceived(alert)) => {
                let peer = self.verifier.peer();
                let peer = peer.map_or_else(|| "the peer".to_owned(), |peer| peer.to_string());
                format!(
                    "{peer} refuses the certificate of {mine} ({alert:?}); its log says why, \
                     `firn admin certificates show` lists what has expired"
                )
            }
            (None, rustls::Error::NoCertificatesPresented) => {
                format!(
                    "the peer has no certificate, and {mine} talks to nodes of its cluster alone"
                )
            }
            (None, rustls::Error::InvalidMessage(_)) => format!(
                "the peer does not speak TLS, and {mine} has certificates; give the peer one by \
                 `firn admin certificates node`"
            ),
            (None, error) => format!("{mine} cannot agree on TLS with the peer: {error}"),
        };
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

impl Stream for TlsStream {
    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut tls = self.tls.lock();
        let taken = tls.writer().write_vectored(parts)?;
        match self.write_out(&mut tls) {
            // Nothing was taken, so the caller waits until the socket takes bytes again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && taken > 0 => Ok(taken),
            Err(error) => Err(error),
            Ok(()) if taken > 0 || parts.iter().all(|part| part.is_empty()) => Ok(taken),
            // The buffer was full and is empty now.
            Ok(()) => tls.writer().write_vectored(parts),
        }
    }

    fn flush(&self) -> io::Result<()> {
        self.write_out(&mut self.tls.lock())
    }

    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut tls = self.tls.lock();
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The socket ended without a farewell. A frame that is missing a part is noticed.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            self.read_in(&mut tls)?;
        }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.socket()
    }

    fn close(&self) {
        self.socket.close();
    }

    fn certified(&self) -> Option<NodeIdentity> {
        self.verifier.peer()
    }
}
