//! The same work through hikv's server for Redis clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};

use hikv::Store;
use server::{Config, Server, StopHandle};

use super::{DEPTH, DEVICE_COUNT, QUEUE_COUNT, VALUE, measure, scattered};

/// A server of a store, with as many loops as the device has.
struct Serving {
    addr: SocketAddr,
    stop: StopHandle,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    fn of(store: &Store) -> Serving {
        let config = Config { addrs: vec!["127.0.0.1:0".into()], threads: 2, ..Config::default() };
        let stop = StopHandle::new();
        let server = Server::bind(store.clone(), config, stop.clone()).expect("a free port");
        let addr = server.local_addrs().next().expect("it listens");
        let thread = Some(thread::spawn(move || server.run().expect("it serves")));
        Serving { addr, stop, thread }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    }
}

/// A command, with the start and length of each of its replies.
pub(super) struct Kind {
    pub(super) name: &'static str,
    write: fn(&mut Vec<u8>, &[u8; 16]),
    begins: &'static [u8],
    reply_bytes: usize,
}

pub(super) const SET: Kind = Kind { name: "store", write: write_set, begins: b"+OK\r\n", reply_bytes: 5 };
pub(super) const GET: Kind =
    Kind { name: "retrieve", write: write_get, begins: b"$256\r\n", reply_bytes: 6 + VALUE.len() + 2 };

fn write_set(out: &mut Vec<u8>, key: &[u8; 16]) {
    out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$16\r\n");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n$256\r\n");
    out.extend_from_slice(&VALUE);
    out.extend_from_slice(b"\r\n");
}

fn write_get(out: &mut Vec<u8>, key: &[u8; 16]) {
    out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$16\r\n");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// Sends a further command for each reply, as the device's client does.
fn run(socket: &mut TcpStream, kind: &Kind, keys: &[[u8; 16]]) {
    let (mut output, mut input, mut filled) = (Vec::new(), vec![0; 64 << 10], 0);
    let (mut keys, mut under_way) = (keys.iter(), 0);
    while keys.len() > 0 || under_way > 0 {
        for key in keys.by_ref().take(DEPTH - under_way) {
            (kind.write)(&mut output, key);
            under_way += 1;
        }
        socket.write_all(&output).expect("it takes them");
        output.clear();
        filled += socket.read(&mut input[filled..]).expect("it answers");
        let whole = input[..filled].chunks_exact(kind.reply_bytes);
        let (count, rest) = (whole.len(), whole.remainder().len());
        whole.for_each(|reply| assert!(reply.starts_with(kind.begins), "{:?}", reply.escape_ascii().to_string()));
        under_way -= count;
        input.copy_within(filled - rest..filled, 0);
        filled = rest;
    }
}

/// A server, and clients with a connection each.
pub(super) struct Clients {
    sockets: Vec<TcpStream>,
    _serving: Serving,
}

impl Clients {
    pub(super) fn of(store: &Store, count: u64) -> Clients {
        let serving = Serving::of(store);
        let connect = |_| {
            let socket = TcpStream::connect(serving.addr).expect("it listens");
            socket.set_nodelay(true).expect("it is a socket");
            socket
        };
        Clients { sockets: (0..count).map(connect).collect(), _serving: serving }
    }

    /// Runs each client's share.
    pub(super) fn run(&mut self, kind: &Kind, keys: &[[u8; 16]]) {
        let part_len = keys.len() / self.sockets.len();
        match &mut self.sockets[..] {
            [socket] => run(socket, kind, keys),
            sockets => thread::scope(|scope| {
                for (socket, part) in sockets.iter_mut().zip(keys.chunks(part_len)) {
                    scope.spawn(move || run(socket, kind, part));
                }
            }),
        }
    }
}

pub(super) fn through(store: &Store) {
    for connection_count in [1, QUEUE_COUNT] {
        let mut clients = Clients::of(store, connection_count);
        let keys: Vec<_> = (0..DEVICE_COUNT).map(scattered).collect();
        for kind in [&SET, &GET] {
            measure(&format!("hikv serve: {}, {DEPTH} at once on {connection_count}", kind.name), DEVICE_COUNT, || {
                clients.run(kind, &keys);
                Vec::new()
            });
        }
    }
}
