//! Requests that must be refused, each with its error; and requests of random bytes.

use std::io;
use std::os::fd::AsRawFd;

use fastrand::Rng;
use ink_client::Ink;
use ink_client::abi::{self, Op, Request};
use libc::{E2BIG, EBADF, EEXIST, EFAULT, EINTR, EINVAL, EMSGSIZE, ENOENT, ENOMEM, ENOSPC, ENOTTY, EPERM};

use crate::memory::{NOWHERE, PAGE_BYTES, Pages};

/// The results that any request may have. An error for damage is not among them.
const ALLOWED: [i32; 13] =
    [0, E2BIG, EBADF, EEXIST, EFAULT, EINTR, EINVAL, EMSGSIZE, ENOENT, ENOMEM, ENOSPC, ENOTTY, EPERM];
/// Operations with a key.
const WITH_KEY: [Op; 4] = [Op::Insert, Op::Read, Op::Remove, Op::Scan];
const LENGTHS: [u64; 8] =
    [0, 1, 4097, abi::VALUE_BYTES_MAX as u64, abi::VALUE_BYTES_MAX as u64 + 1, 1 << 32, 1 << 63, u64::MAX];

/// The device, opened in each mode.
pub(crate) struct Descriptors {
    pub(crate) both: Ink,
    reading: Ink,
    writing: std::fs::File,
}

impl Descriptors {
    pub(crate) fn open() -> io::Result<Descriptors> {
        let writing = std::fs::OpenOptions::new().write(true).open(abi::DEVICE)?;
        Ok(Descriptors { both: Ink::open()?, reading: Ink::open_for_reading()?, writing })
    }
}

fn number_of(done: io::Result<()>) -> i32 {
    done.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1))
}

/// Sends a request that may contain invalid addresses.
pub(crate) fn ask(ink: &Ink, op: Op, mut request: Request) -> i32 {
    // SAFETY: the request's addresses are memory to which this process makes no references, or none at all; the
    // kernel writes only there.
    number_of(unsafe { ink.ask(op, &mut request) })
}

fn expect(what: &str, found: i32, expected: i32) -> Result<(), String> {
    // A kernel may run out of memory at any time.
    if found == expected || found == ENOMEM { Ok(()) } else { Err(format!("{what}: {found}, expected {expected}")) }
}

pub(crate) fn allow(what: &str, found: i32) -> Result<(), String> {
    if ALLOWED.contains(&found) { Ok(()) } else { Err(format!("{what}: {found}")) }
}

/// Returns an address from which fewer than `len` bytes can be read.
fn bad_address(pages: &Pages, len: u64, random: &mut Rng) -> u64 {
    if random.bool() {
        NOWHERE[random.usize(..NOWHERE.len())]
    } else {
        pages.end() - random.u64(..len.min(PAGE_BYTES as u64))
    }
}

/// Sends one request that must be refused.
pub(crate) fn refused(descriptors: &Descriptors, random: &mut Rng) -> Result<(), String> {
    let pages = Pages::new(2, libc::PROT_READ | libc::PROT_WRITE).map_err(|error| error.to_string())?;
    let op = WITH_KEY[random.usize(..4)];
    let fine = Request { key: pages.start(), key_len: 9, value: pages.start(), value_len: 100, ..Request::new() };
    let ink = &descriptors.both;
    match random.u8(..9) {
        0 => expect("a key nowhere", ask(ink, op, Request { key: bad_address(&pages, 9, random), ..fine }), EFAULT),
        1 => {
            let value = bad_address(&pages, 100, random);
            expect("a value nowhere", ask(ink, Op::Insert, Request { value, ..fine }), EFAULT)
        }
        2 => {
            let key_len = abi::KEY_BYTES_MAX as u32 + 1 + random.u32(..1 << 31);
            expect("a long key", ask(ink, op, Request { key_len, ..fine }), E2BIG)
        }
        3 => {
            let value_len = LENGTHS[random.usize(4..LENGTHS.len())];
            expect("a long value", ask(ink, Op::Insert, Request { value_len, ..fine }), E2BIG)
        }
        4 => {
            let version = random.u32(2..);
            expect("another version", ask(ink, op, Request { version, ..fine }), EINVAL)?;
            expect("a reserved field", ask(ink, op, Request { reserved: 1 << random.u8(..32), ..fine }), EINVAL)?;
            expect("an operation within", ask(ink, op, Request { op: random.u32(1..), ..fine }), EINVAL)?;
            expect("a flag", ask(ink, Op::Read, Request { flags: random.u32(1..), ..fine }), EINVAL)?;
            expect("two flags", ask(ink, Op::Insert, Request { flags: 3, ..fine }), EINVAL)
        }
        5 => {
            expect("a write through a read-only descriptor", ask(&descriptors.reading, Op::Insert, fine), EBADF)?;
            expect("a delete through a read-only descriptor", ask(&descriptors.reading, Op::Remove, fine), EBADF)
        }
        6 => expect("a clear without privileges", ask(ink, Op::Clear, Request::new()), EPERM),
        7 => expect(
            "statistics at an invalid address",
            ask(ink, Op::Stat, Request { value: 8, value_len: 64, ..Request::new() }),
            EFAULT,
        ),
        _ => reads_of_a_writer(descriptors, &fine),
    }
}

fn raw(fd: i32, number: libc::Ioctl, at: u64) -> i32 {
    // SAFETY: as for `ask`.
    let answered = unsafe { libc::ioctl(fd, number, at) };
    if answered == 0 { 0 } else { io::Error::last_os_error().raw_os_error().unwrap_or(-1) }
}

fn reads_of_a_writer(descriptors: &Descriptors, fine: &Request) -> Result<(), String> {
    let mut request = *fine;
    let at = (&raw mut request) as u64;
    expect("a read through a write-only descriptor", raw(descriptors.writing.as_raw_fd(), Op::Read.number(), at), EBADF)
}

/// Sends requests at invalid addresses, and unknown ioctl numbers.
pub(crate) fn numbers(descriptors: &Descriptors, random: &mut Rng) -> Result<(), String> {
    let fd = descriptors.writing.as_raw_fd();
    let pages = Pages::new(1, libc::PROT_READ).map_err(|error| error.to_string())?;
    let op = WITH_KEY[random.usize(..4)];
    expect("a request nowhere", raw(fd, op.number(), bad_address(&pages, 64, random)), EFAULT)?;
    let number = random.u32(..);
    let is_ours = number & 0xffff_fff0 == 0xc040_d700;
    if is_ours { Ok(()) } else { expect("an unknown ioctl", raw(fd, number as libc::Ioctl, pages.start()), ENOTTY) }
}

/// Sends random fields, mostly near the limits.
pub(crate) fn any_bytes(descriptors: &Descriptors, random: &mut Rng) -> Result<(), String> {
    let pages = Pages::new(20, libc::PROT_READ | libc::PROT_WRITE).map_err(|error| error.to_string())?;
    let mut address = || match random.u8(..4) {
        0 => NOWHERE[random.usize(..NOWHERE.len())],
        _ => pages.start() + random.u64(..=pages.len() as u64),
    };
    let (key, value) = (address(), address());
    let request = Request {
        version: if random.u8(..8) > 0 { abi::VERSION } else { random.u32(..) },
        flags: random.u32(..4),
        key,
        value,
        key_len: if random.bool() { random.u32(..70_000) } else { random.u32(..) },
        value_len: LENGTHS[random.usize(..LENGTHS.len())],
        count: random.u64(..100),
        ..Request::new()
    };
    let ops = [Op::Insert, Op::Read, Op::Remove, Op::Scan, Op::Submit, Op::Stat];
    allow("any bytes", ask(&descriptors.both, ops[random.usize(..ops.len())], request))
}

/// Sends submissions that are too long, end at an invalid address, contain one another, or overwrite themselves.
pub(crate) fn submissions(descriptors: &Descriptors, random: &mut Rng) -> Result<(), String> {
    let ink = &descriptors.both;
    let count = 65 + random.u64(..u64::MAX - 65);
    expect("a long submission", ask(ink, Op::Submit, Request { count, ..Request::new() }), E2BIG)?;
    let pages = Pages::new(1, libc::PROT_READ | libc::PROT_WRITE).map_err(|error| error.to_string())?;
    let mut half = Request { value: pages.end() - 32 * 64, count: 64, ..Request::new() };
    // SAFETY: this process makes no references to the memory at the request's addresses.
    let ended = number_of(unsafe { ink.ask(Op::Submit, &mut half) });
    expect("a submission that ends nowhere", ended, EFAULT)?;
    expect("how far it came", half.result as i32, 32)?;
    let mut requests = [Request { op: Op::Submit as u32, count: 1, ..Request::new() }; 8];
    let at = requests.as_mut_ptr() as u64;
    for (i, request) in requests.iter_mut().enumerate().skip(1) {
        // The answer of each request overwrites the following requests.
        *request = Request { value: at + i as u64 * 64, value_len: 512 - i as u64 * 64, ..Request::new() };
        request.op = [Op::Scan, Op::Read, Op::Stat][i % 3] as u32;
    }
    let whole = Request { value: at, count: 8, ..Request::new() };
    allow("a submission over itself", ask(ink, Op::Submit, whole))?;
    // SAFETY: plain numbers, which the kernel may have written.
    let first = unsafe { (&raw const requests[0]).read_volatile() };
    expect("a submission in a submission", first.error, EINVAL)
}
