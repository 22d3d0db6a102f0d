//! The exploration of scripts: every script on every model, with every visitor.

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

/// How far an exploration goes. Bounds are counts, never a clock, so that it repeats.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The models to explore on.
    pub models: Vec<Model>,
    /// The region's size before format.
    pub region_bytes: u64,
    /// Crash images looked at after one step.
    pub images_per_step_max: usize,
    /// Crash images looked at after one step of the second writer, while the operation in flight stands still. With a writer after
    /// every step that is every pair of places at which two writers may be.
    pub rival_images_per_step_max: usize,
    /// Crash images looked at of one operation: a fair sample of all where there are more. Bounds memory, too.
    pub images_per_op_max: usize,
    /// Crashes inside the recovery of one image.
    pub nested_images_max: usize,
    /// How it ends.
    pub end: End,
    /// The visitors between steps: for each a run of every script.
    pub visitors: Vec<Visitor>,
    /// How much of all this is explored.
    pub extent: Extent,
    /// Threads that share the runs.
    pub thread_count: usize,
    /// The broken step, for hunts.
    pub canary: Option<Canary>,
}

impl Default for Settings {
    /// Both models, a region of 1 MiB, and counts that explore a small script in about a second.
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

/// How a run of a store ends, at whichever step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The power fails.
    PowerLoss,
    /// The process is killed: the next one finds all that was stored, and makes something of it. At every step of that the power
    /// fails, and takes what the killed process has not made durable.
    Kill,
}

/// What an exploration looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Steps after which images were taken.
    pub steps: u64,
    /// Different images of crashes of the script.
    pub images: u64,
    /// Different images of crashes of a recovery or a recovered store.
    pub nested_images: u64,
    /// Times that a visitor came by.
    pub visits: u64,
}

impl Counts {
    /// Whether there are as many as an exploration of everything sees, or a slice's share of them.
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
/// The first violation in the order of scripts, models and visitors, or that a script led to no image at all.
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

fn tasks<'a>(scripts: &'a [Script], settings: &Settings) -> Vec<Task<'a>> {
    let Settings { models, visitors, extent, .. } = settings;
    let runs = scripts.iter().flat_map(|script| models.iter().map(move |&model| (script, model)));
    let with_visitors = |(turn, (script, model))| {
        let who = extent.visitors(visitors, turn).into_iter().filter(move |visitor: &Visitor| visitor.visits(model));
        who.map(move |visitor| Task { script, model, visitor })
    };
    runs.enumerate().flat_map(with_visitors).collect()
}

type Walked = Result<Counts, Box<Violation>>;

/// Takes tasks in their order until there are none or one finds a violation. So all before the first objection are done.
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

/// What the runs of one script looked at together.
fn sum<'a>(script: &Script, results: impl Iterator<Item = &'a Walked>) -> Result<Counts, Objection> {
    let mut counts = Counts::default();
    for walked in results {
        counts += walked.clone().map_err(Objection::Violation)?;
    }
    if counts.images == 0 { Err(Objection::Inconclusive { seed: script.seed }) } else { Ok(counts) }
}

/// What became of a hunt for a broken twin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The exploration objected.
    Caught(Box<Violation>),
    /// It did not, after all this (nothing at all, if it was inconclusive).
    NotCaught(Counts),
}

impl Verdict {
    /// True if the twin was caught.
    #[must_use]
    pub fn is_caught(&self) -> bool {
        matches!(self, Verdict::Caught(_))
    }
}

/// Explores the twin that `canary` breaks. It must be caught, while the sound store passes the same scripts.
#[must_use]
pub fn hunt<S: Subject>(canary: Canary, scripts: &[Script], settings: &Settings) -> Verdict {
    let mut counts = Counts::default();
    // Most twins are caught by a slice.
    for extent in [Extent::Slice, Extent::Whole] {
        match explore::<S>(scripts, &Settings { canary: Some(canary), extent, ..settings.clone() }) {
            Err(Objection::Violation(violation)) => return Verdict::Caught(violation),
            Err(Objection::Inconclusive { .. }) => {}
            Ok(seen) => counts += seen,
        }
    }
    Verdict::NotCaught(counts)
}
