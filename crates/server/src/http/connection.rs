//! One connection: a request, its answer, and the wait until the client has it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use mio::net::TcpStream;

use super::request::{Parsed, Request};
use super::response::Response;

/// As much as browsers send, cookies of other programs on the same host included.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// From the connection to its end.
const LIFE_MAX: Duration = Duration::from_secs(10);

pub(super) struct Connection {
    socket: TcpStream,
    addr: SocketAddr,
    pub(super) deadline: Instant,
    stage: Stage,
}

enum Stage {
    /// The request comes.
    Request(Vec<u8>),
    /// The answer goes; so much of it has been sent.
    Answer(Vec<u8>, usize),
    /// All has been sent. Closing before the client has closed might take back what it has not read yet.
    Farewell,
}

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// The socket must get ready.
    Waits,
    Over,
}

impl Connection {
    pub(super) fn new(socket: TcpStream, addr: SocketAddr) -> Connection {
        Connection { socket, addr, deadline: Instant::now() + LIFE_MAX, stage: Stage::Request(Vec::new()) }
    }

    pub(super) fn is_late(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// Gets on as far as the socket allows.
    pub(super) fn advance(&mut self, answer: &mut dyn FnMut(&Request<'_>) -> Response) -> Progress {
        loop {
            match self.step(answer) {
                Ok(true) => {}
                Ok(false) => return Progress::Over,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Waits,
                Err(_) => return Progress::Over,
            }
        }
    }

    /// One step; false when nothing is left to do.
    fn step(&mut self, answer: &mut dyn FnMut(&Request<'_>) -> Response) -> io::Result<bool> {
        match &mut self.stage {
            Stage::Request(bytes) => {
                if !read(&mut self.socket, bytes)? {
                    return Ok(false);
                }
                let response = match Request::parse(bytes, self.addr) {
                    Parsed::Whole(request) => answer(&request),
                    Parsed::Wrong => Response::of_status(400),
                    Parsed::Partial if bytes.len() >= REQUEST_BYTES_MAX => Response::of_status(431),
                    Parsed::Partial => return Ok(true),
                };
                self.stage = Stage::Answer(response.bytes(), 0);
            }
            Stage::Answer(bytes, sent) if *sent == bytes.len() => {
                self.socket.shutdown(Shutdown::Write)?;
                self.stage = Stage::Farewell;
            }
            Stage::Answer(bytes, sent) => *sent += self.socket.write(&bytes[*sent..])?,
            Stage::Farewell => return read(&mut self.socket, &mut Vec::new()),
        }
        Ok(true)
    }
}

/// Reads once; false at the end.
fn read(socket: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; 4096];
    let piece_bytes = socket.read(&mut piece)?;
    bytes.extend_from_slice(&piece[..piece_bytes]);
    Ok(piece_bytes > 0)
}
