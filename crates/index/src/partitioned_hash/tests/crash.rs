//! Crashes a store after every step of one operation, while another thread reads; opens the result, and opens it
//! again.
//!
//! The explorer does the same for whole scripts on whole stores (testkit). Here it is one operation, and takes
//! seconds.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heap::FEATURE_BATCHES;
use parking_lot::Mutex;
use pmem::{Bytes, Canary, Offset};
use pmem_sim::{Image, Model, Sim, StepKind};

use super::rig::{Contents, Rig, key, mixed};

/// The number of crash images per step.
pub(super) const IMAGE_COUNT: usize = 8;
/// The number of openings that are crashed in turn, after each fence, and of images per step of each.
const OPENING_COUNT: usize = 2;
/// The number of partitions in every store here.
pub(super) const PARTITION_COUNT: u32 = 2;

/// The faults of images, each with its step.
pub(super) type Wrong = Arc<Mutex<Vec<String>>>;

/// The contents that a store may show after a crash.
type Allowed = Vec<Contents>;

/// Returns the fault of an image, if there is one.
fn fault(medium: Sim, allowed: &[Contents]) -> Option<String> {
    let Some(rig) = Rig::try_opened(medium, PARTITION_COUNT) else { return Some("does not open".to_owned()) };
    let contents = rig.contents();
    let found: Vec<_> = allowed.iter().flat_map(Contents::keys).filter_map(|&key| Some((key, rig.get(key)?))).collect();
    if !allowed.contains(&contents) || !allowed.contains(&found.into_iter().collect()) {
        return Some("shows something else".to_owned());
    }
    rig.sweep();
    rig.damage().pop()
}

/// The same, for the images that a crash of its opening leaves.
fn fault_of_opening(image: &Image, allowed: &[Contents]) -> Option<String> {
    let (medium, found, allowed) = (Sim::from_image(image, Model::Line), Wrong::default(), allowed.to_vec());
    let noted = Arc::clone(&found);
    medium.observe(Box::new(move |medium, _| {
        let images = medium.images(OPENING_COUNT, medium.step_count());
        let fault = images.iter().find_map(|image| fault(Sim::from_image(image, Model::Line), &allowed));
        noted.lock().extend(fault.map(|fault| format!("opened, crashed again, {fault}")));
    }));
    let _opened = Rig::try_opened(medium.clone(), PARTITION_COUNT);
    medium.unobserve();
    found.lock().pop()
}

/// Checks crash images of the present state. The first fault suffices.
fn examine(medium: &Sim, allowed: &[Contents], wrong: &Wrong, what: StepKind) {
    let mut wrong = wrong.lock();
    for (number, image) in medium.images(IMAGE_COUNT, medium.step_count()).iter().enumerate() {
        let is_opening_crashed = what == StepKind::Order && number < OPENING_COUNT;
        let crashed_again = || is_opening_crashed.then(|| fault_of_opening(image, allowed)).flatten();
        if wrong.is_empty() {
            let fault = fault(Sim::from_image(image, Model::Line), allowed).or_else(crashed_again);
            wrong.extend(fault.map(|fault| format!("after {what:?}, {image}: {fault}")));
        }
    }
}

/// Runs `act` with a crash after each of its steps; it changes the contents to `after`. If a reader between two
/// steps finds a change, it relies on it: from then on every image must contain the change.
pub(super) fn crashed(rig: &Arc<Rig<Sim>>, after: &Contents, act: impl FnOnce(&Rig<Sim>)) -> Vec<String> {
    let (wrong, reader) = (Wrong::default(), Arc::clone(rig));
    let (noted, mut allowed): (_, Allowed) = (Arc::clone(&wrong), vec![rig.contents(), after.clone()]);
    let watch = move |medium: &Sim, kind: StepKind| {
        if allowed.len() > 1 && reads_any_new(&reader, &allowed) {
            allowed.remove(0);
        }
        examine(medium, &allowed, &noted, kind);
    };
    rig.medium.observe(Box::new(watch));
    act(rig);
    rig.medium.unobserve();
    assert_eq!(&rig.contents(), after);
    wrong.lock().extend(wrong_now(rig, after.clone()));
    wrong.lock().clone()
}

/// Returns true if a reader finds anything that is not in the old contents.
fn reads_any_new(rig: &Rig<Sim>, allowed: &[Contents]) -> bool {
    let [before, after] = allowed else { return false };
    let mut keys = before.keys().chain(after.keys()).filter(|key| before.get(key) != after.get(key));
    keys.any(|&key| rig.get(key) != before.get(&key).copied())
}

/// Runs `work` on another thread, whose fences complete nothing of this thread, but with this thread's lane of the
/// allocator.
pub(super) fn as_another(rig: &Arc<Rig<Sim>>, work: impl FnOnce(&Rig<Sim>) + Send + 'static) {
    let (other, mut work) = (Arc::clone(rig), Some(work));
    rig.medium.observe(Box::new(move |_, _| {
        if let Some(work) = work.take() {
            work(&other);
        }
    }));
    // A step that changes nothing.
    rig.medium.store(Offset(0), rig.medium.load(Offset(0), Ordering::Acquire), Ordering::Release);
    rig.medium.unobserve();
}

/// Returns the faults of present crash images, which must show `contents` and nothing else.
pub(super) fn wrong_now(rig: &Rig<Sim>, contents: Contents) -> Vec<String> {
    let wrong = Wrong::default();
    examine(&rig.medium, &[contents], &wrong, StepKind::WaitEnd);
    wrong.lock().clone()
}

/// Returns the same store without pending changes.
pub(super) fn settled(rig: &Rig<Sim>, canary: Option<Canary>) -> Arc<Rig<Sim>> {
    let everything = rig.medium.images(2, 0).pop().unwrap();
    let sim = Sim::from_image(&everything, Model::Line);
    let rig = Rig::opened(canary.map_or(sim.clone(), |canary| sim.with_canary(canary)), PARTITION_COUNT);
    rig.sweep();
    rig.commit_all();
    Arc::new(rig)
}

/// Returns a store with these contents. Its free space holds the bytes of earlier segments and items.
pub(super) fn store(contents: &Contents, canary: Option<Canary>) -> Arc<Rig<Sim>> {
    let rig = Rig::new(PARTITION_COUNT);
    rig.heap.region().set_features(&rig.medium, FEATURE_BATCHES);
    (0..700).for_each(|number| _ = rig.put(key(mixed(number), number), number));
    rig.clear();
    rig.free_garbage();
    contents.iter().for_each(|(&key, &value)| _ = rig.put(key, value));
    settled(&rig, canary)
}
