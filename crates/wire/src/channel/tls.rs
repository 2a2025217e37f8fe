//! TLS below the packets: the server's certificate, and a stream around another stream.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::stream::ByteStream;

/// Plain bytes that TLS gets at a time. This limits the size of its buffer.
const PIECE_BYTES: usize = 64 << 10;

/// Whether and with what certificate the server speaks TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TlsMode {
    Disabled,
    /// A certificate that the server makes for itself when it starts.
    #[default]
    SelfSigned,
    /// A certificate that the user provides.
    Files(TlsFiles),
}

/// Where certificate and key are, both in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by the certificates of its issuers.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The agreed parameters of a TLS connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsInformation {
    /// Such as `TLSv1.3`.
    pub version: &'static str,
    /// Such as `TLS13_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// Wraps plain streams in TLS.
pub(crate) struct TlsAcceptor {
    config: Arc<ServerConfig>,
}

impl TlsAcceptor {
    /// The acceptor for a mode; `None` without TLS.
    pub(crate) fn new(mode: &TlsMode) -> io::Result<Option<TlsAcceptor>> {
        let (certificates, key) = match mode {
            TlsMode::Disabled => return Ok(None),
            TlsMode::SelfSigned => self_signed()?,
            TlsMode::Files(files) => read(files)?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(io::Error::other)?;
        Ok(Some(TlsAcceptor { config: Arc::new(config) }))
    }

    /// Wraps `stream` in TLS. `early` has the bytes that were already received. Does not wait: the
    /// first reads perform the handshake.
    pub(crate) fn accept(
        &self,
        stream: Box<dyn ByteStream>,
        early: Vec<u8>,
    ) -> io::Result<Box<dyn ByteStream>> {
        let connection = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        Ok(Box::new(TlsStream { connection, inner: Inner { stream, early, taken: 0 } }))
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn self_signed() -> io::Result<Identity> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

fn read(files: &TlsFiles) -> io::Result<Identity> {
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(&files.certificate, error))?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| unreadable(&files.key, error))?;
    Ok((certificates, key))
}

fn unreadable(path: &std::path::Path, error: rustls::pki_types::pem::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", path.display()))
}

struct TlsStream {
    connection: ServerConnection,
    inner: Inner,
}

/// The stream that carries the records.
struct Inner {
    stream: Box<dyn ByteStream>,
    early: Vec<u8>,
    taken: usize,
}

impl Read for Inner {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.early.len() {
            return self.stream.read(buffer);
        }
        let taken = (&self.early[self.taken..]).read(buffer)?;
        self.taken += taken;
        Ok(taken)
    }
}

impl Write for Inner {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    fn send_records(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.inner)?;
        }
        Ok(())
    }

    /// Processes received records; fails as the stream does.
    fn receive_records(&mut self) -> io::Result<()> {
        self.send_records()?;
        if self.connection.read_tls(&mut self.inner)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let processed = self.connection.process_new_packets();
        // Handshake messages and alerts go out at once, even if the client broke the protocol.
        let sent = self.send_records();
        processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        sent
    }
}

/// A client that closes without a TLS alert has ended the stream all the same.
fn ended_or(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}

impl ByteStream for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.connection.reader().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return ended_or(read),
        }
        // Reads the socket only once, because the caller checks its deadline between two reads.
        self.receive_records()?;
        ended_or(self.connection.reader().read(buffer))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Earlier records that could not be sent go first.
        self.send_records()?;
        let accepted = self.connection.writer().write(&bytes[..bytes.len().min(PIECE_BYTES)])?;
        match self.send_records() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(accepted),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_records()
    }

    fn tls(&self) -> Option<TlsInformation> {
        let version = match self.connection.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2",
            rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "unknown",
        };
        let cipher = format!("{:?}", self.connection.negotiated_cipher_suite()?.suite());
        Some(TlsInformation { version, cipher })
    }

    fn close(&mut self) {
        self.connection.send_close_notify();
        // The client may be gone. Nothing depends on whether it receives this.
        let _ = self.send_records();
    }
}
