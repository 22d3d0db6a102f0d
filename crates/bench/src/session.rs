//! A subject with its records loaded, on which workloads are measured one after the other.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hikv::pool::Pool;

use crate::bounds::Bound;
use crate::draws::draws_of;
use crate::load;
use crate::pass::{Latencies, Pace, Until, latency, throughput, together};
use crate::pooled::{Queues, pooled};
use crate::report::{Measured, Row};
use crate::run::Config;
use crate::scans;
use crate::seat::Seat;
use crate::stream::Stream;
use crate::subject::{Error, Subject, refuse_unfit};
use crate::workload::Workload;

/// See the module.
pub struct Session<'a, S> {
    subject: &'a S,
    config: &'a Config,
    stop: &'a (dyn Fn() -> bool + Sync),
    /// One for all workloads: a workload begins with the split that the one before it ended with.
    pool: Option<Pool<Queues<'a, S>>>,
}

impl<'a, S: Subject> Session<'a, S> {
    /// Measures `subject`, until `stop` becomes true.
    ///
    /// # Errors
    /// If it cannot do what a workload of the configuration needs.
    pub fn new(
        subject: &'a S,
        config: &'a Config,
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Session<'a, S>, Error> {
        refuse_unfit(subject, &config.workloads)?;
        let pool = config.plan.map(|plan| Pool::new(Queues(subject), config.threads, plan));
        Ok(Session { subject, config, stop, pool })
    }

    /// Puts all records; how many those are, unless it is stopped, and how long it took.
    ///
    /// # Errors
    /// As the subject says.
    pub fn load(&self) -> Result<(u64, Duration), Error> {
        let start = Instant::now();
        let until = self.until(Duration::MAX);
        let counts = together(&mut self.seats(), |seat| load::load(self.subject, seat, until))?;
        Ok((counts.into_iter().sum(), start.elapsed()))
    }

    /// Measures a workload on the loaded records; calls `paced` between its two passes, and once before the first. In the end the loaded
    /// records are there, and no others, unless it was stopped. `None` if it was stopped before anything was measured.
    ///
    /// # Errors
    /// As the subject says.
    pub fn measure(&self, workload: Workload, paced: &mut dyn FnMut()) -> Result<Option<Row>, Error> {
        // The order of ordered workloads is there before, but where its making is measured.
        if (self.config.keeps_order || workload.is_ordered()) && workload != Workload::Rebuild {
            self.subject.put_in_order()?;
        }
        if (self.stop)() {
            return Ok(None);
        }
        let measured = if workload == Workload::Rebuild { self.rebuild()? } else { self.passes(workload, paced)? };
        Ok(measured.pace.is_any().then(|| Row::of(workload, self.config.records.count, &measured)))
    }

    /// How long an operation of the workload takes in the throughput pass, in nanoseconds of its thread; `None` if there was none.
    pub(crate) fn pace_ns(&self, workload: Workload, limit: Duration) -> Result<Option<f64>, Error> {
        let mut streams = self.streams(workload);
        let pace = throughput(&mut streams, self.until(limit))?;
        Ok(pace.is_any().then(|| pace.ns_each(streams.len())))
    }

    /// The same, and what 99.9 % of such operations do not exceed where each is timed.
    pub(crate) fn bound(&self, workload: Workload, limit: Duration) -> Result<Option<Bound>, Error> {
        let (mut streams, until) = (self.streams(workload), self.until(limit));
        let pace = throughput(&mut streams, until)?;
        together(&mut streams, Stream::rewind)?;
        let p999_us = latency(&mut streams, until)?.percentile_us(99.9);
        Ok(pace.is_any().then(|| Bound { ns: pace.ns_each(streams.len()), p999_us }))
    }

    /// One build on all of the store's background threads; then everything is read in order.
    fn rebuild(&self) -> Result<Measured, Error> {
        let start = Instant::now();
        self.subject.put_in_order()?;
        let count = self.config.records.count;
        let pace = Pace { operations: count, elapsed: start.elapsed() };
        let right = scans::count_right(self.subject, self.config.records)?;
        let latencies = Some(Latencies::of_one(pace.elapsed));
        Ok(Measured { latencies, errors: count.abs_diff(right), ..Measured::of(1, pace) })
    }

    fn passes(&self, workload: Workload, paced: &mut dyn FnMut()) -> Result<Measured, Error> {
        let mut streams = self.streams(workload);
        let until = self.until(self.config.pass);
        let before = self.subject.persists();
        paced();
        let pace = self.throughput(&mut streams, until)?;
        paced();
        let put_count = streams.iter().map(Stream::put_count).sum();
        let mut measured = Measured {
            put_count,
            queued_count: self.subject.queued_count(),
            persists: before.zip(self.subject.persists()).map(|(before, after)| after - before),
            pool: self.pool.as_ref().map(Pool::figures),
            ..Measured::of(streams.len(), pace)
        };
        if !until.is_stopped() {
            together(&mut streams, Stream::rewind)?;
            measured.latencies = Some(self.latency(&mut streams, until)?);
        }
        measured.all_put_count = streams.iter().map(Stream::put_count).sum();
        if !until.is_stopped() {
            together(&mut streams, Stream::restore)?;
        }
        measured.errors = streams.iter().map(Stream::errors).sum();
        Ok(measured)
    }

    fn throughput(&self, streams: &mut [Stream<'a, S>], until: Until<'_>) -> Result<Pace, Error> {
        match &self.pool {
            Some(pool) => throughput(&mut pooled(pool, streams, &AtomicBool::new(false)), until),
            None => throughput(streams, until),
        }
    }

    fn latency(&self, streams: &mut [Stream<'a, S>], until: Until<'_>) -> Result<Latencies, Error> {
        match &self.pool {
            Some(pool) => latency(&mut pooled(pool, streams, &AtomicBool::new(false)), until),
            None => latency(streams, until),
        }
    }

    fn streams(&self, workload: Workload) -> Vec<Stream<'a, S>> {
        let scans = workload.needs().contains(&crate::Need::Scans);
        let draws = |seat: &Seat| draws_of(workload, seat).expect("a rebuild has no passes");
        self.seats().into_iter().map(|seat| Stream::new(self.subject, seat, draws(&seat), scans)).collect()
    }

    fn seats(&self) -> Vec<Seat> {
        let Config { records, threads, seed, .. } = *self.config;
        (0..threads).map(|thread| Seat { records, thread, threads, seed }).collect()
    }

    fn until(&self, limit: Duration) -> Until<'a> {
        Until { limit, stop: self.stop }
    }
}
