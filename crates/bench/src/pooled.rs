//! Streams whose threads are a pool's: each serves its stream, or applies what others left in the subject's queues.

use std::sync::atomic::{AtomicBool, Ordering};

use hikv::Error;
use hikv::pool::{Member, Pool, Role, Work};
use pmem::arch;

use crate::streams::{Step, Stream, Turn};
use crate::subject::Subject;

/// What a pool of calling threads applies.
pub(crate) struct Queues<'a, S>(pub(crate) &'a S);

impl<S: Subject> Work for Queues<'_, S> {
    fn ticks(&self) -> u64 {
        arch::timestamp()
    }

    fn apply(&self) -> Result<u64, Error> {
        self.0.help()
    }

    fn queued_count(&self) -> u64 {
        self.0.upkeep().queued_count
    }

    fn applied(&self) -> [u64; 2] {
        let upkeep = self.0.upkeep();
        [upkeep.applied_count, upkeep.updated_count]
    }
}

/// One thread of the pool, with its stream. The first stream that runs out of records ends the pass of all: what is left of others'
/// is left because their threads applied.
pub(crate) struct Pooled<'p, T, W: Work> {
    stream: &'p mut T,
    member: Member<'p, W>,
    is_over: &'p AtomicBool,
}

/// The streams as a pool's threads.
pub(crate) fn pooled<'p, T: Stream, W: Work>(
    pool: &'p Pool<W>,
    streams: &'p mut [T],
    is_over: &'p AtomicBool,
) -> Vec<Pooled<'p, T, W>> {
    streams.iter_mut().map(|stream| Pooled { stream, member: pool.member(), is_over }).collect()
}

impl<T: Stream, W: Work> Turn for Pooled<'_, T, W> {
    #[inline]
    fn turn(&mut self) -> Result<Step, Error> {
        if self.is_over.load(Ordering::Relaxed) {
            return Ok(Step::Over);
        }
        if self.member.role() == Role::Apply {
            return self.member.apply().map(|_| Step::Applied);
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
