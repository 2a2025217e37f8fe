//! A two-way stream of bytes over any transport.

use std::io;

use super::tls::TlsInformation;

/// The transport of a [`super::Channel`].
pub(crate) trait ByteStream: Send {
    /// Reads some bytes; 0 at the end. Fails with [`io::ErrorKind::WouldBlock`] if none arrive in a
    /// slice.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes some bytes. Fails with [`io::ErrorKind::WouldBlock`] if none can be written in a
    /// slice.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Sends bytes that were accepted and held back; fails as writing does.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Parameters of TLS, if this is a TLS stream.
    fn tls(&self) -> Option<TlsInformation> {
        None
    }

    /// Announces the end to the other side, if the transport can.
    fn close(&mut self) {}
}

/// A stream in memory, for tests and for replies without a receiver.
#[derive(Debug, Default)]
pub(crate) struct MemoryStream {
    /// The bytes to read.
    pub(crate) input: io::Cursor<Vec<u8>>,
    /// The bytes that were written.
    pub(crate) output: std::sync::Arc<parking_lot::Mutex<Vec<u8>>>,
}

impl ByteStream for MemoryStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        io::Read::read(&mut self.input, buffer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
}
