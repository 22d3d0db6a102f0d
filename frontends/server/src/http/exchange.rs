//! One connection: a request, the response, and the wait until the client has received it.
//!
//! A client that sends plain HTTP to a TLS port gets an explanation in plain text; its request is not processed.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::request::{Parsed, Request};
use super::response::Response;
use crate::connections::transport::{Arrived, Transport};

/// As much as browsers send, including cookies of other programs on the same host.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Bytes read at a time: nearly every request is shorter.
const PIECE_BYTES: usize = 4 << 10;

const USE_HTTPS: &str = "this port uses TLS; use https://";

/// Maximum duration of a connection.
const LIFE_MAX: Duration = Duration::from_secs(10);

pub(super) struct Exchange {
    transport: Transport,
    /// TLS was expected, and the client does not speak it.
    is_plain: bool,
    addr: SocketAddr,
    pub(super) deadline: Instant,
    stage: Stage,
    /// The error if the client's data is not valid TLS.
    failure: Option<io::Error>,
}

enum Stage {
    /// Nothing has arrived.
    Hello,
    /// The request is arriving.
    Request(Vec<u8>),
    /// The response is being sent; the number counts the bytes already sent.
    Answer(Vec<u8>, usize),
    /// Everything has been sent. Closing before the client does might discard data that it has not read yet.
    Farewell,
}

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// The socket is not ready.
    Waits,
    Over,
}

impl Exchange {
    pub(super) fn new(transport: Transport, addr: SocketAddr) -> Exchange {
        let deadline = Instant::now() + LIFE_MAX;
        Exchange { transport, is_plain: false, addr, deadline, stage: Stage::Hello, failure: None }
    }

    /// Returns the local address of the connection.
    pub(super) fn local_ip(&self) -> Option<IpAddr> {
        self.transport.local_addr().map(|addr| addr.ip().to_canonical())
    }

    /// Returns the TLS error, if the connection ended because of one.
    pub(super) fn failed_handshake(&self) -> Option<(SocketAddr, &io::Error)> {
        self.failure.as_ref().filter(|_| self.transport.is_shaking_hands()).map(|error| (self.addr, error))
    }

    pub(super) fn is_late(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// Progresses as far as the socket allows.
    pub(super) fn advance(&mut self, answer: &mut dyn FnMut(&Request<'_>) -> Response) -> Progress {
        loop {
            match self.step(answer) {
                Ok(true) => {}
                Ok(false) => return Progress::Over,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Waits,
                Err(error) => {
                    self.failure = (error.kind() == ErrorKind::InvalidData).then_some(error);
                    return Progress::Over;
                }
            }
        }
    }

    /// Performs one step; returns false when nothing is left to do.
    fn step(&mut self, answer: &mut dyn FnMut(&Request<'_>) -> Response) -> io::Result<bool> {
        match &mut self.stage {
            Stage::Hello if self.transport.begins_well()? => self.stage = Stage::Request(Vec::new()),
            Stage::Hello => {
                self.is_plain = true;
                self.stage = Stage::Answer(Response::explained(400, USE_HTTPS).bytes(), 0);
            }
            Stage::Request(bytes) => {
                let arrived = read(&mut self.transport, bytes)?;
                let response = match Request::parse(bytes, self.addr) {
                    Parsed::Whole(request) => answer(&request),
                    Parsed::Wrong => Response::of_status(400),
                    Parsed::Partial if bytes.len() >= REQUEST_BYTES_MAX => Response::of_status(431),
                    Parsed::Partial => return may_continue(arrived),
                };
                self.stage = Stage::Answer(response.bytes(), 0);
            }
            Stage::Answer(bytes, sent) if *sent == bytes.len() => {
                match self.is_plain {
                    true => self.transport.socket_mut().end()?,
                    false => self.transport.end()?,
                }
                self.stage = Stage::Farewell;
            }
            Stage::Answer(bytes, sent) if self.is_plain => {
                *sent += self.transport.socket_mut().write(&bytes[*sent..])?
            }
            Stage::Answer(bytes, sent) => *sent += self.transport.write(&bytes[*sent..])?,
            Stage::Farewell if self.is_plain => return Ok(self.transport.socket_mut().read(&mut [0; PIECE_BYTES])? > 0),
            Stage::Farewell => return read(&mut self.transport, &mut Vec::new()).and_then(may_continue),
        }
        Ok(true)
    }
}

/// Reads a piece, and sends pending handshake data.
fn read(transport: &mut Transport, bytes: &mut Vec<u8>) -> io::Result<Arrived> {
    bytes.reserve_exact(PIECE_BYTES);
    let arrived = transport.read(bytes)?;
    transport.flush()?;
    Ok(arrived)
}

/// Returns whether more may arrive; an error if it has to be waited for.
fn may_continue(arrived: Arrived) -> io::Result<bool> {
    match arrived {
        Arrived::Some => Ok(true),
        Arrived::All => Err(ErrorKind::WouldBlock.into()),
        Arrived::End => Ok(false),
    }
}
