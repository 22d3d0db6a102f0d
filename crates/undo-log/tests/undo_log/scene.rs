//! A region with some words that lanes change, and an oracle of the words' values after a crash.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use heap::{EngineNumber, Heap, Parameters};
use pmem::{Bytes, Canary, DramBox, Offset, Persist, Span};
use pmem_sim::{Image, Model, Sim, SimDram};
use undo_log::{Lane, Lanes};

pub(crate) const LANE_COUNT: usize = 2;
/// Number of words in a cache line.
const LINE_WORDS: u64 = 8;
/// The words of four lines.
const WORD_COUNT: usize = 32;
const IMAGE_COUNT_MAX: usize = 32;

/// New values of some words.
pub(crate) type Change = Vec<(usize, u64)>;

/// The states that a crash may leave.
#[derive(Clone, Default)]
struct Oracle {
    is_formatted: bool,
    cells: Offset,
    words: Vec<u64>,
    /// Changes that are under way: each is present completely or not at all.
    open: Vec<Change>,
}

impl Oracle {
    fn found(&self, sim: &Sim) -> Vec<u64> {
        (0..WORD_COUNT).map(|word| sim.load(cell(self.cells, word), Ordering::Acquire)).collect()
    }

    fn judge(&self, sim: &Sim) -> Result<(), String> {
        let found = self.found(sim);
        let mut left = self.words.clone();
        for change in &self.open {
            let is_done = change.iter().all(|&(word, new)| found[word] == new);
            change.iter().filter(|_| is_done).for_each(|&(word, new)| left[word] = new);
        }
        if left == found { Ok(()) } else { Err(format!("{found:?} instead of {left:?}, or more of {:?}", self.open)) }
    }
}

/// Checks the crash images of every step on a medium; keeps the first objection.
#[derive(Default)]
pub(crate) struct Explorer {
    canary: Option<Canary>,
    is_killed: bool,
    oracle: Mutex<Oracle>,
    known: Mutex<HashSet<(u64, bool)>>,
    objection: Mutex<Option<String>>,
}

impl Explorer {
    fn watch(self: &Arc<Explorer>, sim: &Sim, is_nested: bool) {
        let explorer = Arc::clone(self);
        sim.observe(Box::new(move |sim, _| explorer.examine(sim, is_nested)));
    }

    fn examine(self: &Arc<Explorer>, sim: &Sim, is_nested: bool) {
        let oracle = self.oracle.lock().unwrap().clone();
        if !oracle.is_formatted || self.objection().is_some() {
            return;
        }
        let images = match self.is_killed && !is_nested {
            true => sim.killed().into_iter().collect(),
            false => sim.images(IMAGE_COUNT_MAX, sim.step_count()),
        };
        for image in images {
            let state = oracle.words.iter().fold(oracle.open.len() as u64, |sum, word| sum.wrapping_mul(31) + word);
            if self.known.lock().unwrap().insert((image.hash() ^ state, is_nested)) {
                let step = sim.step_count();
                let judged = self.recover(&image, sim.model(), &oracle, is_nested);
                judged.unwrap_or_else(|objection| self.object(format!("step {step}: {image:?}: {objection}")));
            }
        }
    }

    /// Recovers an image and compares. The recovery is itself crashed, once; its result must stay the same.
    fn recover(
        self: &Arc<Explorer>,
        image: &Image,
        model: Model,
        oracle: &Oracle,
        is_nested: bool,
    ) -> Result<(), String> {
        let sim = self.canary.into_iter().fold(Sim::from_image(image, model), Sim::with_canary);
        if !is_nested {
            self.watch(&sim, true);
        }
        let heap = Heap::open(&sim, EngineNumber::INK, SimDram).map_err(|error| error.to_string())?;
        let lanes = Lanes::open(&sim, &heap, LANE_COUNT, SimDram).map_err(|error| error.to_string())?;
        let recovered = lanes.recover(&sim).map_err(|error| error.to_string())?;
        sim.unobserve();
        oracle.judge(&sim).map_err(|wrong| format!("{recovered:?}: {wrong}"))?;
        let shown = Oracle { words: oracle.found(&sim), open: Vec::new(), ..oracle.clone() };
        let images = if is_nested { Vec::new() } else { sim.images(IMAGE_COUNT_MAX, sim.step_count()) };
        images.iter().try_for_each(|image| self.recover(image, model, &shown, true))
    }

    fn object(&self, objection: String) {
        self.objection.lock().unwrap().get_or_insert(objection);
    }

    fn objection(&self) -> Option<String> {
        self.objection.lock().unwrap().clone()
    }

    pub(crate) fn image_count(&self) -> usize {
        self.known.lock().unwrap().len()
    }
}

/// The script's side of a test.
pub(crate) struct Scene {
    pub(crate) sim: Sim,
    pub(crate) lanes: DramBox<Lanes, SimDram>,
    explorer: Arc<Explorer>,
    cells: Offset,
}

impl Scene {
    pub(crate) fn format(model: Model, canary: Option<Canary>, is_killed: bool) -> Scene {
        let sim = canary.into_iter().fold(Sim::new(0, model), Sim::with_canary);
        let parameters =
            Parameters { uuid: [1; 16], hash_seed: 1, partition_count: LANE_COUNT as u32, region_bytes: 1 << 20 };
        let heap = Heap::format(&sim, EngineNumber::INK, &parameters, SimDram).unwrap();
        let lanes = Lanes::format(&sim, &heap, LANE_COUNT, SimDram).unwrap();
        let cells = heap.reserve(&sim, WORD_COUNT as u64 * 8, 0).unwrap().publish().offset.plus(56).line();
        heap.region().finish_format(&sim).unwrap();
        let explorer = Arc::new(Explorer { canary, is_killed, ..Explorer::default() });
        let words = vec![0; WORD_COUNT];
        *explorer.oracle.lock().unwrap() = Oracle { is_formatted: true, cells, words, open: Vec::new() };
        explorer.watch(&sim, false);
        Scene { sim, lanes, explorer, cells }
    }

    /// Steps 1 and 2 of a change.
    pub(crate) fn begin(&self, lane: &mut Lane<'_>, change: &Change) {
        self.explorer.oracle.lock().unwrap().open.push(change.clone());
        let ranges: Vec<Span> = change.iter().map(|&(word, _)| cell(self.cells, word).span(8)).collect();
        // SAFETY: one thread changes words, and scripts use different words in each lane (except a broken variant,
        // which must be caught).
        unsafe { lane.log(&self.sim, &ranges) };
        for (&(_, new), range) in change.iter().zip(ranges) {
            self.sim.store(range.start, new, Ordering::Release);
            self.sim.flush(range);
        }
    }

    /// Steps 3 and 4, and the wait.
    pub(crate) fn end(&self, lane: &mut Lane<'_>, change: &Change) {
        let ticket = lane.finish(&self.sim);
        self.sim.wait(ticket).unwrap();
        self.stands(change);
    }

    /// Changes one word.
    pub(crate) fn swap(&self, lane: &mut Lane<'_>, word: usize, new: u64) {
        let change = vec![(word, new)];
        self.explorer.oracle.lock().unwrap().open.push(change.clone());
        let at = cell(self.cells, word);
        lane.intend(&self.sim, at);
        self.sim.store(at, new, Ordering::Release);
        self.sim.flush(at.span(8));
        self.sim.wait(self.sim.commit(pmem::Level::default())).unwrap();
        self.stands(&change);
    }

    fn stands(&self, change: &Change) {
        let mut oracle = self.explorer.oracle.lock().unwrap();
        change.iter().for_each(|&(word, new)| oracle.words[word] = new);
        oracle.open.retain(|open| open != change);
    }

    /// Returns the first objection and the number of images that were checked.
    pub(crate) fn end_of_script(self) -> (Option<String>, usize) {
        self.sim.unobserve();
        (self.explorer.objection(), self.explorer.image_count())
    }
}

/// Returns the offset of a word. Consecutive words are in the same line, eight per line.
fn cell(cells: Offset, word: usize) -> Offset {
    cells.plus(word as u64 % LINE_WORDS * 8 + word as u64 / LINE_WORDS * 64)
}
