//! The second writer: a separate thread, which writes a key of its own between the steps of the operation in flight.
//!
//! The second writer puts values and deletes them again, reads back what was written, and is acknowledged like any writer:
//! what it was told is there after a crash, though the operation in flight is not done. Where it needs a lock that the
//! operation in flight holds, the second writer sleeps; then that write is in flight too, until a later step finds it done.
//!
//! Whether it sleeps is asked of the operating system. A writer that slept for another reason is taken for one that waits,
//! which loses nothing: the write counts as in flight as long as the writer has not said that it is done. Its own steps
//! are crashed at where the settings say so.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pmem_sim::unobserved;

use crate::script::Key;
use crate::subject::{Failure, Subject};

/// What every key of a second writer begins with. Scripts themselves use none of them.
pub(crate) const PREFIX: &[u8] = b"\0rival";

/// True for the key of a second writer.
pub(crate) fn is_rival(key: &[u8]) -> bool {
    key.starts_with(PREFIX)
}

/// Looks at a writer that is neither done nor asleep before it is taken for one that waits without sleeping.
const POLLS_MAX: usize = 2_000;
/// Between two looks. Nothing is concluded from it: it gives the processor to the writer, which wakes the looking thread.
const LOOK_AGAIN: Duration = Duration::from_micros(200);
/// One write in so many is a delete.
const DELETE_EVERY: u64 = 4;

/// What to do.
struct Job<S> {
    store: Arc<S>,
    /// To put, or none to delete.
    value: Option<Vec<u8>>,
    /// Whether nobody else writes the key.
    is_alone: bool,
}

/// What came of it.
type Answer = Result<(), Failure>;

/// See the module's head.
pub(crate) struct Rival<S> {
    /// None once it is to end.
    jobs: Option<Sender<Job<S>>>,
    answers: Receiver<Answer>,
    /// Where the operating system tells what it does.
    stat: String,
    thread: Option<JoinHandle<()>>,
    key: Vec<u8>,
    is_busy: bool,
    write_count: u64,
}

impl<S: Subject> Rival<S> {
    pub(crate) fn start(key: Vec<u8>) -> Rival<S> {
        let (jobs, todo) = channel::<Job<S>>();
        let (done, answers) = channel();
        let (acknowledged, name) = channel();
        let its_key = key.clone();
        let thread = thread::spawn(move || {
            let itself = fs::read_link("/proc/thread-self").expect("the system tells of threads");
            acknowledged.send(itself).expect("whoever started this waits");
            for job in todo {
                let answer = unobserved(|| job.write(&its_key));
                drop(job);
                if done.send(answer).is_err() {
                    break;
                }
            }
        });
        let itself = name.recv().expect("the thread says who it is");
        let stat = format!("/proc/{}/stat", itself.display());
        Rival { jobs: Some(jobs), answers, stat, thread: Some(thread), key, is_busy: false, write_count: 0 }
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// What it writes next.
    pub(crate) fn next_value(&self) -> Option<Vec<u8>> {
        let is_put = !(self.write_count + 1).is_multiple_of(DELETE_EVERY);
        is_put.then(|| format!("written as number {}", self.write_count).into_bytes())
    }

    /// Begins to write it. The last write was answered.
    pub(crate) fn begin(&mut self, store: Arc<S>, is_alone: bool) {
        let value = self.next_value();
        self.write_count += 1;
        self.is_busy = true;
        let job = Job { store, value, is_alone };
        self.jobs.as_ref().expect("it runs").send(job).unwrap_or_else(|_| panic!("it takes jobs until it is dropped"));
    }

    /// What came of the write, once that is known; `None` if it waits for a lock.
    pub(crate) fn poll(&mut self) -> Option<Answer> {
        for _ in 0..POLLS_MAX {
            // Asked in this order: what is done before it sleeps is not missed.
            let is_asleep = self.is_asleep();
            match self.answers.recv_timeout(LOOK_AGAIN) {
                Ok(answer) => return Some(self.answered(answer)),
                Err(RecvTimeoutError::Disconnected) => return Some(self.answered(Err(panicked()))),
                Err(RecvTimeoutError::Timeout) if is_asleep && self.is_asleep() => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        None
    }

    /// What came of the write, however long that takes. Nobody holds a lock that it needs.
    pub(crate) fn end(&mut self) -> Option<Answer> {
        if !self.is_busy {
            return None;
        }
        let answer = self.answers.recv().unwrap_or_else(|_| Err(panicked()));
        Some(self.answered(answer))
    }

    fn answered(&mut self, answer: Answer) -> Answer {
        self.is_busy = false;
        answer
    }

    /// True if it neither runs nor waits for a processor.
    fn is_asleep(&self) -> bool {
        let stat = fs::read_to_string(&self.stat).unwrap_or_default();
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        !matches!(state, Some('R'))
    }
}

impl<S> Drop for Rival<S> {
    fn drop(&mut self) {
        self.jobs = None;
        // If it has panicked, that was told where its answer was missed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn panicked() -> Failure {
    Failure::Other("the second writer panicked".into())
}

impl<S: Subject> Job<S> {
    /// What was written is read from then on.
    fn write(&self, key: &[u8]) -> Answer {
        match &self.value {
            Some(value) => self.store.put(key, value)?,
            None => _ = self.store.delete(key)?,
        }
        if !self.is_alone || self.store.get(key)? == self.value {
            return Ok(());
        }
        Err(Failure::Other(format!("what was just written to {} is not read", Key(key))))
    }
}
