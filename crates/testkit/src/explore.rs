//! The exploration of scripts: every script on every model, with every visitor.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use pmem::Canary;
use pmem_sim::Model;

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
    /// Crashes inside the recovery of one image.
    pub nested_images_max: usize,
    /// A reader comes by once an operation, after its first step, in one run; after its second in another; so many runs.
    pub reader_steps_max: u64,
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
            nested_images_max: 4,
            reader_steps_max: 10,
            thread_count: 2,
            canary: None,
        }
    }
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
/// The first violation that was met, or that a script led to no image at all.
pub fn explore<S: Subject>(scripts: &[Script], settings: &Settings) -> Result<Counts, Objection> {
    let tasks: Vec<Task<'_>> = scripts.iter().flat_map(|script| tasks(script, settings)).collect();
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Ok(Counts::default())));
    thread::scope(|scope| {
        for _ in 0..settings.thread_count {
            scope.spawn(|| work::<S>(&tasks, &next, &total, settings));
        }
    });
    let counts = total.into_inner()?;
    if scripts.is_empty() { Err(Objection::Inconclusive { seed: 0 }) } else { Ok(counts) }
}

fn tasks<'a>(script: &'a Script, settings: &Settings) -> impl Iterator<Item = Task<'a>> {
    let visitors = |&model: &Model| Visitor::all(model, settings.reader_steps_max).into_iter().map(move |v| (model, v));
    let runs: Vec<_> = settings.models.iter().flat_map(visitors).collect();
    runs.into_iter().map(move |(model, visitor)| Task { script, model, visitor })
}

/// Takes tasks until there are none or somebody objects.
fn work<S: Subject>(
    tasks: &[Task<'_>],
    next: &AtomicUsize,
    total: &Mutex<Result<Counts, Objection>>,
    settings: &Settings,
) {
    while let Some(&task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
        let done = run::<S>(task, settings);
        match (&mut *total.lock(), done) {
            (Ok(total), Ok(counts)) => *total += counts,
            (total @ Ok(_), Err(objection)) => *total = Err(objection),
            (Err(_), _) => return,
        }
    }
}

fn run<S: Subject>(task: Task<'_>, settings: &Settings) -> Result<Counts, Objection> {
    let counts = walk::<S>(task, settings).map_err(Objection::Violation)?;
    if task.visitor == Visitor::Nobody && counts.images == 0 {
        return Err(Objection::Inconclusive { seed: task.script.seed });
    }
    Ok(counts)
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
    match explore::<S>(scripts, &Settings { canary: Some(canary), ..settings.clone() }) {
        Err(Objection::Violation(violation)) => Verdict::Caught(violation),
        Err(Objection::Inconclusive { .. }) => Verdict::NotCaught(Counts::default()),
        Ok(counts) => Verdict::NotCaught(counts),
    }
}
