//! The client of `/dev/hikv-ink`, the character device of the kernel module in `kernel/ink`: keys and values in
//! persistent memory, in key order, shared by all processes that may open the device.
//!
//! Every call is one system call. Writes are durable when the call returns. Errors are the kernel's numbers
//! ([`io::Error::raw_os_error`]), which `kernel/ink/ink.h` explains.
//!
//! ```no_run
//! let store = ink_client::Ink::open()?;
//! store.put(b"key", b"value")?;
//! assert_eq!(store.get(b"key")?.as_deref(), Some(&b"value"[..]));
//! for item in store.scan(b"") {
//!     let (key, value) = item?;
//!     println!("{} bytes, {} bytes", key.len(), value.len());
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod abi;
mod scan;
mod submit;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use abi::{DEVICE, Op, Request, Stat};

pub use scan::{Item, Scan};
pub use submit::{Batch, Done};

/// The buffer of a read's first attempt; a longer value is read again.
const READ_BYTES: usize = 4096;

/// The condition of a put.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum When {
    /// Always.
    #[default]
    Always,
    /// Only if the key is absent.
    IfAbsent,
    /// Only if the key exists.
    IfPresent,
}

impl When {
    pub(crate) fn flags(self) -> u32 {
        match self {
            When::Always => 0,
            When::IfAbsent => abi::IF_ABSENT,
            When::IfPresent => abi::IF_PRESENT,
        }
    }
}

/// The open device.
#[derive(Debug)]
pub struct Ink {
    device: File,
}

impl Ink {
    /// Opens `/dev/hikv-ink`.
    ///
    /// # Errors
    /// Those of the system call: `ENOENT` if the module is not loaded, `EACCES` if the caller is not in its group.
    pub fn open() -> io::Result<Ink> {
        Ink::open_at(Path::new(DEVICE), true)
    }

    /// Opens the device for a caller that only reads.
    ///
    /// # Errors
    /// As for [`Ink::open`].
    pub fn open_for_reading() -> io::Result<Ink> {
        Ink::open_at(Path::new(DEVICE), false)
    }

    /// Opens a device with another path.
    ///
    /// # Errors
    /// As for [`Ink::open`].
    pub fn open_at(path: &Path, is_writable: bool) -> io::Result<Ink> {
        Ok(Ink { device: OpenOptions::new().read(true).write(is_writable).open(path)? })
    }

    /// Puts a value.
    ///
    /// # Errors
    /// `ENOSPC`, `E2BIG`; `EBADF` if the device was opened for reading.
    pub fn put(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.put_when(key, value, When::Always).map(drop)
    }

    /// Puts a value if the key is absent, or if it exists, as `when` says. Returns false if the condition did not
    /// hold.
    ///
    /// # Errors
    /// As for [`Ink::put`].
    pub fn put_when(&self, key: &[u8], value: &[u8], when: When) -> io::Result<bool> {
        let mut request = Request::of_value(key, value, when.flags());
        // SAFETY: both are readable for their lengths.
        unless(unsafe { self.ask(Op::Insert, &mut request) }, &[libc::EEXIST, libc::ENOENT]).map(|done| done.is_some())
    }

    /// Returns a key's value.
    ///
    /// # Errors
    /// `EUCLEAN` if the store is damaged there.
    pub fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut value = Vec::with_capacity(READ_BYTES);
        loop {
            let mut request = Request::of_spare(key, &mut value, 0);
            // SAFETY: the key is readable and the buffer writable, for their lengths.
            let done = unless(unsafe { self.ask(Op::Read, &mut request) }, &[libc::ENOENT, libc::EMSGSIZE]);
            let len = usize::try_from(request.result).map_err(io::Error::other)?;
            match done? {
                Some(()) => {
                    assert!(len <= value.capacity(), "an answer beyond its room");
                    // SAFETY: the kernel has written this many bytes there.
                    unsafe { value.set_len(len) };
                    return Ok(Some(value));
                }
                None if len <= value.capacity() => return Ok(None),
                None if len > abi::VALUE_BYTES_MAX => return Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
                None => value.reserve_exact(len),
            }
        }
    }

    /// Deletes a key. Returns false if it was absent.
    ///
    /// # Errors
    /// As for [`Ink::put`].
    pub fn delete(&self, key: &[u8]) -> io::Result<bool> {
        let mut request = Request::of_key(key);
        // SAFETY: the key is readable.
        unless(unsafe { self.ask(Op::Remove, &mut request) }, &[libc::ENOENT]).map(|done| done.is_some())
    }

    /// Iterates over the items from `from` on, in the order of their keys. Each item is shown with a value that it
    /// had at some time during the scan.
    #[must_use]
    pub fn scan(&self, from: &[u8]) -> Scan<'_> {
        Scan::new(self, from)
    }

    /// Carries out requests one after the other, up to 64 in a system call. Each succeeds or fails separately.
    ///
    /// # Errors
    /// Those of the submission itself: `E2BIG`; `EINTR` if the process is killed.
    pub fn submit(&self, batch: Batch<'_>) -> io::Result<Vec<Done>> {
        batch.submit(self)
    }

    /// Deletes every key. Needs `CAP_SYS_ADMIN`.
    ///
    /// # Errors
    /// `EPERM`; as for [`Ink::put`].
    pub fn clear(&self) -> io::Result<()> {
        // SAFETY: the request contains no address.
        unsafe { self.ask(Op::Clear, &mut Request::new()) }
    }

    /// Checks the entire store. Returns the number of keys and the number of contradictions; the kernel's log has
    /// their offsets.
    ///
    /// # Errors
    /// As for [`Ink::get`].
    pub fn check(&self) -> io::Result<(u64, u64)> {
        let mut request = Request::new();
        // SAFETY: the request contains no address.
        unsafe { self.ask(Op::Check, &mut request) }?;
        Ok((request.count, request.result))
    }

    /// Returns statistics.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn stat(&self) -> io::Result<Stat> {
        let mut stat = Stat::default();
        let mut request =
            Request { value: (&raw mut stat) as u64, value_len: size_of::<Stat>() as u64, ..Request::new() };
        // SAFETY: the buffer is a `Stat`, for which any bytes are valid.
        unsafe { self.ask(Op::Stat, &mut request) }?;
        Ok(stat)
    }

    /// Sends a request to the kernel.
    ///
    /// # Safety
    /// The addresses in the request are readable or writable, as the operation requires, for their lengths.
    ///
    /// # Errors
    /// Any error that the kernel returns.
    pub unsafe fn ask(&self, op: Op, request: &mut Request) -> io::Result<()> {
        // SAFETY: the request has the size in the ioctl's number; the caller promises that its addresses are valid.
        let answered = unsafe { libc::ioctl(self.device.as_raw_fd(), op.number(), &raw mut *request) };
        if answered == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for Ink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Turns these errors into `None`.
pub(crate) fn unless(done: io::Result<()>, expected: &[i32]) -> io::Result<Option<()>> {
    match done {
        Ok(()) => Ok(Some(())),
        Err(error) if error.raw_os_error().is_some_and(|number| expected.contains(&number)) => Ok(None),
        Err(error) => Err(error),
    }
}
