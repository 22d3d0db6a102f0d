use std::io::Read;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use hikv::{Durability, Options};
use rings::{HostEnd, Listener};

use super::*;

/// Accepts a limited number of bytes at a time, then no more for now.
struct Slow {
    has_space: bool,
}

impl Carrier for Slow {}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.has_space = !self.has_space;
        if self.has_space { Err(ErrorKind::WouldBlock.into()) } else { Ok(bytes.len().min(100 << 10)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn slow_peer_costs_no_more_than_stopped() {
    let (mut output, mut socket) = (Output::default(), Slow { has_space: true });
    for _ in 0..1000 {
        while !output.is_full() {
            output.put(&mut socket, &[7; 64 << 10]);
        }
        assert!(!output.send(&mut socket).expect("it takes some"));
        assert!(output.len() <= limits::OUTPUT_BYTES_MAX + (64 << 10), "{} bytes", output.len());
    }
}

/// Memory of limited size, and the bytes published to the peer.
struct Staging {
    buffer_bytes: usize,
    staged: Vec<u8>,
    published: Vec<u8>,
}

impl Carrier for Staging {
    fn stage(&mut self, bytes: &[u8]) -> bool {
        let has_space = self.published.len() + self.staged.len() + bytes.len() <= self.buffer_bytes;
        if has_space {
            self.staged.extend_from_slice(bytes);
        }
        has_space
    }

    fn publish(&mut self, len_bytes: usize) {
        assert!(len_bytes > 0, "a host that sleeps is not woken for nothing");
        self.published.extend(self.staged.drain(..len_bytes));
    }
}

impl Write for Staging {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(self.staged.is_empty(), "what was staged comes first");
        self.published.extend_from_slice(&bytes[..bytes.len().min(4)]);
        Ok(bytes.len().min(4))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Wherever the space ends.
#[test]
fn undurable_reply_delays_later_ones() {
    // A journal, if the directory is on a disk; if writes are durable immediately there is nothing to hold.
    let dir = tempfile::tempdir_in(".").expect("a directory");
    let store = Options::new().durability(Durability::Power).open(dir.path());
    let Ok(store) = store else { return };
    for buffer_bytes in [0, 6, 10, 16, 18, 21, 64] {
        let (written, ticket) = store.deferred(|store| store.put("k", "v"));
        written.expect("it is written");
        let mut carrier = Staging { buffer_bytes, staged: Vec::new(), published: Vec::new() };
        let mut output = Output::default();
        output.put(&mut carrier, b"before");
        output.put(&mut carrier, b"completion");
        output.hold(6, ticket);
        output.put(&mut carrier, b"after");
        (0..2).for_each(|_| _ = output.send(&mut carrier).expect("it takes all"));
        let is_held = ticket != Ticket::default();
        assert_eq!(carrier.published == b"before", is_held, "{:?}", carrier.published);
        assert_eq!(output.ticket().is_some(), is_held);
        output.put(&mut carrier, b"!");
        store.wait(ticket).expect("it becomes durable");
        output.release(&store).expect("the disk is well");
        assert!(output.send(&mut carrier).expect("it takes all"));
        assert_eq!(carrier.published, b"beforecompletionafter!", "a buffer of {buffer_bytes}");
        assert!(output.is_empty() && output.ticket().is_none());
    }
}

/// Creates both ends of shared memory.
pub(crate) fn ends() -> (tempfile::TempDir, Socket, HostEnd) {
    let dir = tempfile::tempdir().expect("a directory");
    let listener = Listener::bind(&dir.path().join("socket"), 0o600).expect("a path");
    let (device, host) = thread::scope(|scope| {
        let connecting = scope.spawn(|| HostEnd::connect(listener.path(), Some(Duration::from_secs(60))));
        let device = loop {
            match listener.accept() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                accepted => break accepted.expect("a host"),
            }
        };
        (device, connecting.join().expect("it ends").expect("it connects"))
    });
    (dir, Socket::Shm(Box::new(device)), host)
}

/// An output into shared memory with its host, and the actions of both.
struct Scene {
    store: Store,
    socket: Socket,
    host: HostEnd,
    output: Output,
    random: Rng,
    /// Bytes written, bytes read by the host, and bytes published.
    written: usize,
    read: usize,
    published: usize,
    /// The start positions of held parts, with their tickets.
    held: VecDeque<(usize, Ticket)>,
}

/// Returns the expected byte at a position; a wrong position is detected by the bytes after it.
fn byte_at(place: usize) -> u8 {
    ((place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Scene {
    /// Writes a turn's completions and values, some of which are held.
    fn write(&mut self) {
        if self.output.is_full() {
            return;
        }
        let (start, place) = (self.output.len(), self.written);
        for _ in 0..self.random.usize(1..8) {
            let len = match self.random.u8(..64) {
                0 => self.random.usize(..3 * rings::RING_BYTES),
                1..8 => self.random.usize(..9000),
                _ => self.random.usize(..300),
            };
            let bytes: Vec<u8> = (self.written..self.written + len).map(byte_at).collect();
            self.output.put(&mut self.socket, &bytes);
            self.written += len;
        }
        if self.random.bool() {
            let (stored, ticket) = self.store.deferred(|store| store.put("k", "v"));
            stored.expect("it is stored");
            self.output.hold(start, ticket);
            if self.written > place {
                self.held.push_back((place, ticket));
            }
        }
    }

    /// The disk completes some of the awaited syncs, or all.
    fn sync(&mut self) {
        if !self.held.is_empty() {
            let (_, ticket) = self.held[self.random.usize(..self.held.len())];
            self.store.wait(ticket).expect("the disk is well");
        }
    }

    fn send(&mut self) {
        self.output.release(&self.store).expect("the disk is well");
        while self.held.front().is_some_and(|(_, ticket)| self.store.is_durable(*ticket).expect("the disk is well")) {
            self.held.pop_front();
        }
        let durable = self.held.front().map_or(self.written, |(place, _)| *place);
        let takes_more = self.output.send(&mut self.socket).expect("the host is well");
        self.published = self.written - (self.output.len() - self.output.sent);
        assert!(
            self.published == durable || !takes_more && self.published < durable,
            "{} of {durable}",
            self.published
        );
        assert!(takes_more || self.published - self.read > rings::RING_BYTES / 2, "there is space");
    }

    /// The host reads some of the published bytes.
    fn read(&mut self) {
        if self.published == self.read {
            return;
        }
        let most = [1, 7, 100, 5000, 3 * rings::RING_BYTES][self.random.usize(..5)];
        let mut bytes = vec![0; most];
        let len = self.host.read(&mut bytes).expect("it is published");
        assert_eq!(len, most.min(self.published - self.read), "exactly the published bytes are readable");
        let is_right = bytes[..len].iter().zip(self.read..).all(|(byte, place)| *byte == byte_at(place));
        assert!(is_right, "between {} and {}", self.read, self.read + len);
        self.read += len;
    }
}

/// A host reads every byte once and in order, and none before durability, however full the memory is and whatever is
/// held.
#[test]
fn host_reads_durable_data_as_written() {
    let dir = tempfile::tempdir_in(".").expect("a directory");
    // Without background threads, data becomes durable only when it is waited for.
    let store = Options::new().durability(Durability::Power).background(false).open(dir.path());
    let Ok(store) = store else { return };
    let (_place, socket, host) = ends();
    let (output, random) = (Output::default(), Rng::with_seed(1));
    let (written, read, published, held) = (0, 0, 0, VecDeque::new());
    let mut scene = Scene { store, socket, host, output, random, written, read, published, held };
    for _ in 0..6_000 {
        match scene.random.u8(..16) {
            0..5 => scene.write(),
            5 => scene.sync(),
            6..10 => scene.send(),
            _ => scene.read(),
        }
    }
    if let Some((_, last)) = scene.held.back() {
        scene.store.wait(*last).expect("the disk is well");
    }
    while scene.read < scene.written {
        scene.send();
        scene.read();
    }
    assert!(scene.output.is_empty() && scene.output.ticket().is_none());
    assert!(scene.written > 20 * rings::RING_BYTES, "{} bytes are few", scene.written);
}

/// A host writes to the shared positions at any time: the connection continues, or it ends.
#[test]
fn host_forging_places_ends_only_its_connection() {
    let mut random = Rng::with_seed(1);
    let mut end_count = 0;
    for _ in 0..200 {
        let (_place, mut socket, host) = ends();
        let mut output = Output::default();
        for _ in 0..100 {
            if random.u8(..8) == 0 {
                let places = [random.u64(..), random.u64(..4), random.u64(..2 * rings::RING_BYTES as u64), u64::MAX];
                host.forge(false, random.usize(..4), places[random.usize(..4)]);
            }
            if !output.is_full() {
                let len = [random.usize(..300), random.usize(..60_000)][usize::from(random.u8(..8) == 0)];
                output.put(&mut socket, &vec![7; len]);
            }
            if random.bool() && output.send(&mut socket).is_err() {
                end_count += 1;
                break;
            }
            assert!(output.len() < limits::OUTPUT_BYTES_MAX + 60_000);
        }
    }
    assert!(end_count > 10, "{end_count} lies were found");
}
