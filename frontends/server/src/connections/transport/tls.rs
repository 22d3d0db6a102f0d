//! TLS on a socket.
//!
//! Memory is bounded in both directions: nothing is read from the socket while decrypted bytes wait, and nothing is
//! encrypted while encrypted bytes wait. Reads and flushes also drive the handshake.

use std::io::{self, BufRead, ErrorKind, Write};

use mio::net::TcpStream;
use rustls::ServerConnection;

use super::refusal::explained;
use super::{Arrived, Certificates};

/// Maximum bytes decrypted for a connection before the others get their turn: as many as a socket delivers at a time.
const TURN_BYTES_MAX: usize = 256 << 10;

/// The first byte of a record that begins a handshake.
const HANDSHAKE_TYPE: u8 = 22;

pub(crate) struct TlsStream {
    socket: TcpStream,
    tls: ServerConnection,
}

impl TlsStream {
    pub(super) fn accept(socket: TcpStream, certificates: &Certificates) -> io::Result<TlsStream> {
        let tls = ServerConnection::new(certificates.current()).map_err(io::Error::other)?;
        Ok(TlsStream { socket, tls })
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(super) fn socket_mut(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Returns whether the first waiting byte is one of TLS.
    pub(super) fn begins_with_tls(&self) -> io::Result<bool> {
        let mut first = [0];
        match self.socket.peek(&mut first)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(first == [HANDSHAKE_TYPE]),
        }
    }

    pub(super) fn is_shaking_hands(&self) -> bool {
        self.tls.is_handshaking()
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    /// Decrypts until `bytes` is full, the socket is empty, or the turn's limit is reached.
    pub(super) fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<Arrived> {
        let end = bytes.capacity().min(bytes.len() + TURN_BYTES_MAX);
        loop {
            if let Some(arrived) = self.take_decrypted(bytes, end)? {
                return Ok(arrived);
            }
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => return Ok(Arrived::End),
                Ok(_) => self.decrypt()?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Arrived::All),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves decrypted bytes to the free part of `bytes` before `end`; `None` if more must be read from the socket.
    fn take_decrypted(&mut self, bytes: &mut Vec<u8>, end: usize) -> io::Result<Option<Arrived>> {
        let mut reader = self.tls.reader();
        while bytes.len() < end {
            let decrypted = match reader.fill_buf() {
                Ok([]) => return Ok(Some(Arrived::End)),
                Ok(decrypted) => decrypted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            let taken_bytes = decrypted.len().min(end - bytes.len());
            bytes.extend_from_slice(&decrypted[..taken_bytes]);
            reader.consume(taken_bytes);
        }
        Ok(Some(Arrived::Some))
    }

    fn decrypt(&mut self) -> io::Result<()> {
        let Err(error) = self.tls.process_new_packets() else { return Ok(()) };
        // Sends the alert to the client, if it still reads.
        let _ = self.flush();
        Err(explained(error))
    }

    /// Encrypts the start of `bytes` once everything encrypted before is sent.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let taken_bytes = self.tls.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken_bytes),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends the end-of-stream alert.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.tls.send_close_notify();
        self.flush()
    }
}

/// Sends the end-of-stream alert, which distinguishes this end from a truncation by an attacker.
impl Drop for TlsStream {
    fn drop(&mut self) {
        if !self.is_shaking_hands() {
            self.tls.send_close_notify();
            // A client that does not receive it sees the end of the socket.
            let _ = self.flush();
        }
    }
}
