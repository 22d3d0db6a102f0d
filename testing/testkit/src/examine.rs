//! The examination of one crash image: the store's own code recovers it; the result is compared with the oracle, used,
//! and crashed again.

use std::any::Any;
use std::collections::{BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use pmem_sim::{CrashImage, Crashable, Model};

use crate::at_snapshot::Taken;
use crate::explore::{Counts, End, Settings};
use crate::oracle::{Oracle, State};
use crate::read::{check, check_unmended, read, read_uncounted, refused};
use crate::reservoir::Reservoir;
use crate::script::Op;
use crate::subject::{Contents, Failure, Subject};
use crate::violation::Problem;

/// A value that is put into every recovered store and deleted again, to show that the store is usable.
const PROBE_VALUE: &[u8] = b"after the crash";

/// One image out of this many is recovered a second time and cleared immediately.
const IMAGES_PER_CLEAR: u64 = 4;

/// Crash images examined after each operation on a recovered store: one in which nothing pending survives, and one in
/// which everything does.
const IMAGES_AFTER_USE_MAX: usize = 2;

/// An image of the medium of `S`.
pub(crate) type ImageOf<S> = <<S as Subject>::Medium as Crashable>::Image;

/// A problem and the crashes that led to it, outermost first.
pub(crate) struct Fault {
    pub(crate) images: Vec<String>,
    pub(crate) problem: Problem,
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        Fault { images: Vec::new(), problem }
    }
}

impl Fault {
    fn behind(mut self, image: &impl CrashImage) -> Fault {
        self.images.insert(0, image.to_string());
        self
    }
}

/// The nesting depth of a crash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Depth {
    /// A crash of the script.
    Script,
    /// A crash of a recovery, or of a recovered store.
    Recovery,
}

impl Depth {
    /// Returns the key that is put and deleted again in every store recovered at this depth. No script uses these keys.
    const fn probe_key(self) -> &'static [u8] {
        match self {
            Depth::Script => b"\0probe",
            Depth::Recovery => b"\0probe again",
        }
    }
}

/// Examines images, each of them once per oracle.
pub(crate) struct Examiner {
    settings: Settings,
    model: Model,
    /// The keys to look up.
    keys: BTreeSet<Vec<u8>>,
    known: HashSet<(u64, u64, Depth)>,
    pub(crate) counts: Counts,
}

impl Examiner {
    pub(crate) fn new(settings: Settings, model: Model, mut keys: BTreeSet<Vec<u8>>) -> Examiner {
        let probes = [Depth::Script, Depth::Recovery].map(|depth| depth.probe_key().to_vec());
        assert!(probes.into_iter().all(|probe| keys.insert(probe)), "a script uses a probe's key");
        Examiner { settings, model, keys, known: HashSet::new(), counts: Counts::default() }
    }

    /// Returns the keys that readers look up.
    pub(crate) fn keys(&self) -> &BTreeSet<Vec<u8>> {
        &self.keys
    }

    /// Returns true if this image was already examined against this oracle.
    pub(crate) fn knows(&self, image: &impl CrashImage, oracle: &Oracle) -> bool {
        self.known.contains(&(image.hash(), oracle.fingerprint(), Depth::Script))
    }

    /// Examines an image of the script's own medium.
    pub(crate) fn examine<S: Subject>(&mut self, image: &ImageOf<S>, oracle: &Oracle) -> Result<(), Fault> {
        self.examine_at::<S>(image, oracle, Depth::Script)
    }

    fn examine_at<S: Subject>(&mut self, image: &ImageOf<S>, oracle: &Oracle, depth: Depth) -> Result<(), Fault> {
        if !self.known.insert((image.hash(), oracle.fingerprint(), depth)) {
            return Ok(());
        }
        match depth {
            Depth::Script => self.counts.images += 1,
            Depth::Recovery => self.counts.nested_images += 1,
        }
        let examined = catch_unwind(AssertUnwindSafe(|| self.recover_and_use::<S>(image, oracle, depth)));
        examined.unwrap_or_else(|panic| Err(panicked(&*panic).into())).map_err(|fault| fault.behind(image))
    }

    fn recover_and_use<S: Subject>(&mut self, image: &ImageOf<S>, oracle: &Oracle, depth: Depth) -> Result<(), Fault> {
        let sim: S::Medium = medium_on(image, self.model, &self.settings);
        let (opened, crashes) = self.recording(&sim, depth, || S::open(sim.clone()));
        let store = match opened {
            Ok(store) => store,
            Err(Failure::Unfinished) => {
                oracle.judge(&None)?;
                self.nested::<S>(&crashes, oracle, depth)?;
                return self.format_again::<S>(&sim, depth);
            }
            Err(failure) => return Err(Problem::DoesNotOpen(failure).into()),
        };
        let contents = read(&store, &self.keys)?;
        let found = Some(contents);
        oracle.judge(&found)?;
        if depth == Depth::Script {
            self.check_read_only::<S>(image, &found).map_err(|problem| Problem::ToRead(Box::new(problem)))?;
        }
        self.nested::<S>(&crashes, oracle, depth)?;
        self.use_it(&store, &sim, &found, depth)?;
        let is_cleared = depth == Depth::Script && self.counts.images.is_multiple_of(IMAGES_PER_CLEAR);
        if is_cleared { self.recover_and_clear::<S>(image, found) } else { Ok(()) }
    }

    /// Opens the same image for reading only: the store must show the contents that opening for writing recovered.
    fn check_read_only<S: Subject>(&self, image: &ImageOf<S>, found: &State) -> Result<(), Problem> {
        let sim: S::Medium = medium_on(image, self.model, &self.settings);
        sim.freeze();
        match S::open_to_read(sim) {
            None => Ok(()),
            Some(opened) => {
                let store = opened.map_err(Problem::DoesNotOpen)?;
                Oracle::exactly(found.clone()).judge(&Some(read_uncounted(&store, &self.keys)?))?;
                check_unmended(&store)
            }
        }
    }

    /// Recovers the image again and clears the store, which must be atomic in a crash; then closes and reopens it. The
    /// store is read before the clear only if the crash was a kill.
    fn recover_and_clear<S: Subject>(&mut self, image: &ImageOf<S>, found: State) -> Result<(), Fault> {
        let sim: S::Medium = medium_on(image, self.model, &self.settings);
        let store = S::open(sim.clone()).map_err(Problem::DoesNotOpen)?;
        if self.settings.end == End::Kill {
            // A kill leaves data that is not durable yet; reading makes it durable, so that the clear begins with
            // exactly `found`.
            self.expect(&store, &found)?;
        }
        let mut oracle = Oracle::exactly(found);
        oracle.begin(&Op::Clear);
        let (cleared, crashes) = self.recording(&sim, Depth::Script, || store.clear());
        match cleared {
            Err(Failure::Full) => oracle.refuse(),
            cleared => {
                cleared.map_err(refused("clear after recovery"))?;
                self.nested::<S>(&crashes, &oracle, Depth::Script)?;
                oracle.acknowledge();
            }
        }
        let left = oracle.acknowledged().clone();
        self.use_it(&store, &sim, &left, Depth::Script)?;
        store.close().map_err(refused("close"))?;
        let reopened = S::open(sim).map_err(Problem::DoesNotOpen)?;
        self.expect(&reopened, &left)?;
        Ok(check(&reopened)?)
    }

    /// Formats the medium again after an unfinished format. This must succeed, and may crash in turn.
    fn format_again<S: Subject>(&mut self, sim: &S::Medium, depth: Depth) -> Result<(), Fault> {
        let (formatted, crashes) = self.recording(sim, depth, || S::format(sim.clone()));
        let store = formatted.map_err(refused("format over an unfinished format"))?;
        let mut oracle = Oracle::exactly(None);
        oracle.begin(&Op::Format);
        self.nested::<S>(&crashes, &oracle, depth)?;
        self.use_it(&store, sim, &Some(Contents::new()), depth)
    }

    /// Uses a recovered store. The store was read, so a further crash may change nothing. A put and a delete must
    /// succeed, nothing may be damaged, and no space may leak.
    fn use_it<S: Subject>(&mut self, store: &S, sim: &S::Medium, found: &State, depth: Depth) -> Result<(), Fault> {
        self.crash_now::<S>(sim, found, depth)?;
        check(store)?;
        self.snapshot_of::<S>(store, found, depth)?;
        let probe = depth.probe_key();
        store.put(probe, PROBE_VALUE).map_err(refused("put after recovery"))?;
        let with_probe = found.clone().map(|mut contents| {
            contents.insert(probe.to_vec(), PROBE_VALUE.to_vec());
            contents
        });
        self.expect(store, &with_probe)?;
        self.crash_now::<S>(sim, &with_probe, depth)?;
        if !store.delete(probe).map_err(refused("delete after recovery"))? {
            return Err(Problem::Answer("delete did not find the key that was put after recovery".into()).into());
        }
        self.crash_now::<S>(sim, found, depth)?;
        store.settle().map_err(refused("settle"))?;
        self.expect(store, found)?;
        check(store)?;
        account(store, found.as_ref().unwrap_or(&Contents::new()))?;
        self.crash_now::<S>(sim, found, depth)
    }

    /// Checks that a snapshot of a recovered store shows everything that was recovered.
    fn snapshot_of<S: Subject>(&self, store: &S, found: &State, depth: Depth) -> Result<(), Problem> {
        if !store.has_snapshots() || depth == Depth::Recovery {
            return Ok(());
        }
        let number = store.snapshot().map_err(refused("snapshot after recovery"))?;
        let taken = Taken { number, contents: Arc::new(found.clone().unwrap_or_default()) };
        let compared = taken.compare(store, &self.keys, true);
        store.release(number);
        compared
    }

    fn expect<S: Subject>(&self, store: &S, state: &State) -> Result<(), Problem> {
        Oracle::exactly(state.clone()).judge(&Some(read(store, &self.keys)?))
    }

    /// Crashes the recovered store at rest: recovery must return exactly its contents.
    fn crash_now<S: Subject>(&mut self, sim: &S::Medium, state: &State, depth: Depth) -> Result<(), Fault> {
        if depth == Depth::Recovery {
            return Ok(());
        }
        let images = sim.images(IMAGES_AFTER_USE_MAX, 0);
        self.nested::<S>(&images, &Oracle::exactly(state.clone()), depth)
    }

    fn nested<S: Subject>(&mut self, images: &[ImageOf<S>], oracle: &Oracle, depth: Depth) -> Result<(), Fault> {
        debug_assert!(depth == Depth::Script || images.is_empty(), "crashes nest once");
        images.iter().try_for_each(|image| self.examine_at::<S>(image, oracle, Depth::Recovery))
    }

    /// Runs `act` on `sim` and samples the crashes at its steps.
    fn recording<C: Crashable, T>(&self, sim: &C, depth: Depth, act: impl FnOnce() -> T) -> (T, Vec<C::Image>) {
        if depth == Depth::Recovery {
            return (act(), Vec::new());
        }
        let Settings { nested_images_max, images_per_step_max, .. } = self.settings;
        let seed = self.counts.images;
        let reservoir = Arc::new(Mutex::new(Reservoir::new(nested_images_max, seed)));
        let recorder = Arc::clone(&reservoir);
        sim.observe(Box::new(move |sim, _| {
            let mut reservoir = recorder.lock();
            sim.images(images_per_step_max, seed).into_iter().for_each(|image| reservoir.offer(image.hash(), image));
        }));
        let done = act();
        sim.unobserve();
        let crashes = reservoir.lock().take();
        (done, crashes)
    }
}

fn medium_on<C: Crashable>(image: &C::Image, model: Model, settings: &Settings) -> C {
    let sim = C::from_image(image, model);
    settings.canary.map_or(sim.clone(), |canary| sim.with_canary(canary))
}

/// Checks that the space in use is the space that the contents need.
pub(crate) fn account<S: Subject>(store: &S, contents: &Contents) -> Result<(), Problem> {
    match store.space(contents) {
        Some(space) if space.live_bytes != space.needed_bytes => Err(Problem::Leak(space)),
        _ => Ok(()),
    }
}

/// Returns the message of a caught panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Problem {
    let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    Problem::Panicked(message.unwrap_or("without a message").to_owned())
}
