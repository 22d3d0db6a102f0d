//! Runs every script on every model with every visitor, and hunts broken variants.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use pmem::Canary;
use pmem_sim::Model;

use crate::extent::Extent;
use crate::script::Script;
use crate::subject::Subject;
use crate::violation::{Objection, Violation};
use crate::visitor::Visitor;
use crate::walk::{Task, walk};

/// The limits of an exploration. They are counts, never times, so that every exploration can be repeated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The models to explore on.
    pub models: Vec<Model>,
    /// The region's size before format, in bytes.
    pub region_bytes: u64,
    /// The maximum number of crash images examined after one step.
    pub images_per_step_max: usize,
    /// The maximum number of crash images examined after one step of the second writer, while the operation in flight
    /// is stopped. With a writer after every step this covers every pair of places at which two writers can be.
    pub rival_images_per_step_max: usize,
    /// The maximum number of crash images examined per operation; if there are more, a uniform sample of them. This
    /// also bounds memory.
    pub images_per_op_max: usize,
    /// The maximum number of crashes inside the recovery of one image.
    pub nested_images_max: usize,
    /// The kind of crash.
    pub end: End,
    /// The visitors between steps. Each of them gets a separate run of every script.
    pub visitors: Vec<Visitor>,
    /// The share of all this that is explored.
    pub extent: Extent,
    /// The number of threads that share the runs.
    pub thread_count: usize,
    /// The broken step, for hunts.
    pub canary: Option<Canary>,
}

impl Settings {
    /// Returns small settings for an engine in memory: nobody, a reader or a writer after every step.
    #[must_use]
    pub fn of_engine() -> Settings {
        let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAlways];
        Settings { visitors, images_per_op_max: 8, nested_images_max: 1, ..Settings::default() }
    }

    /// Returns settings for an engine on the journal, on a simulated disk.
    #[must_use]
    pub fn on_disk(region_bytes: u64) -> Settings {
        Settings {
            models: vec![Model::Disk],
            region_bytes,
            images_per_step_max: 8,
            images_per_op_max: 100,
            nested_images_max: 2,
            visitors: vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAfter(4), Visitor::Deleter],
            ..Settings::default()
        }
    }
}

impl Default for Settings {
    /// Both memory models, a region of 1 MiB, and limits with which a small script takes about a second.
    fn default() -> Settings {
        Settings {
            models: vec![Model::Line, Model::Span],
            region_bytes: 1 << 20,
            images_per_step_max: 24,
            rival_images_per_step_max: 0,
            images_per_op_max: 2000,
            nested_images_max: 4,
            end: End::PowerLoss,
            visitors: Visitor::all(10),
            extent: Extent::chosen(),
            thread_count: 2,
            canary: None,
        }
    }
}

/// The crash that ends a run, at any step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The power fails.
    PowerLoss,
    /// The process is killed. The next process finds every byte that was stored, durable or not, and recovers from it.
    /// The power fails at every step of that recovery and takes whatever the killed process had not made durable.
    Kill,
}

/// The amount of work of an exploration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Steps after which images were taken.
    pub steps: u64,
    /// Distinct images of crashes of the script.
    pub images: u64,
    /// Distinct images of crashes of a recovery or of a recovered store.
    pub nested_images: u64,
    /// Visits of a visitor.
    pub visits: u64,
}

impl Counts {
    /// Returns true if the counts reach these minimums of a full exploration, or the extent's share of them.
    #[must_use]
    pub fn reach(&self, images: u64, nested_images: u64, visits: u64) -> bool {
        let least = |count| Extent::chosen().least(count);
        self.images >= least(images) && self.nested_images >= least(nested_images) && self.visits >= least(visits)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.steps += other.steps;
        self.images += other.images;
        self.nested_images += other.nested_images;
        self.visits += other.visits;
    }
}

/// Explores every script.
///
/// # Errors
/// The first violation in the order of scripts, models and visitors, or [`Objection::Inconclusive`] if a script led to
/// no image.
pub fn explore<S: Subject>(scripts: &[Script], settings: &Settings) -> Result<Counts, Objection> {
    let settings = &settings.extent.of(settings);
    let tasks = tasks(scripts, settings);
    let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..settings.thread_count {
            scope.spawn(|| work::<S>(&tasks, &next, &results, settings));
        }
    });
    let results = results.into_inner();
    let mut total = Counts::default();
    for script in scripts {
        let own = results.iter().filter(|&(&task, _)| ptr::eq(tasks[task].script, script));
        total += sum(script, own.map(|(_, result)| result))?;
    }
    if scripts.is_empty() { Err(Objection::Inconclusive { seed: 0 }) } else { Ok(total) }
}

/// Explores every script, and returns the counts.
///
/// # Panics
/// At the objections of [`explore`].
pub fn survives<S: Subject>(scripts: &[Script], settings: &Settings) -> Counts {
    explore::<S>(scripts, settings).unwrap_or_else(|objection| panic!("{objection}"))
}

fn tasks<'a>(scripts: &'a [Script], settings: &Settings) -> Vec<Task<'a>> {
    let Settings { models, visitors, extent, .. } = settings;
    let runs = scripts.iter().flat_map(|script| models.iter().map(move |&model| (script, model)));
    let with_visitors = |(turn, (script, model))| {
        let who: Vec<_> = visitors.iter().copied().filter(|visitor| visitor.visits(model)).collect();
        extent.visitors(&who, turn, models.len()).into_iter().map(move |visitor| Task { script, model, visitor })
    };
    runs.enumerate().flat_map(with_visitors).collect()
}

type Walked = Result<Counts, Box<Violation>>;

/// Runs tasks in their order until none is left or a task finds a violation. So every task before the first objection
/// has run.
fn work<S: Subject>(
    tasks: &[Task<'_>],
    next: &AtomicUsize,
    results: &Mutex<BTreeMap<usize, Walked>>,
    settings: &Settings,
) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(&task) = tasks.get(number) else { return };
        let walked = walk::<S>(task, settings);
        if walked.is_err() {
            next.store(tasks.len(), Ordering::Relaxed);
        }
        results.lock().insert(number, walked);
    }
}

/// Adds up the counts of one script's runs.
fn sum<'a>(script: &Script, results: impl Iterator<Item = &'a Walked>) -> Result<Counts, Objection> {
    let mut counts = Counts::default();
    for walked in results {
        counts += walked.clone().map_err(Objection::Violation)?;
    }
    if counts.images == 0 { Err(Objection::Inconclusive { seed: script.seed }) } else { Ok(counts) }
}

/// The result of a hunt for a broken variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The exploration found the bug.
    Caught(Box<Violation>),
    /// The exploration found no violation. The counts are 0 if it was inconclusive.
    NotCaught(Counts),
}

impl Verdict {
    /// Returns true if the broken variant was caught.
    #[must_use]
    pub fn is_caught(&self) -> bool {
        matches!(self, Verdict::Caught(_))
    }
}

/// Explores the broken variant that `canary` names. The variant must be caught, while the sound store passes the same
/// scripts.
#[must_use]
pub fn hunt<S: Subject>(canary: Canary, scripts: &[Script], settings: &Settings) -> Verdict {
    let mut counts = Counts::default();
    // A slice catches most broken variants.
    for extent in [Extent::Slice, Extent::Whole] {
        match explore::<S>(scripts, &Settings { canary: Some(canary), extent, ..settings.clone() }) {
            Err(Objection::Violation(violation)) => return Verdict::Caught(violation),
            Err(Objection::Inconclusive { .. }) => {}
            Ok(seen) => counts += seen,
        }
    }
    Verdict::NotCaught(counts)
}

/// Explores the broken variant that `canary` names.
///
/// # Panics
/// If it is not caught.
pub fn catches<S: Subject>(canary: Canary, scripts: &[Script], settings: &Settings) {
    let verdict = hunt::<S>(canary, scripts, settings);
    assert!(verdict.is_caught(), "{canary:?}: {verdict:?}");
}
