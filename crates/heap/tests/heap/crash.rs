//! Crashes at every step of format, new chunks, growth, freed chunks, holes, and of the recovery from each.
//!
//! A list plays the index: an index would reach the places that are published and not freed. After any crash,
//! recovery must find a region in which all of these are valid places, hand out none of them again, and find no
//! segment slot that was never reserved and is not zero.

mod filled;
mod gathered;

use std::collections::BTreeSet;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use heap::layout::SEGMENT_BYTES;
use heap::{EngineNumber, FEATURE_EXPIRY, Found, Heap, HeapError, Parameters, Place, PlaceKind, Region};
use pmem::{Bytes, Canary, Level, Offset, Persist};
use pmem_sim::{Image, Model, Sim};

use crate::memory::{Host, PARAMETERS};

/// Images tried at each step: all of them where a protocol keeps its promises, because few lines are pending then.
const IMAGE_COUNT_MAX: usize = 24;
/// One in this many of a script's own images has its recovery crashed in turn.
const NESTED_SHARE: usize = 32;
/// The same for a script of few images, on memory behind a cache, where a recovery takes few steps.
const NESTED_SHARE_OF_FEW: usize = 8;
/// The least number of different images of a script and of recoveries. (`run_holes` behind a cache has 127 of its own.)
const OWN_COUNT_MIN: usize = 120;
const IMAGE_COUNT_MIN: usize = 200;

/// The contents of an index.
#[derive(Clone, Default)]
struct Index {
    is_finished: bool,
    /// The store's generation, or the one that is being set.
    generations: Vec<u16>,
    /// The flags that were set.
    features: u32,
    live: Vec<Place>,
    used_segments: BTreeSet<u64>,
}

/// The images that were checked.
#[derive(Default)]
struct Known {
    /// Images of the script: the same number however many recoveries are crashed.
    own: HashSet<u64>,
    /// Images of recoveries.
    nested: HashSet<u64>,
}

/// Explores the crashes of everything done to a medium, and keeps the first objection.
struct Explorer {
    canary: Option<Canary>,
    nested_share: usize,
    index: Mutex<Index>,
    known: Mutex<Known>,
    objection: Mutex<Option<String>>,
}

fn variant(sim: Sim, canary: Option<Canary>) -> Sim {
    canary.into_iter().fold(sim, Sim::with_canary)
}

impl Explorer {
    fn new(canary: Option<Canary>, nested_share: usize) -> Arc<Explorer> {
        let (index, known, objection) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Explorer { canary, nested_share, index, known, objection })
    }

    /// Checks the crashes of `sim` from now on.
    fn watch(self: &Arc<Explorer>, sim: &Sim, is_nested: bool) {
        let explorer = Arc::clone(self);
        sim.observe(Box::new(move |sim, _| explorer.examine(sim, is_nested)));
    }

    fn examine(self: &Arc<Explorer>, sim: &Sim, is_nested: bool) {
        if self.objection().is_some() {
            return;
        }
        let index = self.index.lock().unwrap().clone();
        for image in sim.images(IMAGE_COUNT_MAX, sim.step_count()) {
            let Some(number) = self.note(image.hash() ^ index.live.len() as u64, is_nested) else { continue };
            let is_crashed_again = !is_nested && number.is_multiple_of(self.nested_share);
            if let Err(objection) = self.recover(&image, sim.model(), &index, is_crashed_again) {
                self.objection.lock().unwrap().get_or_insert(format!("step {}: {objection}", sim.step_count()));
            }
        }
    }

    /// Returns the number of images like `image` including this one, unless it was seen before.
    fn note(&self, image: u64, is_nested: bool) -> Option<usize> {
        let mut known = self.known.lock().unwrap();
        if known.own.contains(&image) {
            return None;
        }
        let like_it = if is_nested { &mut known.nested } else { &mut known.own };
        like_it.insert(image).then_some(like_it.len())
    }

    fn recover(
        self: &Arc<Explorer>,
        image: &Image,
        model: Model,
        index: &Index,
        is_crashed_again: bool,
    ) -> Result<(), String> {
        let sim = variant(Sim::from_image(image, model), self.canary);
        if Region::probe(&sim).map_err(|error| error.to_string())? == Found::Fresh {
            return if index.is_finished { Err("the region is gone".into()) } else { format_again(&sim) };
        }
        if is_crashed_again {
            self.watch(&sim, true);
        }
        let recovered = use_again(&sim, index).map_err(|error| format!("{image:?}: {error}"));
        sim.unobserve();
        recovered
    }

    fn objection(&self) -> Option<String> {
        self.objection.lock().unwrap().clone()
    }
}

fn format_again(sim: &Sim) -> Result<(), String> {
    let heap = Heap::format(sim, EngineNumber::HIKV, &small(), Host::default()).map_err(|error| error.to_string())?;
    heap.region().finish_format(sim).map_err(|error| error.to_string())?;
    Heap::open(sim, EngineNumber::HIKV, Host::default()).map(drop).map_err(|error| error.to_string())
}

/// Recovers, allocates before and after the sweep, and recovers once more.
fn use_again(sim: &Sim, index: &Index) -> Result<(), String> {
    let heap = open(sim, index)?;
    reserve_some(sim, &heap, index)?;
    for place in &index.live {
        match heap.sweep().mark_reached(*place) {
            Ok(true) => {}
            other => return Err(format!("{place:?} is live: {other:?}")),
        }
    }
    heap.sweep().finish(sim);
    reserve_some(sim, &heap, index)?;
    open(sim, index).map(drop)
}

fn open(sim: &Sim, index: &Index) -> Result<Heap<Host>, String> {
    let heap = Heap::open(sim, EngineNumber::HIKV, Host::default()).map_err(|error| error.to_string())?;
    if !index.generations.contains(&heap.region().generation()) {
        return Err(format!("generation {} was never set", heap.region().generation()));
    }
    if !heap.region().has_features(index.features) {
        return Err(format!("features {:#x} are forgotten", index.features));
    }
    for place in &index.live {
        heap.table().check_place(*place).map_err(|wrong| format!("{place:?}: {wrong}"))?;
    }
    let mut stale = None;
    heap.sweep().segments(&mut |at| {
        let head = sim.load(at, std::sync::atomic::Ordering::Relaxed);
        stale = stale.or((head == STALE && !index.used_segments.contains(&at.0)).then_some(at));
    });
    stale.map_or(Ok(heap), |at| Err(format!("the segment at {:#x} was never written and is not zero", at.0)))
}

/// Reserves a few places, none of which may be live.
fn reserve_some(sim: &Sim, heap: &Heap<Host>, index: &Index) -> Result<(), String> {
    let lengths = [100, 100, 40_000, 300_000];
    let reservations = lengths.map(|len_bytes| heap.reserve(sim, len_bytes, 0));
    for reservation in reservations.iter().chain([&heap.reserve_segment(sim)]) {
        match reservation {
            Ok(reservation) if index.live.contains(&reservation.place()) => {
                return Err(format!("{:?} is live and was handed out", reservation.place()));
            }
            Ok(_) | Err(HeapError::Medium(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

/// The contents of used units.
const STALE: u64 = 0x57A1_E57A_1E57_A1E5;

fn small() -> Parameters {
    Parameters { region_bytes: 2 << 20, ..PARAMETERS }
}

/// A heap on a watched medium, and the list that plays its index.
struct Script {
    sim: Sim,
    heap: Heap<Host>,
    explorer: Arc<Explorer>,
}

impl Script {
    fn format(sim: Sim, explorer: &Arc<Explorer>) -> Script {
        explorer.index.lock().unwrap().generations = vec![0];
        explorer.watch(&sim, false);
        let heap = Heap::format(&sim, EngineNumber::HIKV, &small(), Host::default()).unwrap();
        let script = Script { sim, heap, explorer: Arc::clone(explorer) };
        script.segment();
        script.heap.region().finish_format(&script.sim).unwrap();
        script.explorer.index.lock().unwrap().is_finished = true;
        script
    }

    fn reserve(&self, len_bytes: u64) -> Place {
        self.keep(self.heap.reserve(&self.sim, len_bytes, 0).unwrap().publish())
    }

    fn reserve_extent(&self, len_bytes: u64) -> Place {
        self.keep(self.heap.reserve_extent(&self.sim, len_bytes).unwrap().publish())
    }

    fn segment(&self) -> Place {
        self.keep(self.heap.reserve_segment(&self.sim).unwrap().publish())
    }

    /// Makes everything durable that needs no fence of this thread: another thread uses the reserved places.
    fn commit(&self) {
        thread::scope(|scope| {
            scope.spawn(|| self.sim.wait(self.sim.commit(Level::default()))).join().unwrap().unwrap()
        });
    }

    /// Grows the region in steps, each on a separate thread.
    fn grow_to_spare(&self, ahead_bytes: u64) {
        while self.heap.chunks().spare_bytes() < ahead_bytes {
            thread::scope(|scope| scope.spawn(|| self.heap.prepare(&self.sim, ahead_bytes)).join().unwrap());
        }
    }

    /// Keeps the place: it must survive from here on.
    fn keep(&self, place: Place) -> Place {
        self.commit();
        let mut index = self.explorer.index.lock().unwrap();
        index.live.push(place);
        if place.kind == PlaceKind::Segment {
            index.used_segments.insert(place.offset.0);
        }
        place
    }

    fn free(&self, place: Place) {
        self.explorer.index.lock().unwrap().live.retain(|live| *live != place);
        self.heap.free(&self.sim, place);
    }

    /// Writes to an extent wherever a segment might start later.
    fn soil(&self, place: Place, len_bytes: u64) {
        for at in (place.offset.0..place.offset.0 + len_bytes).filter(|at| at.is_multiple_of(SEGMENT_BYTES)) {
            self.sim.store(Offset(at), STALE, std::sync::atomic::Ordering::Relaxed);
            self.sim.flush(Offset(at).span(8));
        }
        self.sim.order();
    }

    fn set_generation(&self, generation: u16) {
        self.explorer.index.lock().unwrap().generations.push(generation);
        self.heap.region().set_generation(&self.sim, generation);
        self.commit();
        self.explorer.index.lock().unwrap().generations = vec![generation];
    }

    fn set_features(&self, features: u32) {
        self.heap.region().set_features(&self.sim, features);
        self.commit();
        self.explorer.index.lock().unwrap().features = features;
    }

    /// Joins, punches and carves runs, twice; evacuates chunks; raises the mark over returned space.
    fn run_holes(&self) {
        let extents = [130_000, 130_000, 130_000, 70_000].map(|len_bytes| self.reserve_extent(len_bytes));
        self.free(extents[1]);
        self.give_space_back();
        self.free(extents[0]);
        self.give_space_back();
        let slots: Vec<Place> = (0..12).map(|_| self.reserve(30_000)).collect();
        self.segment();
        self.free(extents[2]);
        slots[1..10].iter().for_each(|slot| self.free(*slot));
        self.evacuate();
        self.give_space_back();
        self.reserve(270_000);
        self.reserve(500_000);
        self.reserve(100);
    }

    /// Moves the contents of the emptiest chunk of slots.
    fn evacuate(&self) {
        self.heap.empty_lanes(&self.sim);
        let mut chunks = vec![];
        self.heap.evacuation().each_unowned_chunk(&mut |chunk| chunks.push(chunk));
        chunks.sort_by_key(|chunk| chunk.used_count);
        let [emptiest, others @ ..] = &chunks[..] else { panic!("there are chunks of slots") };
        assert!(self.heap.evacuation().evacuate(*emptiest) && self.heap.evacuation().fill(&self.sim, others[0]));
        let live = self.explorer.index.lock().unwrap().live.clone();
        for place in live.into_iter().filter(|place| self.heap.table().is_evacuating(*place)) {
            self.keep(self.heap.evacuation().reserve_to_move(emptiest.class).expect("there are gaps").publish());
            self.free(place);
        }
        self.heap.evacuation().stop_filling(&self.sim);
        self.heap.evacuation().stop_evacuating(&self.sim, *emptiest);
    }

    /// Sets a feature, uses slots, grows, frees and joins extents, empties chunks, uses segments in used units.
    fn run(&self) {
        self.reserve(100);
        let extents = [600_000, 600_000, 600_000].map(|len_bytes| self.reserve(len_bytes));
        extents.iter().for_each(|extent| self.soil(*extent, 600_000));
        self.set_generation(1);
        self.set_features(FEATURE_EXPIRY);
        self.free(extents[0]);
        self.free(extents[2]);
        self.free(extents[1]);
        let slots: Vec<Place> = (0..8).map(|_| self.reserve(250_000)).collect();
        for _ in 0..64 {
            self.segment();
        }
        slots[..7].iter().for_each(|slot| self.free(*slot));
        self.grow_to_spare(24 << 20);
        self.reserve(30_000);
        self.reserve(700_000);
    }
}

/// Runs a script on a medium of this model. Returns the first objection, or the message of a broken variant's panic.
fn explore(model: Model, canary: Option<Canary>, run: fn(&Script), nested_share: usize) -> Option<String> {
    let explorer = Explorer::new(canary, nested_share);
    let script = Script::format(variant(Sim::new(0, model), canary), &explorer);
    let finished = catch_unwind(AssertUnwindSafe(|| run(&script)));
    script.sim.unobserve();
    let stopped = finished.err().map(|panic| match canary {
        Some(_) => panic.downcast_ref::<String>().cloned().unwrap_or_default(),
        None => resume_unwind(panic),
    });
    let objection = explorer.objection().or(stopped);
    let known = explorer.known.lock().unwrap();
    let (own, nested) = (known.own.len(), known.nested.len());
    let is_enough = own >= OWN_COUNT_MIN && own + nested > IMAGE_COUNT_MIN;
    assert!(
        objection.is_some() || is_enough,
        "an exploration of {own} images, and {nested} of recoveries, shows nothing"
    );
    objection
}

#[test]
fn every_cached_memory_crash_is_recovered() {
    assert_eq!(explore(Model::Line, None, Script::run, NESTED_SHARE), None);
    for run in [Script::run_holes, Script::run_filled, Script::run_gathered] {
        assert_eq!(explore(Model::Line, None, run, NESTED_SHARE_OF_FEW), None);
    }
}

#[test]
fn every_crash_of_a_log_is_recovered() {
    for run in [Script::run, Script::run_holes, Script::run_filled, Script::run_gathered] {
        assert_eq!(explore(Model::Span, None, run, NESTED_SHARE), None);
    }
}

#[test]
fn broken_variants_are_caught() {
    let canaries = [
        heap::canary::CHUNK_BEFORE_MARK,
        heap::canary::GROWTH_BEFORE_SUPERBLOCK,
        heap::canary::SUPERBLOCK_COPIES_TOGETHER,
        heap::canary::FEATURE_NOT_STORED,
        heap::canary::FORMAT_MARK_EARLY,
        heap::canary::PUT_BELOW_MARK,
        heap::canary::STALE_SEGMENT_HEADER,
    ];
    for canary in canaries {
        assert!(explore(Model::Line, Some(canary), Script::run, NESTED_SHARE).is_some(), "{canary:?} went unnoticed");
    }
    let gathered = [
        heap::canary::CHUNK_NOT_EMPTY,
        heap::canary::RUN_BEFORE_ITS_END,
        heap::canary::ZEROES_BEFORE_RUN,
        heap::canary::STALE_SEGMENT_HEADER,
    ];
    let holed = [heap::canary::PUNCH_BEFORE_HEADER, heap::canary::PUNCHED_RUN_NOT_BACKED];
    let of_gathered = gathered.map(|canary| (canary, Script::run_gathered as fn(&Script)));
    let filled = [heap::canary::PUNCHED_RUN_NOT_BACKED, heap::canary::RUN_BEFORE_ITS_REST];
    let of_filled = filled.map(|canary| (canary, Script::run_filled as fn(&Script)));
    let of_holed = holed.map(|canary| (canary, Script::run_holes as fn(&Script)));
    for (canary, run) in of_gathered.into_iter().chain(of_holed).chain(of_filled) {
        let objection = explore(Model::Line, Some(canary), run, NESTED_SHARE_OF_FEW);
        assert!(objection.is_some(), "{canary:?} went unnoticed");
    }
}
