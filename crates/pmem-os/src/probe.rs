//! Measures the machine and the medium of a benchmark, as context for its figures.

use std::fs;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pmem::{Bytes, LINE_BYTES, Medium, Offset, Span, arch};

use crate::{MapError, MapOptions, Mapped};

/// Several times the last-level cache of most machines, so that a read comes from memory.
const SCRATCH_BYTES: u64 = 256 << 20;

/// Less than this would measure the cache.
const SCRATCH_BYTES_MIN: u64 = 4 << 20;

/// Number of timed reads: enough to outlast interrupts, few enough to take 0.1 s on slow memory.
const READ_COUNT: u64 = 500_000;

/// Number of timed persists, for the same reasons.
const PERSIST_COUNT: u64 = 100_000;

/// Length of an item in the usual benchmarks, which is also Optane's unit.
const ITEM_BYTES: u64 = 256;

/// The measurements of a machine and a medium.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MachineProbe {
    /// Time of a read of a random line whose address came from the read before.
    pub dependent_read_ns: f64,
    /// Time to make 256 bytes durable by non-temporal stores, then a fence.
    pub persist_256_ns: f64,
    /// Time to make 256 bytes durable by writing, flushing every line, then a fence.
    pub persist_by_flush_256_ns: f64,
    /// The processor's write-back instruction.
    pub flush_instruction: &'static str,
    /// Number of bytes of the scratch region that were mapped by huge pages.
    pub huge_page_bytes: u64,
    /// The size of the scratch region.
    pub scratch_bytes: u64,
}

/// Measures in a scratch file in the directory `dir`, of 256 MiB or less if there is not enough space. Removes the
/// file.
///
/// # Errors
/// If no scratch file of 4 MiB can be mapped there.
pub fn probe(dir: &Path) -> io::Result<MachineProbe> {
    let scratch = scratch(dir)?;
    let whole = Offset(0).span(scratch.len_bytes());
    Ok(MachineProbe {
        dependent_read_ns: dependent_read_ns(&scratch, whole),
        persist_256_ns: persist_by_stream_ns(&scratch, whole),
        persist_by_flush_256_ns: persist_by_flush_ns(&scratch, whole),
        flush_instruction: arch::flush_instruction(),
        huge_page_bytes: scratch.huge_page_bytes()?,
        scratch_bytes: scratch.len_bytes(),
    })
}

/// Creates a region whose file has no name.
fn scratch(dir: &Path) -> io::Result<Mapped> {
    let path = dir.join(format!(".probe-{}", std::process::id()));
    let mut bytes = SCRATCH_BYTES;
    loop {
        match Mapped::create(&path, bytes, MapOptions::default()) {
            Ok(mapped) => return fs::remove_file(&path).map(|()| mapped),
            Err(MapError::Full { .. } | MapError::Limit { .. }) if bytes > SCRATCH_BYTES_MIN => bytes /= 2,
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

/// Returns the nanoseconds of a random dependent read within `scratch`, whose lines are overwritten.
///
/// # Panics
/// If the span does not have two complete lines, or is not in the region.
pub fn dependent_read_ns(medium: &impl Medium, scratch: Span) -> f64 {
    let first = chain_lines(medium, scratch);
    let mut at = first;
    let start = Instant::now();
    for _ in 0..READ_COUNT {
        at = Offset(medium.load(at, Ordering::Relaxed));
    }
    let elapsed = start.elapsed();
    black_box(at);
    ns_each(elapsed, READ_COUNT)
}

/// Links the lines of `scratch` into one ring in random order (Sattolo's algorithm): each begins with the offset of
/// the next. Returns one of them.
fn chain_lines(medium: &impl Medium, scratch: Span) -> Offset {
    let first = scratch.start.plus(LINE_BYTES - 1).line();
    let end = scratch.end().expect("the span lies in the region");
    let line_count = end.saturating_sub(first.0) / LINE_BYTES;
    assert!(line_count >= 2, "a span of {} bytes holds no two lines", scratch.len_bytes);
    let line = |index: u64| first.plus(index * LINE_BYTES);
    for index in 0..line_count {
        medium.store(line(index), line(index).0, Ordering::Relaxed);
    }
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for last in (1..line_count).rev() {
        let other = line(random.below(last));
        let mine = medium.load(line(last), Ordering::Relaxed);
        medium.store(line(last), medium.load(other, Ordering::Relaxed), Ordering::Relaxed);
        medium.store(other, mine, Ordering::Relaxed);
    }
    first
}

/// Returns the nanoseconds to stream 256 bytes to random places within `scratch` and order them.
///
/// # Panics
/// If the span does not have 256 aligned bytes, or is not in the region.
pub fn persist_by_stream_ns(medium: &impl Medium, scratch: Span) -> f64 {
    persist_ns(scratch, |at, item| {
        // SAFETY: the scratch span belongs to the measurement, and nothing refers into it.
        unsafe { medium.stream(at, &[item]) };
        medium.order();
    })
}

/// Returns the nanoseconds to write 256 bytes to random places within `scratch`, flush and order them.
///
/// # Panics
/// Like [`persist_by_stream_ns`].
pub fn persist_by_flush_ns(medium: &impl Medium, scratch: Span) -> f64 {
    persist_ns(scratch, |at, item| {
        // SAFETY: the scratch span belongs to the measurement, and nothing refers into it.
        unsafe { medium.write(at, item) };
        medium.flush(at.span(ITEM_BYTES));
        medium.order();
    })
}

fn persist_ns(scratch: Span, mut persist: impl FnMut(Offset, &[u8])) -> f64 {
    let first = scratch.start.0.next_multiple_of(ITEM_BYTES);
    let end = scratch.end().expect("the span lies in the region");
    let item_count = end.saturating_sub(first) / ITEM_BYTES;
    assert!(item_count > 0, "a span of {} bytes holds no item", scratch.len_bytes);
    let item = [0x5A; ITEM_BYTES as usize];
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let start = Instant::now();
    for _ in 0..PERSIST_COUNT {
        persist(Offset(first + random.below(item_count) * ITEM_BYTES), &item);
    }
    ns_each(start.elapsed(), PERSIST_COUNT)
}

fn ns_each(elapsed: Duration, count: u64) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}

/// Marsaglia's xorshift, from a state other than zero: fast and even enough to defeat a prefetcher.
struct Random(u64);

impl Random {
    /// Returns a number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_visits_every_line_once() {
        let directory = tempfile::tempdir().unwrap();
        let medium = Mapped::create(&directory.path().join("ring"), 1 << 16, MapOptions::default()).unwrap();
        let first = chain_lines(&medium, Offset(65).span(6400));
        assert_eq!(first, Offset(128));
        let next = |at: &Offset| Some(Offset(medium.load(*at, Ordering::Relaxed)));
        let mut visited: Vec<u64> = std::iter::successors(Some(first), next).take(99).map(|at| at.0 / 64).collect();
        assert_eq!(medium.load(Offset(visited[98] * 64), Ordering::Relaxed), first.0);
        visited.sort_unstable();
        assert!(visited.iter().copied().eq(2..101));
    }

    #[test]
    fn the_probe_measures_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let probed = probe(directory.path()).unwrap();
        assert!(probed.dependent_read_ns > 0.0 && probed.persist_256_ns > 0.0 && probed.persist_by_flush_256_ns > 0.0);
        assert!(probed.scratch_bytes >= SCRATCH_BYTES_MIN);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
