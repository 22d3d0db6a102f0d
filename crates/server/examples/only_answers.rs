//! A server that only answers, to find what a load generator can do at most: `only_answers PORT`.
//!
//! It understands nothing: every `*` that arrives is a request, a connection that has sent `GET` gets a bulk of 256
//! bytes for each, any other `+OK`. So it is for keys and values without `*`, as `redis-benchmark` makes them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use slab::Slab;

const LISTENER: Token = Token(usize::MAX);
const READ_BYTES: usize = 64 << 10;
/// While others are measured it sleeps; in between it does not, since that would cost the client time.
const AWAKE_MAX: Duration = Duration::from_millis(1);
const VALUE_BYTES: usize = 256;

struct Client {
    socket: TcpStream,
    gets: bool,
    unsent: Vec<u8>,
}

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| io::Error::other("usage: only_answers PORT"))?;
    let mut listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let (mut events, mut clients) = (Events::with_capacity(1024), Slab::new());
    let mut buffer = vec![0; READ_BYTES];
    let mut answered = Instant::now();
    loop {
        match poll.poll(&mut events, (answered.elapsed() < AWAKE_MAX).then_some(Duration::ZERO)) {
            // It was stopped, and goes on.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        if !events.is_empty() {
            answered = Instant::now();
        }
        for event in &events {
            match event.token() {
                LISTENER => accept(&listener, &poll, &mut clients)?,
                Token(key) if clients[key].turn(&mut buffer).is_err() => drop(clients.remove(key)),
                _ => {}
            }
        }
    }
}

fn accept(listener: &TcpListener, poll: &Poll, clients: &mut Slab<Client>) -> io::Result<()> {
    while let Ok((mut socket, _)) = listener.accept() {
        let entry = clients.vacant_entry();
        socket.set_nodelay(true)?;
        poll.registry().register(&mut socket, Token(entry.key()), Interest::READABLE | Interest::WRITABLE)?;
        entry.insert(Client { socket, gets: false, unsent: Vec::new() });
    }
    Ok(())
}

impl Client {
    /// Reads until the socket is empty, which a read that leaves room tells, and answers what came. An error is the
    /// connection's end.
    fn turn(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.send()?;
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read_bytes) => {
                    self.answer(&buffer[..read_bytes]);
                    self.send()?;
                    if read_bytes < buffer.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn answer(&mut self, arrived: &[u8]) {
        self.gets |= arrived.windows(5).take(16).any(|word| word == b"GET\r\n");
        for _ in 0..arrived.iter().filter(|byte| **byte == b'*').count() {
            if self.gets {
                self.unsent.extend_from_slice(b"$256\r\n");
                self.unsent.extend_from_slice(&[b'x'; VALUE_BYTES]);
                self.unsent.extend_from_slice(b"\r\n");
            } else {
                self.unsent.extend_from_slice(b"+OK\r\n");
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(sent_bytes) => drop(self.unsent.drain(..sent_bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
