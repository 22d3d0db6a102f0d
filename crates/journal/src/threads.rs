//! The journal's background threads: one for checkpoints, one that prepares the next segment (`ahead`), one per
//! lane that syncs for callers which do not wait (`notifier`), and one that reads the base into memory; or one that
//! evicts pages, and some that read requested ones (`loading`).

use std::io;
use std::mem;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::journal::Journal;
use crate::loading::{Pager, READER_COUNT};
use crate::turns::LANE_COUNT;
use crate::{File, notifier};

#[derive(Debug, Default)]
pub(crate) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    pub(crate) fn start<F: File>(journal: &Arc<Journal<F>>) -> io::Result<Threads> {
        let mut threads = Threads::default();
        if journal.options.background && journal.loader.has_blocks() {
            threads.run("hikv-load", journal, |journal| journal.loader.read_ahead())?;
        }
        if journal.options.background && journal.loader.is_paged() {
            threads
                .run("hikv-evict", journal, |journal| journal.loader.run_evictor(|| journal.ask_for_clean_pages()))?;
        }
        if journal.options.background && journal.loader.is_paged() {
            for _ in 0..READER_COUNT {
                threads.run("hikv-read", journal, |journal| journal.loader.run_reader())?;
            }
        }
        if journal.options.background && journal.options.writable {
            threads.run("hikv-checkpoint", journal, checkpoint)?;
            threads.run("hikv-ahead", journal, |journal| journal.log.segments().run_ahead(journal.log.durable()))?;
            for _ in 0..LANE_COUNT {
                threads.run("hikv-sync", journal, |journal| notifier::sync(&journal.log))?;
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
        journal.health.close();
        journal.loader.wake();
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

/// Runs a checkpoint whenever enough of the log, or a writer, waits for one.
fn checkpoint<F: File>(journal: &Journal<F>) {
    while journal.log.segments().await_sealed() && journal.checkpoint().is_ok() {}
    journal.loader.pager().into_iter().for_each(Pager::end_checkpoints);
}
