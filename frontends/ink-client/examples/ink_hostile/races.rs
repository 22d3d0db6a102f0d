//! Memory and descriptors that are removed while a request runs.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fastrand::Rng;
use ink_client::Ink;
use ink_client::abi::{Op, Request};

use crate::cases::{Descriptors, allow, ask};
use crate::memory::Pages;
use crate::orderly::key_of;

const REQUEST_COUNT: usize = 20;
const PAGE_COUNT: usize = 40;

/// Another thread removes and restores access to the memory while requests read and write it, and finally unmaps it.
pub(crate) fn unmapped_meanwhile(descriptors: &Descriptors, random: &mut Rng) -> Result<(), String> {
    let pages = Pages::new(PAGE_COUNT, libc::PROT_READ | libc::PROT_WRITE).map_err(|error| error.to_string())?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let access = [libc::PROT_NONE, libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE];
            for turn in (0..access.len()).cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                pages.protect(access[turn]);
                thread::yield_now();
            }
            pages.unmap();
        });
        let done = requests(&descriptors.both, &pages, random);
        is_over.store(true, Ordering::Relaxed);
        // The memory is unmapped at about this time.
        done.and_then(|()| requests(&descriptors.both, &pages, random))
    })
}

fn requests(ink: &Ink, pages: &Pages, random: &mut Rng) -> Result<(), String> {
    for _ in 0..REQUEST_COUNT {
        let op = [Op::Insert, Op::Read, Op::Scan, Op::Stat, Op::Submit][random.usize(..5)];
        let request = Request {
            key: pages.start() + random.u64(..4096),
            key_len: random.u32(..3),
            value: pages.start() + random.u64(..4096),
            value_len: (pages.len() - 4096) as u64,
            count: if op == Op::Submit { 30 } else { 0 },
            ..Request::new()
        };
        allow("memory that is unmapped", ask(ink, op, request))?;
    }
    Ok(())
}

/// Another thread closes the descriptor, and its number is used for another file.
pub(crate) fn closed_meanwhile(descriptors: &Descriptors, random: &mut Rng) -> Result<(), String> {
    let copied = descriptors.both.as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    let (number, count) = (copied.as_raw_fd(), random.usize(1..40));
    let key = key_of(random.u8(..));
    thread::scope(|scope| {
        let asking = scope.spawn(move || {
            let mut buffer = [0; 4096];
            for _ in 0..count {
                let mut request = Request::of_buffer(&key, &mut buffer, 0);
                // SAFETY: the request and its memory belong to this thread; other files do not have this ioctl.
                let answered = unsafe { libc::ioctl(number, Op::Scan.number(), &raw mut request) };
                let error = io::Error::last_os_error().raw_os_error().unwrap_or(-1);
                allow("a descriptor that is closed", if answered == 0 { 0 } else { error })?;
            }
            Ok(())
        });
        drop(copied);
        let _other = File::open("/proc/self/maps");
        asking.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
    })
}
