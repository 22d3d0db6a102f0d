//! A server that only sends replies, to find a load generator's maximum: `only_answers PORT [FILE]`. With a file it
//! replies after as many bytes as arrived are durable in that file.
//!
//! It parses nothing: every `*` that arrives counts as a request. A connection that has sent `GET` gets a bulk of 256
//! bytes for each, any other `+OK`. So the server works only for keys and values without `*`, such as those of
//! `redis-benchmark`.

mod durable;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;

use durable::{Disk, Requests};

const LISTENER: Token = Token(usize::MAX);
const DISK: Token = Token(usize::MAX - 1);
const READ_BYTES: usize = 64 << 10;
/// It sleeps while other servers are measured; between its own requests it does not, because that would cost the client
/// time.
const AWAKE_MAX: Duration = Duration::from_millis(1);
const VALUE_BYTES: usize = 256;

struct Client {
    socket: TcpStream,
    gets: bool,
    unsent: Vec<u8>,
}

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| io::Error::other("usage: only_answers PORT [FILE]"))?;
    let mut listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let file = std::env::args().nth(2).map(PathBuf::from);
    let mut disk = file.map(|path| Disk::new(&path, Waker::new(poll.registry(), DISK)?)).transpose()?;
    let (mut events, mut clients) = (Events::with_capacity(1024), Slab::new());
    let (mut buffer, mut requests) = (vec![0; READ_BYTES], Requests::default());
    let mut answered = Instant::now();
    loop {
        let may_stay_awake = disk.is_none() && answered.elapsed() < AWAKE_MAX;
        match poll.poll(&mut events, may_stay_awake.then_some(Duration::ZERO)) {
            // It was stopped, and continues.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        if !events.is_empty() {
            answered = Instant::now();
        }
        for event in &events {
            match event.token() {
                LISTENER => accept(&listener, &poll, &mut clients)?,
                DISK => {}
                Token(key) => turn(&mut clients, key, &mut buffer, disk.is_some().then_some(&mut requests)),
            }
        }
        if let Some(disk) = &mut disk {
            while let Some(done) = disk.done() {
                notify(&mut clients, done?);
            }
            disk.ask(&mut requests);
        }
    }
}

/// Answers the requests of client `key`, or adds them to `requests`.
fn turn(clients: &mut Slab<Client>, key: usize, buffer: &mut [u8], requests: Option<&mut Requests>) {
    let client = &mut clients[key];
    let turned = client.read(buffer).and_then(|(count, len_bytes)| {
        match requests {
            Some(requests) if count > 0 => {
                requests.askers.push((key, count));
                requests.len_bytes += len_bytes;
            }
            _ => client.answer(count),
        }
        client.send()
    });
    if turned.is_err() {
        clients.remove(key);
    }
}

fn notify(clients: &mut Slab<Client>, done: Requests) {
    for (key, count) in done.askers {
        // A successor may have its index and gets an extra reply; none connects while clients are measured.
        if let Some(client) = clients.get_mut(key) {
            client.answer(count);
            // The error appears again on the next read.
            let _ = client.send();
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
    /// Reads until the socket is empty, which a partly filled buffer indicates. Returns the number of requests and
    /// bytes. An error means the end of the connection.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<(usize, usize)> {
        let (mut count, mut len_bytes) = (0, 0);
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read_bytes) => {
                    let arrived = &buffer[..read_bytes];
                    self.gets |= arrived.windows(5).take(16).any(|word| word == b"GET\r\n");
                    count += arrived.iter().filter(|byte| **byte == b'*').count();
                    len_bytes += read_bytes;
                    if read_bytes < buffer.len() {
                        return Ok((count, len_bytes));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok((count, len_bytes)),
                Err(error) => return Err(error),
            }
        }
    }

    fn answer(&mut self, count: usize) {
        for _ in 0..count {
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
