//! The thread that deletes elements of dead collections (`keyspace::collections`).

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use hikv::Clock;

use crate::errors::Refusal;
use crate::shared::Shared;

/// The thread, which ends when this is dropped.
pub(crate) struct Reclaimer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Reclaimer {
    /// Starts the thread, with this lane of the gate.
    pub(crate) fn start(shared: &Arc<Shared>, lane: usize) -> io::Result<Reclaimer> {
        let thread = thread::Builder::new().name("hikv-reclaim".into()).spawn({
            let shared = Arc::clone(shared);
            move || {
                let collections = &shared.keyspace.collections;
                while collections.wake.await_pass(collections.exist()) {
                    // What fails is tried again in the next pass; commands report the error of the store.
                    let _ = pass(&shared, lane, Clock::default().now_ms());
                }
            }
        })?;
        Ok(Reclaimer { shared: Arc::clone(shared), thread: Some(thread) })
    }
}

impl Drop for Reclaimer {
    fn drop(&mut self) {
        self.shared.keyspace.collections.wake.stop();
        self.thread.take().into_iter().for_each(|thread| _ = thread.join());
    }
}

/// Deletes everything that is dead at this time, in milliseconds since the Unix epoch.
pub(crate) fn pass(shared: &Shared, lane: usize, now_ms: u64) -> Result<(), Refusal> {
    let keyspace = &shared.keyspace;
    let Some(reclaim) = keyspace.reclaim() else { return Ok(()) };
    let is_stopped = || keyspace.collections.wake.is_stopped();
    // This waits until keys are in order, so that what follows does not.
    let due_now = reclaim.due(now_ms)?;
    if keyspace.collections.wake.may_have_lost() {
        let _pass = shared.gate.pass(lane);
        // The command may be a transaction, which swaps databases.
        if !shared.gate.has_claim() {
            keyspace.store.deferred(|_| reclaim.note_lost(&keyspace.databases.ids())).0?;
            keyspace.collections.wake.found_lost();
        }
    }
    for due in due_now {
        if is_stopped() {
            return Ok(());
        }
        let _pass = shared.gate.pass(lane);
        // A command in the background may be reading it.
        if !shared.gate.has_claim() {
            // What fails is tried again in the next pass; a damaged record must not keep the others.
            let _ = keyspace.store.deferred(|_| reclaim.expire(&due)).0;
        }
    }
    while let Some(step) = reclaim.next_step()? {
        if is_stopped() {
            break;
        }
        keyspace.store.deferred(|_| reclaim.carry_out(&step)).0?;
    }
    Ok(())
}
