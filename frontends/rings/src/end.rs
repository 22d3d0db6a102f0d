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

use crate::memory::{Direction, Memory, futex_of};
use crate::poll_budget::PollBudget;
use crate::ring::{Receiver, Ring, Sender};
use crate::unclaimed::Unclaimed;

/// Interval at which a waiting host checks whether the device still exists.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Polls of a position, with a processor pause each, before sleeping.
const POLL_COUNT: u32 = 4096;

/// Returns whether the other side has closed the socket, on which nothing is ever sent.
fn is_closed(socket: &UnixStream) -> io::Result<bool> {
    match recv(socket, &mut [0; 1], RecvFlags::DONTWAIT | RecvFlags::PEEK) {
        Ok((0, _)) => Ok(true),
        Ok(_) => Err(io::Error::new(ErrorKind::InvalidData, "unexpected data on the socket")),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(false),
        Err(rustix::io::Errno::CONNRESET) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// The outcome of a poll by the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// A read finds data.
    Ready,
    /// No data yet; poll again.
    Pending,
    /// No data for so long that the host was asked to signal: the poller reports new data.
    Sleeping,
}

/// The device's end, which never blocks: it is polled by [`DeviceEnd::fds`] once [`DeviceEnd::poll`] has returned
/// `Sleeping`. A read without data must be followed by polls, otherwise new data is not noticed.
#[derive(Debug)]
pub struct DeviceEnd {
    memory: Memory,
    socket: Arc<UnixStream>,
    /// Written by the host; edge-triggered.
    bell: OwnedFd,
    sender: Sender,
    receiver: Receiver,
    unclaimed: Arc<Unclaimed>,
    budget: PollBudget,
    /// The host knows that this end sleeps.
    is_asleep: bool,
    /// The socket has to be checked for whether the host still exists.
    may_be_closed: bool,
}

impl Drop for DeviceEnd {
    fn drop(&mut self) {
        self.unclaimed.keep(&self.socket);
        // A sleeping host checks whether the device still exists.
        [Direction::ToDevice, Direction::ToHost].map(|direction| self.memory.ring(direction)).into_iter().for_each(
            |ring| {
                wake(ring.reader);
                wake(ring.writer);
            },
        );
    }
}

impl DeviceEnd {
    pub(crate) fn new(memory: Memory, socket: UnixStream, bell: OwnedFd, unclaimed: &Arc<Unclaimed>) -> DeviceEnd {
        let (sender, receiver) = (Sender::default(), Receiver::default());
        let (socket, unclaimed) = (Arc::new(socket), Arc::clone(unclaimed));
        let (budget, is_asleep, may_be_closed) = (PollBudget::new(POLL_COUNT), false, false);
        DeviceEnd { memory, socket, bell, sender, receiver, unclaimed, budget, is_asleep, may_be_closed }
    }

    /// Returns whether it has to be polled, because the host does not signal.
    #[must_use]
    pub fn is_awake(&self) -> bool {
        !self.is_asleep
    }

    /// Polls for data to read. After enough polls in vain, asks the host to signal from now on.
    pub fn poll(&mut self) -> Readiness {
        let ring = self.memory.ring(Direction::ToDevice);
        if self.receiver.has_data(&ring) {
            self.budget.reset();
            return Readiness::Ready;
        }
        if self.budget.try_again() {
            return Readiness::Pending;
        }
        // The read detects an invalid position.
        self.is_asleep = self.receiver.may_sleep(&ring).unwrap_or(false);
        if self.is_asleep { Readiness::Sleeping } else { Readiness::Ready }
    }

    /// Writes all of the bytes to the host's ring if there is space, without publishing them. Staged and unpublished
    /// bytes must be published before anything is written otherwise.
    #[must_use]
    pub fn stage(&mut self, bytes: &[u8]) -> bool {
        // The write detects an invalid position.
        self.sender.stage(&self.memory.ring(Direction::ToHost), bytes).unwrap_or(false)
    }

    /// Publishes `len_bytes` staged bytes to the host.
    pub fn publish(&mut self, len_bytes: usize) {
        let ring = self.memory.ring(Direction::ToHost);
        self.sender.publish(&ring, len_bytes);
        if self.sender.wakes(&ring) {
            wake(ring.reader);
        }
    }

    /// Records that the poller has reported a closed file.
    pub fn note_hangup(&mut self) {
        self.may_be_closed = true;
    }

    /// Returns the files that become readable when there may be work, for an edge-triggered poller.
    #[must_use]
    pub fn fds(&self) -> [RawFd; 2] {
        [self.socket.as_raw_fd(), self.bell.as_raw_fd()]
    }
}

/// A futex wake is the only way in which the device affects a host.
fn wake(word: &AtomicU64) {
    // This fails only if the word is not mapped.
    let _ = futex::wake(futex_of(word), futex::Flags::empty(), 1);
}

impl Read for DeviceEnd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let ring = self.memory.ring(Direction::ToDevice);
        // Also without data: a late host may have cleared the word, which is set again before the next sleep.
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
            if !self.may_be_closed || !is_closed(&self.socket)? {
                return Err(ErrorKind::WouldBlock.into());
            }
            // Data sent before the socket was closed is read first.
            if !self.receiver.has_data(&ring) {
                return Ok(0);
            }
        }
    }
}

impl Write for DeviceEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let ring = self.memory.ring(Direction::ToHost);
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

/// The host's end, which blocks.
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

    /// Sets the maximum time of a read or a write; `None` means unlimited.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// Closes the connection.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn close(&self) -> io::Result<()> {
        self.socket.shutdown(std::net::Shutdown::Both)
    }

    /// Overwrites words of the memory, including the other side's, for tests of the device's checks: position `number`
    /// (tail, head, reader, writer) of the ring to the device, or of that to the host.
    pub fn forge(&self, to_device: bool, number: usize, value: u64) {
        let ring = self.memory.ring(if to_device { Direction::ToDevice } else { Direction::ToHost });
        [ring.tail, ring.head, ring.reader, ring.writer][number].store(value, std::sync::atomic::Ordering::SeqCst);
    }

    /// Returns whether the word records that the host sleeps; the device clears it to wake the host.
    #[cfg(test)]
    pub(crate) fn is_marked_asleep(&self) -> bool {
        self.memory.ring(Direction::ToHost).reader.load(std::sync::atomic::Ordering::SeqCst) == 1
    }

    fn ring_bell(&self) -> io::Result<()> {
        match rustix::io::write(&self.bell, &1u64.to_ne_bytes()) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sleeps on a word that is 1 until the device has changed it. A host that has slept before, since `began`, and was
    /// woken without reason, checks whether the device still exists.
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
        // Woken, no longer asleep, or a check is due: the caller polls again.
        let _ = futex::wait(futex_of(word), futex::Flags::empty(), 1, Some(&slice));
        Ok(())
    }
}

/// Polls for data to read, as long as it is worthwhile.
fn found(budget: &mut PollBudget, receiver: &Receiver, ring: &Ring<'_, AtomicU64>) -> bool {
    loop {
        if receiver.has_data(ring) {
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
        let ring = self.memory.ring(Direction::ToHost);
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
                    // Data that the device sent last is read first.
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                        if !self.receiver.has_data(&ring) {
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
        let ring = self.memory.ring(Direction::ToDevice);
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
