//! A thread of a pool: role and counters.

use super::{FLUSH_COUNT, Kind, Plan, Pool, Role, Sampled, TIMED_EVERY, Window, Work};
use crate::Error;

/// A thread of a pool. Dropping it gives up its role in any state.
#[derive(Debug)]
pub struct Member<'p, W: Work> {
    pool: &'p Pool<W>,
    own: Window,
    is_backend: bool,
    found_nothing: bool,
}

impl<'p, W: Work> Member<'p, W> {
    pub(super) fn of(pool: &'p Pool<W>) -> Member<'p, W> {
        Member { pool, own: Window::default(), is_backend: false, found_nothing: false }
    }

    /// Returns the thread's pool.
    pub fn pool(&self) -> &'p Pool<W> {
        self.pool
    }

    /// Returns the role for the next operation. Called between two operations.
    #[inline]
    pub fn role(&mut self) -> Role {
        let roles = &self.pool.roles;
        if self.is_backend {
            self.is_backend = !roles.leave();
        } else if roles.has_vacancy() {
            self.is_backend = roles.take();
        }
        let polls = matches!(self.pool.plan, Plan::Fixed(_));
        let found_nothing = std::mem::take(&mut self.found_nothing);
        if self.is_backend && (polls || !found_nothing) { Role::Apply } else { Role::Serve }
    }

    /// Gives up the role, so that a thread that is awake can take it. Called before the thread sleeps.
    pub fn rest(&mut self) {
        if std::mem::take(&mut self.is_backend) {
            self.pool.roles.release();
        }
    }

    /// Applies some of the waiting changes, and returns their number. A thread that has nothing to serve may call this
    /// in any role.
    ///
    /// # Errors
    /// The store's.
    pub fn apply(&mut self) -> Result<u64, Error> {
        let start = self.pool.work.ticks();
        let count = self.pool.work.apply()?;
        let ticks = self.pool.work.ticks() - start;
        self.found_nothing = count == 0;
        if count > 0 {
            self.own.applied.add(Sampled { count, timed_count: count, ticks });
        }
        if self.own.applied.count >= FLUSH_COUNT {
            self.flush();
        }
        Ok(count)
    }

    /// Returns the time if the next operation is to be timed. Called before the operation.
    #[inline]
    pub fn begin(&self) -> Option<u64> {
        self.own.served_count().is_multiple_of(TIMED_EVERY).then(|| self.pool.work.ticks())
    }

    /// Counts `count` operations of this kind. Called after them.
    #[inline]
    pub fn end(&mut self, kind: Kind, count: u64, begun: Option<u64>) {
        self.served(
            kind,
            match begun {
                Some(begun) => Sampled { count, timed_count: count, ticks: self.pool.work.ticks() - begun },
                None => Sampled { count, ..Sampled::default() },
            },
        );
    }

    /// As [`Member::begin`] and [`Member::end`], for operations that the caller has timed.
    #[inline]
    pub fn served(&mut self, kind: Kind, sampled: Sampled) {
        let sum = match kind {
            Kind::Get => &mut self.own.gets,
            Kind::Scan => &mut self.own.scans,
            Kind::Write => &mut self.own.writes,
        };
        sum.add(sampled);
        if self.own.served_count() >= FLUSH_COUNT {
            self.flush();
        }
    }

    #[cold]
    fn flush(&mut self) {
        self.pool.add(std::mem::take(&mut self.own));
    }
}

impl<W: Work> Drop for Member<'_, W> {
    fn drop(&mut self) {
        self.rest();
    }
}
