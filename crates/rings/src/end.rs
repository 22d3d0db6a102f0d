//! The two ends of a connection.

use std::hint::spin_loop;
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};
use rustix::thread::futex;

use crate::memory::{Memory, Way, futex_of};
use crate::poll_budget::PollBudget;
use crate::ring::{Receiver, Ring, Sender};
use crate::untaken::Untaken;

/// How often a host that waits looks whether the device is still there.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Looks at a place, with a pause of the processor each, before a sleep.
const POLL_COUNT: u32 = 4096;

/// Whether the other side has closed the socket, on which nothing is ever said.
fn is_closed(socket: &UnixStream) -> io::Result<bool> {
    match recv(socket, &mut [0; 1], RecvFlags::DONTWAIT | RecvFlags::PEEK) {
        Ok((0, _)) => Ok(true),
        Ok(_) => Err(io::Error::new(ErrorKind::InvalidData, "the other side speaks on the socket")),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(false),
        Err(rustix::io::Errno::CONNRESET) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// What a device has found by looking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// A read finds something.
    Ready,
    /// Nothing yet: it is to be looked again.
    Pending,
    /// Nothing, for so long that the host is told to ring: the poller tells of what comes.
    Sleeping,
}

/// The device's end, which never waits: it is polled by [`DeviceEnd::fds`], once [`DeviceEnd::poll`] has said that it sleeps. A read that
/// has found nothing is followed by looks, or nobody learns of what comes.
#[derive(Debug)]
pub struct DeviceEnd {
    memory: Memory,
    socket: Arc<UnixStream>,
    /// Written by the host; its edges are what counts.
    bell: OwnedFd,
    sender: Sender,
    receiver: Receiver,
    untaken: Arc<Untaken>,
    budget: PollBudget,
    /// The host was told that this end sleeps.
    is_asleep: bool,
    /// Its socket is to be looked at, whether the host is there still.
    is_doubted: bool,
}

impl Drop for DeviceEnd {
    fn drop(&mut self) {
        self.untaken.keep(&self.socket);
        // A host that sleeps looks whether the device is there.
        [Way::ToDevice, Way::ToHost].map(|way| self.memory.ring(way)).into_iter().for_each(|ring| {
            wake(ring.reader);
            wake(ring.writer);
        });
    }
}

impl DeviceEnd {
    pub(crate) fn new(memory: Memory, socket: UnixStream, bell: OwnedFd, untaken: &Arc<Untaken>) -> DeviceEnd {
        let (sender, receiver) = (Sender::default(), Receiver::default());
        let (socket, untaken) = (Arc::new(socket), Arc::clone(untaken));
        let (budget, is_asleep, is_doubted) = (PollBudget::new(POLL_COUNT), false, false);
        DeviceEnd { memory, socket, bell, sender, receiver, untaken, budget, is_asleep, is_doubted }
    }

    /// Whether it has to be looked at: the host does not ring.
    #[must_use]
    pub fn is_awake(&self) -> bool {
        !self.is_asleep
    }

    /// Looks whether there is something to read, and has the host ring from now on if that was in vain for long enough.
    pub fn poll(&mut self) -> Readiness {
        let ring = self.memory.ring(Way::ToDevice);
        if self.receiver.has_news(&ring) {
            self.budget.reset();
            return Readiness::Ready;
        }
        if self.budget.try_again() {
            return Readiness::Pending;
        }
        // A contradiction is found by the read.
        self.is_asleep = self.receiver.may_sleep(&ring).unwrap_or(false);
        if self.is_asleep { Readiness::Sleeping } else { Readiness::Ready }
    }

    /// Writes all of it where the host reads it, if there is room, and tells the host nothing. What was staged and not told of is told
    /// before anything is written otherwise.
    #[must_use]
    pub fn stage(&mut self, bytes: &[u8]) -> bool {
        // A contradiction is found by the write.
        self.sender.stage(&self.memory.ring(Way::ToHost), bytes).unwrap_or(false)
    }

    /// Tells the host of so many bytes that were staged.
    pub fn publish(&mut self, len_bytes: usize) {
        let ring = self.memory.ring(Way::ToHost);
        self.sender.publish(&ring, len_bytes);
        if self.sender.wakes(&ring) {
            wake(ring.reader);
        }
    }

    /// The poller has told that the other side of a file is closed.
    pub fn doubt(&mut self) {
        self.is_doubted = true;
    }

    /// What becomes readable when there may be something to do: for a poller of edges.
    #[must_use]
    pub fn fds(&self) -> [RawFd; 2] {
        [self.socket.as_raw_fd(), self.bell.as_raw_fd()]
    }
}

/// A futex is all that the device does to a host.
fn wake(word: &AtomicU64) {
    // The only failure is a word that is not mapped.
    let _ = futex::wake(futex_of(word), futex::Flags::empty(), 1);
}

impl Read for DeviceEnd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let ring = self.memory.ring(Way::ToDevice);
        // Also where nothing is found: a late host may have taken the word, which is said anew before the next sleep.
        if mem::take(&mut self.is_asleep) {
            self.receiver.stays_awake(&ring);
        }
        loop {
            let len_bytes = self.receiver.pull(&ring, out)?;
            if len_bytes > 0 {
                if self.receiver.wakes(&ring) {
                    wake(ring.writer);
                }
                return Ok(len_bytes);
            }
            if !self.is_doubted || !is_closed(&self.socket)? {
                return Err(ErrorKind::WouldBlock.into());
            }
            // What was sent before the socket was closed is read first.
            if !self.receiver.has_news(&ring) {
                return Ok(0);
            }
        }
    }
}

impl Write for DeviceEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let ring = self.memory.ring(Way::ToHost);
        loop {
            let len_bytes = self.sender.push(&ring, bytes)?;
            if len_bytes > 0 {
                if self.sender.wakes(&ring) {
                    wake(ring.reader);
                }
                self.sender.expect(&ring, 0, len_bytes);
                return Ok(len_bytes);
            }
            if is_closed(&self.socket)? {
                return Err(ErrorKind::BrokenPipe.into());
            }
            if self.sender.may_sleep(&ring)? {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The host's end, which waits.
#[derive(Debug)]
pub struct HostEnd {
    memory: Memory,
    socket: UnixStream,
    bell: OwnedFd,
    sender: Sender,
    receiver: Receiver,
    budget: PollBudget,
    timeout: Option<Duration>,
}

impl HostEnd {
    pub(crate) fn new(memory: Memory, socket: UnixStream, bell: OwnedFd, timeout: Option<Duration>) -> HostEnd {
        let (sender, receiver) = (Sender::default(), Receiver::default());
        HostEnd { memory, socket, bell, sender, receiver, budget: PollBudget::new(POLL_COUNT), timeout }
    }

    /// How long a read or a write waits; for ever, if it is `None`.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// Closes the connection.
    ///
    /// # Errors
    /// The operating system's.
    pub fn close(&self) -> io::Result<()> {
        self.socket.shutdown(std::net::Shutdown::Both)
    }

    /// Writes words of the memory that are the other side's, too, for tests of what a device believes: place `number` (tail, head, reader,
    /// writer) of the ring to the device, or of that to the host.
    pub fn forge(&self, to_device: bool, number: usize, value: u64) {
        let ring = self.memory.ring(if to_device { Way::ToDevice } else { Way::ToHost });
        [ring.tail, ring.head, ring.reader, ring.writer][number].store(value, std::sync::atomic::Ordering::SeqCst);
    }

    /// The word is there that the host sleeps, which the device takes to wake the host.
    #[cfg(test)]
    pub(crate) fn says_that_it_sleeps(&self) -> bool {
        self.memory.ring(Way::ToHost).reader.load(std::sync::atomic::Ordering::SeqCst) == 1
    }

    fn ring_bell(&self) -> io::Result<()> {
        match rustix::io::write(&self.bell, &1u64.to_ne_bytes()) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sleeps by a word that is 1 until the device has changed it. A host that has slept before, since `began`, and has been woken for
    /// nothing, looks whether the device is there.
    fn sleep(&self, word: &AtomicU64, began: &mut Option<Instant>) -> io::Result<()> {
        if let Some(began) = began {
            if is_closed(&self.socket)? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if self.timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        began.get_or_insert_with(Instant::now);
        let slice = futex::Timespec { tv_sec: 0, tv_nsec: CHECK_INTERVAL.subsec_nanos().into() };
        // Woken, or not any more asleep, or a look is due: the caller looks again.
        let _ = futex::wait(futex_of(word), futex::Flags::empty(), 1, Some(&slice));
        Ok(())
    }
}

/// Looks whether there is something to read, as often as is worth it.
fn found(budget: &mut PollBudget, receiver: &Receiver, ring: &Ring<'_, AtomicU64>) -> bool {
    loop {
        if receiver.has_news(ring) {
            budget.reset();
            return true;
        }
        if !budget.try_again() {
            return false;
        }
        spin_loop();
    }
}

impl Read for HostEnd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut began = None;
        let ring = self.memory.ring(Way::ToHost);
        loop {
            let len_bytes = self.receiver.pull(&ring, out)?;
            if len_bytes > 0 {
                if began.is_some() {
                    self.receiver.stays_awake(&ring);
                }
                if self.receiver.wakes(&ring) {
                    self.ring_bell()?;
                }
                return Ok(len_bytes);
            }
            if !found(&mut self.budget, &self.receiver, &ring) && self.receiver.may_sleep(&ring)? {
                match self.sleep(ring.reader, &mut began) {
                    // What the device said last is read first.
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                        if !self.receiver.has_news(&ring) {
                            return Ok(0);
                        }
                    }
                    slept => slept?,
                }
            }
        }
    }
}

impl Write for HostEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut began = None;
        let ring = self.memory.ring(Way::ToDevice);
        loop {
            let len_bytes = self.sender.push(&ring, bytes)?;
            if len_bytes > 0 {
                if self.sender.wakes(&ring) {
                    self.ring_bell()?;
                }
                self.sender.expect(&ring, 0, len_bytes);
                return Ok(len_bytes);
            }
            if self.sender.may_sleep(&ring)? {
                self.sleep(ring.writer, &mut began)?;
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
