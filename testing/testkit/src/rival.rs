//! The second writer: a separate thread that writes its own key between the steps of the operation in flight.
//!
//! The second writer puts values and deletes them again, reads every write back, and is acknowledged like any writer:
//! every acknowledged write must survive a crash although the operation in flight has not ended. If the second writer
//! needs a lock that the operation in flight holds, it sleeps; then its write is in flight as well, until a later step
//! finds that the write has ended.
//!
//! The operating system reports whether the thread sleeps. A writer that sleeps for another reason is taken for one
//! that waits for a lock. That loses nothing, because a write counts as in flight until the answer arrives. The second
//! writer's own steps are crashed where the settings request it.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pmem_sim::unobserved;

use crate::script::Key;
use crate::subject::{Failure, Subject};

/// The prefix of every second writer's key. Scripts themselves use no key with this prefix.
pub(crate) const PREFIX: &[u8] = b"\0rival";

/// Returns true for the key of a second writer.
pub(crate) fn is_rival(key: &[u8]) -> bool {
    key.starts_with(PREFIX)
}

/// Polls of a writer that is neither done nor asleep before it is taken for one that waits without sleeping.
const POLLS_MAX: usize = 2_000;
/// The time between two polls. Nothing is concluded from it: it gives the processor to the writer, whose answer wakes
/// the polling thread.
const LOOK_AGAIN: Duration = Duration::from_micros(200);
/// One write in this many is a delete.
const DELETE_EVERY: u64 = 4;

/// A write for the thread.
struct Job<S> {
    store: Arc<S>,
    /// The value to put, or `None` to delete.
    value: Option<Vec<u8>>,
    /// True if no other thread writes the key.
    is_alone: bool,
}

/// The result of a write.
type Answer = Result<(), Failure>;

/// The second writer's handle; see the module's head.
pub(crate) struct Rival<S> {
    /// `None` once the thread is to end.
    jobs: Option<Sender<Job<S>>>,
    answers: Receiver<Answer>,
    /// The file in which the operating system reports the thread's state.
    stat: String,
    thread: Option<JoinHandle<()>>,
    key: Vec<u8>,
    is_busy: bool,
    write_count: u64,
}

impl<S: Subject> Rival<S> {
    pub(crate) fn start(key: Vec<u8>, is_batching: bool) -> Rival<S> {
        let (jobs, todo) = channel::<Job<S>>();
        let (done, answers) = channel();
        let (acknowledged, name) = channel();
        let its_key = key.clone();
        let thread = thread::spawn(move || {
            let itself = fs::read_link("/proc/thread-self").expect("the system tells of threads");
            acknowledged.send(itself).expect("whoever started this waits");
            for job in todo {
                let answer = unobserved(|| job.write(&its_key, is_batching));
                drop(job);
                if done.send(answer).is_err() {
                    break;
                }
            }
        });
        let itself = name.recv().expect("the thread sends its name");
        let stat = format!("/proc/{}/stat", itself.display());
        Rival { jobs: Some(jobs), answers, stat, thread: Some(thread), key, is_busy: false, write_count: 0 }
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Returns the value of the next write; `None` for a delete.
    pub(crate) fn next_value(&self) -> Option<Vec<u8>> {
        let is_put = !(self.write_count + 1).is_multiple_of(DELETE_EVERY);
        is_put.then(|| format!("written as number {}", self.write_count).into_bytes())
    }

    /// Begins the next write. The last one was answered.
    pub(crate) fn begin(&mut self, store: Arc<S>, is_alone: bool) {
        let value = self.next_value();
        self.write_count += 1;
        self.is_busy = true;
        let job = Job { store, value, is_alone };
        self.jobs.as_ref().expect("it runs").send(job).unwrap_or_else(|_| panic!("the second writer has ended"));
    }

    /// Returns the write's answer, or `None` if it waits for a lock.
    pub(crate) fn poll(&mut self) -> Option<Answer> {
        for _ in 0..POLLS_MAX {
            // In this order: an answer that was sent before the thread fell asleep is not missed.
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

    /// Waits for the write's answer. No lock that the write needs is held.
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

    /// Returns true if the thread neither runs nor waits for a processor.
    fn is_asleep(&self) -> bool {
        let stat = fs::read_to_string(&self.stat).unwrap_or_default();
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        !matches!(state, Some('R'))
    }
}

impl<S> Drop for Rival<S> {
    fn drop(&mut self) {
        self.jobs = None;
        // A panic of the thread was already reported when its answer was missing.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn panicked() -> Failure {
    Failure::Other("the second writer panicked".into())
}

impl<S: Subject> Job<S> {
    /// Writes, and then reads the value back.
    fn write(&self, key: &[u8], is_batching: bool) -> Answer {
        match &self.value {
            value if is_batching => self.store.batch(&[(key, value.as_deref())])?,
            Some(value) => self.store.put(key, value)?,
            None => _ = self.store.delete(key)?,
        }
        if !self.is_alone || self.store.get(key)? == self.value {
            return Ok(());
        }
        Err(Failure::Other(format!("a get of {} does not return the value just written", Key(key))))
    }
}
