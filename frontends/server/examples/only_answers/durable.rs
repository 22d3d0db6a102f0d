//! Replies that wait until as many bytes as were requested are on a disk: an upper bound for a server that makes every
//! write durable.
//!
//! Threads write and sync, as many as the store's. An idle thread takes everything that has arrived since the last one
//! did.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use mio::Waker;
use rustix::fs::OFlags;

const THREAD_COUNT: usize = 2;
/// Maximum bytes per write call: the requests of 50 clients at a time.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// The offset at which writing starts over.
const FILE_BYTES: u64 = 64 << 20;
const PAGE_BYTES: usize = 4096;

#[repr(align(4096))]
struct Batch([u8; BATCH_BYTES_MAX]);

/// Requests that were read together: the number and bytes of each connection.
#[derive(Default)]
pub(crate) struct Requests {
    pub(crate) askers: Vec<(usize, usize)>,
    pub(crate) len_bytes: usize,
}

/// The threads, and the channels to and from them.
pub(crate) struct Disk {
    asked: Vec<Sender<Requests>>,
    done: Receiver<(usize, io::Result<Requests>)>,
    idle: Vec<usize>,
}

impl Disk {
    /// Creates `path`, writes to it, and wakes the loop by `waker`.
    pub(crate) fn new(path: &Path, waker: Waker) -> io::Result<Disk> {
        let file = File::create(path)?;
        (0..FILE_BYTES).step_by(BATCH_BYTES_MAX).try_for_each(|at| file.write_all_at(&[0; BATCH_BYTES_MAX], at))?;
        file.sync_all()?;
        let (notify, done) = channel();
        let (waker, end_bytes) = (Arc::new(waker), Arc::new(Mutex::new(0)));
        let start = |number| {
            let (ask, asked) = channel::<Requests>();
            let (notify, waker, end_bytes) = (Sender::clone(&notify), Arc::clone(&waker), Arc::clone(&end_bytes));
            let file = OpenOptions::new().write(true).custom_flags(OFlags::DIRECT.bits().cast_signed()).open(path)?;
            thread::spawn(move || {
                let batch = Box::new(Batch([b'x'; BATCH_BYTES_MAX]));
                for requests in asked {
                    let outcome = write(&file, &batch, &end_bytes, requests.len_bytes).map(|()| requests);
                    if notify.send((number, outcome)).is_err() || waker.wake().is_err() {
                        return;
                    }
                }
            });
            Ok(ask)
        };
        let asked = (0..THREAD_COUNT).map(start).collect::<io::Result<_>>()?;
        Ok(Disk { asked, done, idle: (0..THREAD_COUNT).collect() })
    }

    /// Passes `requests` to an idle thread, if there is one.
    pub(crate) fn ask(&mut self, requests: &mut Requests) {
        if !requests.askers.is_empty()
            && let Some(number) = self.idle.pop()
        {
            self.asked[number].send(std::mem::take(requests)).expect("the thread ends after its sender");
        }
    }

    /// Returns requests that are now on the disk, each once.
    pub(crate) fn done(&mut self) -> Option<io::Result<Requests>> {
        let (number, outcome) = self.done.try_recv().ok()?;
        self.idle.push(number);
        Some(outcome)
    }
}

fn write(file: &File, batch: &Batch, end_bytes: &Mutex<u64>, len_bytes: usize) -> io::Result<()> {
    let written = &batch.0[..len_bytes.next_multiple_of(PAGE_BYTES).min(BATCH_BYTES_MAX)];
    let at = {
        let mut end_bytes = end_bytes.lock().expect("nobody panics with it");
        let at = if *end_bytes + written.len() as u64 > FILE_BYTES { 0 } else { *end_bytes };
        *end_bytes = at + written.len() as u64;
        at
    };
    file.write_all_at(written, at)?;
    file.sync_data()
}
