//! The numbers of serving and applying threads in a pool: equations (1) and (2) of the HiKV paper (section 3.2.2).
//!
//! ```text
//! (Ng Lg + Ns Ls + Nw Lsw) / Nserving = (Nb Lbw) / Nbackend        (1)
//! Nserving + Nbackend = Nthreads                                   (2)
//! ```
//!
//! N are the operations of a window and L their mean latencies: gets, scans, writes as served, and changes as applied.
//! Both sides of (1) are times, so `Nbackend` is the backend's share of all the work. The paper allows two readings of
//! `Nb`, the applied changes; see [`Reading`].

/// Samples of one kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sampled {
    /// Operations.
    pub count: u64,
    /// Timed operations.
    pub timed_count: u64,
    /// Duration of the timed operations, in ticks of the pool's clock.
    pub ticks: u64,
}

impl Sampled {
    /// Returns the mean duration of a timed operation; `None` if none was timed.
    #[must_use]
    pub fn mean_ticks(&self) -> Option<f64> {
        (self.timed_count > 0).then(|| self.ticks as f64 / self.timed_count as f64)
    }

    /// Returns an estimate of the duration of all operations, from the timed ones.
    fn work_ticks(&self) -> f64 {
        self.mean_ticks().unwrap_or(0.0) * self.count as f64
    }

    pub(super) fn add(&mut self, other: Sampled) {
        self.count += other.count;
        self.timed_count += other.timed_count;
        self.ticks += other.ticks;
    }
}

/// A pool's operations over a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// Reads of keys.
    pub gets: Sampled,
    /// Scans.
    pub scans: Sampled,
    /// Puts, updates and deletes, as they were served.
    pub writes: Sampled,
    /// Changes that were applied.
    pub applied: Sampled,
    /// Changes that were queued. Most writes queue one; a write that changes nothing queues none, and a batch queues
    /// many.
    pub left_count: u64,
    /// Applied changes that replaced an item by another: updates.
    pub updated_count: u64,
    /// Changes that waited at the end of the window.
    pub queued_count: u64,
}

impl Window {
    pub(super) fn served_count(&self) -> u64 {
        self.gets.count + self.scans.count + self.writes.count
    }

    fn served_ticks(&self) -> f64 {
        self.gets.work_ticks() + self.scans.work_ticks() + self.writes.work_ticks()
    }

    /// Returns the work that the window's writes left to the backend. Before any change was timed, a change is assumed
    /// to take as long as its write.
    fn applied_ticks(&self, reading: Reading) -> f64 {
        let each = self.applied.mean_ticks().or(self.writes.mean_ticks()).unwrap_or(0.0);
        let share = match reading {
            Reading::WritesLumped => 1.0,
            Reading::UpdatesLeftOut if self.applied.count == 0 => 1.0,
            Reading::UpdatesLeftOut => 1.0 - (self.updated_count as f64 / self.applied.count as f64).min(1.0),
        };
        self.left_count as f64 * share * each
    }
}

/// The writes that count for the backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reading {
    /// All writes, as the paper prints it. An update moves an item, and the tree names items by their places, so the
    /// backend has to apply it (`docs/decisions/0049-split-threads-by-the-papers-equation-on-request.md`).
    #[default]
    WritesLumped,
    /// Puts and deletes only, as in the slides of the paper, where the tree does not need updates.
    UpdatesLeftOut,
}

/// The number of threads in each role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// Threads that serve.
    pub serving: usize,
    /// Threads that apply.
    pub backend: usize,
}

impl Split {
    /// Returns the solution of the equations for a window, in whole threads. If nothing was written and nothing waits,
    /// no thread applies. Otherwise at least one applies and at least one serves. A single thread serves, and applies
    /// when a queue is full.
    #[must_use]
    pub fn of(window: &Window, reading: Reading, thread_count: usize) -> Split {
        let is_idle = window.left_count == 0 && window.queued_count == 0;
        if is_idle || thread_count < 2 {
            return Split { serving: thread_count, backend: 0 };
        }
        let (served, applied) = (window.served_ticks(), window.applied_ticks(reading));
        let share = if applied > 0.0 { applied / (served + applied) } else { 0.0 };
        let backend = ((thread_count as f64 * share).round() as usize).clamp(1, thread_count - 1);
        Split { serving: thread_count - backend, backend }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(count: u64, mean_ticks: u64) -> Sampled {
        Sampled { count, timed_count: count, ticks: count * mean_ticks }
    }

    fn backend(window: Window, reading: Reading) -> usize {
        let split = Split::of(&window, reading, 16);
        assert_eq!(split.serving + split.backend, 16, "equation (2)");
        split.backend
    }

    /// The sides of equation (1) differ by at most the effect of half a thread.
    #[test]
    fn both_sides_are_level() {
        for (gets, scans, writes) in [(0, 0, 100), (50, 0, 50), (95, 0, 5), (0, 95, 5), (300, 10, 700)] {
            let window = Window {
                gets: sampled(gets, 400),
                scans: sampled(scans, 5_600),
                writes: sampled(writes, 1_300),
                applied: sampled(writes, 1_700),
                left_count: writes,
                ..Window::default()
            };
            let (served, applied) = (window.served_ticks(), window.applied_ticks(Reading::WritesLumped));
            let exact = 16.0 * applied / (served + applied);
            let found = backend(window, Reading::WritesLumped) as f64;
            assert!((found - exact).abs() <= 0.5 || exact < 0.5 && found == 1.0, "{found} for {exact}: {window:?}");
        }
    }

    /// Section 4.5 prints three splits of 16 threads for mixes whose writes are all updates: 8 and 8 for YCSB A, 13 and
    /// 3 for B, 9 and 7 for F. One set of latencies gives all three if updates count, and none if they do not.
    #[test]
    fn the_printed_splits_count_updates() {
        let mix = |gets, writes| Window {
            gets: sampled(gets, 400),
            writes: sampled(writes, 1_760),
            applied: sampled(writes, 2_160),
            left_count: writes,
            updated_count: writes,
            ..Window::default()
        };
        let printed = [(mix(50, 50), 8), (mix(95, 5), 3), (mix(100, 50), 7)];
        for (window, printed) in printed {
            assert_eq!(backend(window, Reading::WritesLumped), printed);
            assert_eq!(backend(window, Reading::UpdatesLeftOut), 1);
        }
    }

    #[test]
    fn the_readings_differ_by_the_updates() {
        let updates = |updated_count| Window {
            writes: sampled(100, 1_000),
            applied: sampled(100, 3_000),
            left_count: 100,
            updated_count,
            ..Window::default()
        };
        assert_eq!(backend(updates(0), Reading::UpdatesLeftOut), 12);
        assert_eq!(backend(updates(50), Reading::UpdatesLeftOut), 10, "16 x 150 / 250 = 9.6");
        assert_eq!(backend(updates(100), Reading::UpdatesLeftOut), 1, "something is written all the same");
        assert_eq!(backend(updates(100), Reading::WritesLumped), 12);
    }

    #[test]
    fn unwritten_store_has_no_backend() {
        let reads = Window { gets: sampled(1_000, 400), applied: sampled(0, 0), ..Window::default() };
        assert_eq!(backend(reads, Reading::WritesLumped), 0);
        assert_eq!(
            backend(Window { queued_count: 1, ..reads }, Reading::WritesLumped),
            1,
            "what waits is applied first"
        );
    }

    /// A batch is one write and queues many changes; a delete of an absent key queues none.
    #[test]
    fn pool_counts_left_changes() {
        let left = |left_count| Window {
            writes: sampled(100, 1_000),
            applied: sampled(left_count, 1_000),
            left_count,
            ..Window::default()
        };
        assert_eq!(backend(left(100), Reading::WritesLumped), 8);
        assert_eq!(backend(left(300), Reading::WritesLumped), 12);
        assert_eq!(backend(left(0), Reading::WritesLumped), 0);
    }

    #[test]
    fn thread_serves_whatever_waits() {
        let window =
            Window { writes: sampled(1, 1), applied: sampled(1, u32::MAX.into()), left_count: 1, ..Window::default() };
        assert_eq!(Split::of(&window, Reading::WritesLumped, 1), Split { serving: 1, backend: 0 });
        assert_eq!(Split::of(&window, Reading::WritesLumped, 2), Split { serving: 1, backend: 1 });
        assert_eq!(Split::of(&window, Reading::WritesLumped, 3), Split { serving: 1, backend: 2 });
    }
}
