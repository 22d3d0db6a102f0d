//! The journal's background threads: one for checkpoints, one that prepares the next segment (`ahead`), one per
//! lane that syncs for callers which do not wait (`notifier`), and one that reads the base into memory (`loading`).

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use crate::journal::Journal;
use crate::turns::LANE_COUNT;
use crate::{File, ahead, loading, notifier};

#[derive(Debug, Default)]
pub(crate) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    pub(crate) fn start<F: File>(journal: &Arc<Journal<F>>) -> io::Result<Threads> {
        let mut threads = Threads::default();
        if journal.options.background && journal.loading.blocks.count() > 0 {
            threads.run("hikv-load", journal, loading::read_ahead)?;
        }
        if journal.options.background && journal.options.writable {
            threads.run("hikv-checkpoint", journal, checkpoint)?;
            threads.run("hikv-ahead", journal, ahead::make_space)?;
            for _ in 0..LANE_COUNT {
                threads.run("hikv-sync", journal, notifier::sync)?;
            }
        }
        Ok(threads)
    }

    fn run<F: File>(&mut self, name: &str, journal: &Arc<Journal<F>>, work: fn(&Journal<F>)) -> io::Result<()> {
        let shared = Arc::clone(journal);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared));
        let thread = thread.inspect_err(|_| self.stop(journal))?;
        self.0.push(thread);
        Ok(())
    }

    pub(crate) fn stop<F: File>(&mut self, journal: &Journal<F>) {
        journal.ending.is_closing.store(true, Ordering::Release);
        drop(journal.segments.slots.lock());
        journal.segments.slots_changed.notify_all();
        journal.requests.close();
        journal.loading.wake();
        for thread in self.0.drain(..) {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "a thread of the journal panicked");
        }
    }

    /// Forgets the threads, for a forked child, in which they do not run.
    pub(crate) fn forget(&mut self) {
        mem::forget(mem::take(&mut self.0));
    }
}

impl<F> Journal<F> {
    pub(crate) fn is_closing(&self) -> bool {
        self.ending.is_closing.load(Ordering::Acquire)
    }
}

/// Runs a checkpoint whenever enough of the log, or a writer, waits for one.
fn checkpoint<F: File>(journal: &Journal<F>) {
    let due = journal.options.checkpoint_segments();
    while journal.healthy().is_ok() {
        {
            let mut slots = journal.segments.slots.lock();
            while slots.sealed.len() < if slots.is_one_wanted { 1 } else { due } {
                if journal.is_closing() || journal.healthy().is_err() {
                    return;
                }
                journal.segments.slots_changed.wait(&mut slots);
            }
        }
        if journal.is_closing() || journal.checkpoint().is_err() {
            return;
        }
    }
}
