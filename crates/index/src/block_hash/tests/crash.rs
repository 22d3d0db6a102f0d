//! Crashes a store after every step of an operation, while another thread reads, and opens the result.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heap::BatchWord;
use heap::layout::BATCH_WORD_COUNT;
use parking_lot::Mutex;
use pmem::{Bytes, Level, Offset, Persist};
use pmem_sim::{Model, Sim};

use super::rig::{Change, Contents, Name, Rig, mixed};

/// The number of crash images per step.
const IMAGE_COUNT: usize = 8;

pub(super) type Wrong = Arc<Mutex<Vec<String>>>;

/// Returns the fault of an image, if there is one.
fn fault(medium: Sim, allowed: &[Contents]) -> Option<String> {
    let Some(rig) = Rig::try_opened(medium) else { return Some("does not open".to_owned()) };
    let contents = rig.contents();
    let found: Contents =
        allowed.iter().flat_map(Contents::keys).filter_map(|&name| Some((name, rig.get(name)?))).collect();
    if !allowed.contains(&contents) || !allowed.contains(&found) {
        return Some("shows something else".to_owned());
    }
    rig.sweep();
    if rig.contents() != contents {
        return Some("shows something else when it was swept".to_owned());
    }
    rig.damage().pop().map(str::to_owned)
}

/// Checks crash images of the present state. The first fault suffices.
pub(super) fn examine(medium: &Sim, allowed: &[Contents], wrong: &Wrong) {
    let mut wrong = wrong.lock();
    for image in medium.images(IMAGE_COUNT, medium.step_count()) {
        if wrong.is_empty() {
            let fault = fault(Sim::from_image(&image, medium.model()), allowed);
            wrong.extend(fault.map(|fault| format!("{image}: {fault}")));
        }
    }
}

/// Runs `act` with a crash after each of its steps; it changes the contents to `after`.
pub(super) fn crashed(rig: &Arc<Rig>, after: &Contents, act: impl FnOnce(&Rig)) -> Vec<String> {
    let (wrong, reader) = (Wrong::default(), Arc::clone(rig));
    let (noted, mut allowed) = (Arc::clone(&wrong), vec![rig.contents(), after.clone()]);
    rig.medium.observe(Box::new(move |medium, _| {
        if let [before, after] = &allowed[..] {
            let mut changed = before.keys().chain(after.keys()).filter(|name| before.get(name) != after.get(name));
            if changed.any(|&name| reader.get(name) != before.get(&name).copied()) {
                allowed.remove(0);
            }
        }
        examine(medium, &allowed, &noted);
    }));
    act(rig);
    rig.medium.unobserve();
    assert_eq!(&rig.contents(), after);
    examine(&rig.medium, std::slice::from_ref(after), &wrong);
    wrong.lock().clone()
}

/// Returns the same store without pending changes.
pub(super) fn settled(rig: &Rig) -> Arc<Rig> {
    let everything = rig.medium.images(2, 0).pop().expect("an image");
    let rig = Rig::opened(Sim::from_image(&everything, rig.medium.model()));
    rig.sweep();
    rig.medium.wait(rig.medium.commit(Level::Strongest)).unwrap();
    Arc::new(rig)
}

/// Returns a store with these contents, put in their order. Its free space holds the bytes of earlier segments.
pub(super) fn store<'a>(model: Model, contents: impl IntoIterator<Item = (&'a Name, &'a u32)>) -> Arc<Rig> {
    let rig = Rig::new(model);
    (0..700).for_each(|number| rig.put(mixed(number), number));
    rig.clear();
    rig.free_garbage();
    contents.into_iter().for_each(|(&name, &value)| rig.put(name, value));
    settled(&rig)
}

pub(super) fn some() -> Contents {
    (0..8).map(|number| (mixed(number), number)).collect()
}

pub(super) fn with(contents: &Contents, changes: &[Change]) -> Contents {
    let mut after = contents.clone();
    for (name, value) in changes {
        after.remove(name);
        after.extend(value.map(|value| (*name, value)));
    }
    after
}

/// Runs `work` on another thread, whose fences complete nothing of this one.
pub(super) fn as_another(rig: &Arc<Rig>, work: impl FnOnce(&Rig) + Send + 'static) {
    let (other, mut work) = (Arc::clone(rig), Some(work));
    rig.medium.observe(Box::new(move |_, _| work.take().into_iter().for_each(|work| work(&other))));
    // A step that changes nothing.
    rig.medium.store(Offset(0), rig.medium.load(Offset(0), Ordering::Acquire), Ordering::Release);
    rig.medium.unobserve();
}

/// Acts as the next owner of a free place.
pub(super) fn use_again(rig: &Arc<Rig>, place: Offset) {
    as_another(rig, move |rig| {
        // SAFETY: the place is free, and no other thread allocates.
        unsafe { rig.medium.stream(place, &[&[0xA5; 64]]) };
        rig.medium.wait(rig.medium.commit(Level::Strongest)).unwrap();
    });
}

/// Returns a store in which inserting the returned key moves another one.
pub(super) fn crowded(model: Model) -> (Arc<Rig>, Contents, Name) {
    let probe = Rig::new(model);
    let last = (0..).find(|&number| {
        probe.put(mixed(number), number);
        probe.table.move_count() == 1
    });
    let last = last.expect("some key moves another");
    let put: Vec<_> = (0..last).map(|number| (mixed(number), number)).collect();
    let rig = store(model, put.iter().map(|(name, value)| (name, value)));
    (rig, put.into_iter().collect(), mixed(last))
}

/// Returns the record that the batch word names, if there is one.
pub(super) fn named_record(medium: &Sim) -> Option<Offset> {
    (0..BATCH_WORD_COUNT).find_map(|number| BatchWord::load(medium, number).unwrap()).map(|word| word.record)
}
