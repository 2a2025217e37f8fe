//! A stream of bytes in both directions, whatever carries it.

use std::io;

use super::tls::TlsInformation;

/// What a [`super::Channel`] reads from and writes to.
pub(crate) trait ByteStream: Send {
    /// Reads some bytes; 0 at the end. Fails with [`io::ErrorKind::WouldBlock`] after a slice without any.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes some bytes. Fails with [`io::ErrorKind::WouldBlock`] after a slice in which none could be.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Sends what was accepted and is still held back; fails as writing does.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// What was agreed for TLS, if this is it.
    fn tls(&self) -> Option<TlsInformation> {
        None
    }

    /// Says good-bye, if the stream has a way to.
    fn close(&mut self) {}
}

/// A stream in memory, for tests and for replies that nobody receives.
#[derive(Debug, Default)]
pub(crate) struct MemoryStream {
    /// What will be read.
    pub(crate) input: io::Cursor<Vec<u8>>,
    /// What has been written.
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
