//! Streams whose threads form a pool: each thread serves its stream, or applies changes from the subject's queues.

use std::sync::atomic::{AtomicBool, Ordering};

use hikv::pool::{Member, Pool, Role, Work};
use pmem::arch;

use crate::pass::{Step, Turn};
use crate::stream::Stream;
use crate::subject::{Error, Subject};

/// The queues that a pool of calling threads applies.
pub(crate) struct Queues<'a, S>(pub(crate) &'a S);

impl<S: Subject> Work for Queues<'_, S> {
    fn ticks(&self) -> u64 {
        arch::timestamp()
    }

    fn apply(&self) -> Result<u64, hikv::Error> {
        self.0.step()
    }

    fn queued_count(&self) -> u64 {
        self.0.queue_stats().queued_count
    }

    fn applied(&self) -> [u64; 2] {
        let stats = self.0.queue_stats();
        [stats.applied_count, stats.updated_count]
    }
}

/// A thread of the pool, with its stream. The first stream that runs out of records ends the pass for all: the other
/// streams have records left only because their threads applied changes.
pub(crate) struct Pooled<'p, 's, S: Subject> {
    stream: &'p mut Stream<'s, S>,
    member: Member<'p, Queues<'s, S>>,
    is_over: &'p AtomicBool,
}

/// Returns the streams as a pool's threads.
pub(crate) fn pooled<'p, 's, S: Subject>(
    pool: &'p Pool<Queues<'s, S>>,
    streams: &'p mut [Stream<'s, S>],
    is_over: &'p AtomicBool,
) -> Vec<Pooled<'p, 's, S>> {
    streams.iter_mut().map(|stream| Pooled { stream, member: pool.member(), is_over }).collect()
}

impl<S: Subject> Turn for Pooled<'_, '_, S> {
    #[inline(always)]
    fn prepare(&mut self) {
        self.stream.prepare();
    }

    #[inline]
    fn turn(&mut self) -> Result<Step, Error> {
        if self.is_over.load(Ordering::Relaxed) {
            return Ok(Step::Over);
        }
        if self.member.role() == Role::Apply {
            self.member.apply()?;
            return Ok(Step::Applied);
        }
        let begun = self.member.begin();
        let step = self.stream.turn()?;
        match step {
            Step::Served(count) => self.member.end(self.stream.kind(), count, begun),
            _ => self.is_over.store(true, Ordering::Relaxed),
        }
        Ok(step)
    }
}
