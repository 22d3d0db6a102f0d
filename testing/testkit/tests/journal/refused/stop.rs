//! A log that fails at a chosen moment of an operation: between two of the operation's calls to the medium, another
//! thread's sync fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use journal::{JournalOptions, Journaled};
use parking_lot::Mutex;
use pmem::{Canary, Durability, Offset, Persist, Probe, Probed, Span};
use pmem_sim::{Crashable, DiskImage, Fault, Model, SimDisk, SimFile};

/// The medium of the stores.
pub(super) type Stoppable = Probed<Journaled<SimFile>, Moments>;

/// The disk operation that fails in the other thread's sync: the write of the frame, or the sync after it.
pub(super) const REFUSED: [u64; 2] = [1, 2];

/// Counts the moments of an operation: every call to the medium except loads.
#[derive(Default)]
pub(super) struct Moments {
    count: AtomicU64,
    stop: Mutex<Option<Stop>>,
}

struct Stop {
    at: u64,
    now: Sender<()>,
    is_over: Receiver<()>,
}

impl Moments {
    fn pass(&self) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let stop = self.stop.lock().take_if(|stop| stop.at == number);
        if let Some(stop) = stop {
            stop.now.send(()).unwrap();
            stop.is_over.recv().unwrap();
        }
    }
}

impl Probe for Moments {
    fn flushed(&self, _span: Span) {
        self.pass();
    }

    fn streamed(&self, _span: Span) {
        self.pass();
    }

    fn fenced(&self) {
        self.pass();
    }

    fn waits(&self) {
        self.pass();
    }
}

fn options() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        level: Durability::Power,
        log_bytes_max: 3 << 18,
        segment_bytes: 1 << 18,
        block_bytes: 1 << 16,
        background: false,
        ..JournalOptions::default()
    }
}

pub(super) fn created(disk: &SimDisk) -> Stoppable {
    let journal = Journaled::create(disk.files(), 4 << 20, [7; 16], options()).unwrap();
    Probed::with_probe(journal, Moments::default())
}

/// Opens the log and reads all of the base: failing reads are the subject of another test.
pub(super) fn opened(image: &DiskImage, canary: Option<Canary>) -> (SimDisk, Stoppable) {
    let disk = SimDisk::from_image(image, Model::Disk);
    let disk = canary.map_or(disk.clone(), |canary| disk.with_canary(canary));
    let journal = Journaled::open(disk.files(), options(), &|_| {}).unwrap();
    journal.acknowledger().load_rest();
    (disk, Probed::with_probe(journal, Moments::default()))
}

/// Runs `operate` and makes the log fail at the operation's moment of number `at`; returns also whether there was such
/// a moment.
pub(super) fn stopped_at<R>(
    medium: &Stoppable,
    disk: &SimDisk,
    (at, refused): (u64, u64),
    operate: impl FnOnce() -> R,
) -> (R, bool) {
    let ((now, asked), (notify, is_over)) = (channel(), channel());
    medium.probe().count.store(0, Ordering::Relaxed);
    *medium.probe().stop.lock() = Some(Stop { at, now, is_over });
    thread::scope(|scope| {
        scope.spawn(move || {
            if asked.recv().is_ok() {
                fail(medium.inner(), disk, refused);
                notify.send(()).unwrap();
            }
        });
        let returned = operate();
        let is_missed = medium.probe().stop.lock().take().is_some();
        (returned, !is_missed)
    })
}

fn fail(journal: &Journaled<SimFile>, disk: &SimDisk, refused: u64) {
    journal.flush(Offset(0).span(8));
    disk.fail(Some(Fault::Error(disk.operation_count() + refused)));
    let synced = journal.sync();
    disk.fail(None);
    assert!(synced.is_err(), "the sync succeeded");
}
