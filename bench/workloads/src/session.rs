//! A subject with loaded records, on which workloads are measured one after the other.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hikv::pool::Pool;

use crate::bounds::Bound;
use crate::config::Config;
use crate::draws::draws_of;
use crate::load;
use crate::pass::{Latencies, Pace, Until, latency, throughput, together};
use crate::pooled::{Queues, pooled};
use crate::report::{Measured, Row};
use crate::scans;
use crate::stream::Stream;
use crate::subject::{Error, Subject, refuse_unfit};
use crate::worker::Worker;
use crate::workload::Workload;

/// A session; see the module.
pub struct Session<'a, S> {
    subject: &'a S,
    config: &'a Config,
    stop: &'a (dyn Fn() -> bool + Sync),
    /// One pool for all workloads: a workload begins with the split with which the one before ended.
    pool: Option<Pool<Queues<'a, S>>>,
}

impl<'a, S: Subject> Session<'a, S> {
    /// Measures `subject` until `stop` becomes true.
    ///
    /// # Errors
    /// If the subject cannot do the operations of a configured workload.
    pub fn new(
        subject: &'a S,
        config: &'a Config,
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Session<'a, S>, Error> {
        refuse_unfit(subject, &config.workloads)?;
        let pool = config.plan.map(|plan| Pool::new(Queues(subject), config.threads, plan));
        Ok(Session { subject, config, stop, pool })
    }

    /// Puts all records; returns the number of records put, which is smaller if the session was stopped, and the
    /// elapsed time.
    ///
    /// # Errors
    /// Any error of the subject.
    pub fn load(&self) -> Result<(u64, Duration), Error> {
        let start = Instant::now();
        let until = self.until(Duration::MAX);
        let counts = together(&mut self.workers(), |worker| load::load(self.subject, worker, until))?;
        Ok((counts.into_iter().sum(), start.elapsed()))
    }

    /// Measures a workload on the loaded records; calls `paced` once before the first pass and between the two passes.
    /// At the end exactly the loaded records exist, unless the session was stopped. Returns `None` if the session was
    /// stopped before anything was measured.
    ///
    /// # Errors
    /// Any error of the subject.
    pub fn measure(&self, workload: Workload, paced: &mut dyn FnMut()) -> Result<Option<Row>, Error> {
        // Ordered workloads find the ordered index built, except where building it is measured.
        if (self.config.keeps_order || workload.is_ordered()) && workload != Workload::Rebuild {
            self.subject.put_in_order()?;
        }
        if (self.stop)() {
            return Ok(None);
        }
        let measured = if workload == Workload::Rebuild { self.rebuild()? } else { self.passes(workload, paced)? };
        Ok(measured.pace.is_any().then(|| Row::of(workload, self.config.records.count, &measured)))
    }

    /// Returns the time per operation of the workload in the throughput pass, in nanoseconds of its thread; `None` if
    /// there was no operation.
    pub(crate) fn pace_ns(&self, workload: Workload, limit: Duration) -> Result<Option<f64>, Error> {
        let mut streams = self.streams(workload);
        let pace = throughput(&mut streams, self.until(limit))?;
        Ok(pace.is_any().then(|| pace.ns_each(streams.len())))
    }

    /// Returns the same, and the 99.9th percentile of operations timed one by one.
    pub(crate) fn bound(&self, workload: Workload, limit: Duration) -> Result<Option<Bound>, Error> {
        let (mut streams, until) = (self.streams(workload), self.until(limit));
        let pace = throughput(&mut streams, until)?;
        together(&mut streams, Stream::rewind)?;
        let p999_us = latency(&mut streams, until)?.percentile_us(99.9);
        Ok(pace.is_any().then(|| Bound { ns: pace.ns_each(streams.len()), p999_us }))
    }

    /// Measures one build on all of the store's background threads; then reads everything in order.
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
        let draws = |worker: &Worker| draws_of(workload, worker).expect("a rebuild has no passes");
        self.workers().into_iter().map(|worker| Stream::new(self.subject, worker, draws(&worker), scans)).collect()
    }

    fn workers(&self) -> Vec<Worker> {
        let Config { records, threads, seed, .. } = *self.config;
        (0..threads).map(|thread| Worker { records, thread, threads, seed }).collect()
    }

    fn until(&self, limit: Duration) -> Until<'a> {
        Until { limit, stop: self.stop }
    }
}
