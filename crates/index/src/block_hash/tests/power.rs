//! The power fails after every step of a write, or of what makes room for one; what is left is opened, and shows all that was there
//! before or all that was there after; what a reader has found meanwhile is there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heap::BatchWord;
use heap::layout::BATCH_WORD_COUNT;
use parking_lot::Mutex;
use pmem::{Bytes, Level, Offset, Persist};
use pmem_sim::{Model, Sim};

use super::rig::{Change, Contents, Name, Rig, bytes_of, mixed};
use crate::block_hash::Content;

/// Images of each step.
const IMAGE_COUNT: usize = 8;
/// A signature that no mixed key has.
const ALIKE: u64 = 0x1234_5678_9ABC_DEF0;

type Wrong = Arc<Mutex<Vec<String>>>;

/// What is wrong with an image, if anything.
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

/// Looks at images of now. The first fault is enough.
fn look(medium: &Sim, allowed: &[Contents], wrong: &Wrong) {
    let mut wrong = wrong.lock();
    for image in medium.images(IMAGE_COUNT, medium.step_count()) {
        if wrong.is_empty() {
            let fault = fault(Sim::from_image(&image, medium.model()), allowed);
            wrong.extend(fault.map(|fault| format!("{image}: {fault}")));
        }
    }
}

/// Does `act`, crashed after each of its steps, in which what is in `after` takes the place of what was there.
fn crashed(rig: &Arc<Rig>, after: &Contents, act: impl FnOnce(&Rig)) -> Vec<String> {
    let (wrong, reader) = (Wrong::default(), Arc::clone(rig));
    let (noted, mut allowed) = (Arc::clone(&wrong), vec![rig.contents(), after.clone()]);
    rig.medium.observe(Box::new(move |medium, _| {
        if let [before, after] = &allowed[..] {
            let mut changed = before.keys().chain(after.keys()).filter(|name| before.get(name) != after.get(name));
            if changed.any(|&name| reader.get(name) != before.get(&name).copied()) {
                allowed.remove(0);
            }
        }
        look(medium, &allowed, &noted);
    }));
    act(rig);
    rig.medium.unobserve();
    assert_eq!(&rig.contents(), after);
    look(&rig.medium, std::slice::from_ref(after), &wrong);
    wrong.lock().clone()
}

/// The same store, in which nothing is pending.
fn settled(rig: &Rig) -> Arc<Rig> {
    let everything = rig.medium.images(2, 0).pop().expect("an image");
    let rig = Rig::opened(Sim::from_image(&everything, rig.medium.model()));
    rig.sweep();
    rig.medium.wait(rig.medium.commit(Level::Strongest)).unwrap();
    Arc::new(rig)
}

/// A store of these, put in their order. Its free space holds what segments left there.
fn store<'a>(model: Model, contents: impl IntoIterator<Item = (&'a Name, &'a u32)>) -> Arc<Rig> {
    let rig = Rig::new(model);
    (0..700).for_each(|number| rig.put(mixed(number), number));
    rig.clear();
    rig.free_garbage();
    contents.into_iter().for_each(|(&name, &value)| rig.put(name, value));
    settled(&rig)
}

fn some() -> Contents {
    (0..8).map(|number| (mixed(number), number)).collect()
}

fn with(contents: &Contents, changes: &[Change]) -> Contents {
    let mut after = contents.clone();
    for (name, value) in changes {
        after.remove(name);
        after.extend(value.map(|value| (*name, value)));
    }
    after
}

const MODELS: [Model; 2] = [Model::Line, Model::Span];

#[test]
fn a_put_a_replacement_and_a_removal_are_there_or_not() {
    for model in MODELS {
        let (rig, new, old) = (store(model, &some()), mixed(1000), mixed(0));
        let inserted = with(&some(), &[(new, Some(1))]);
        assert_eq!(crashed(&rig, &inserted, |rig| rig.put(new, 1)), [""; 0], "{model:?}");
        let replaced = with(&inserted, &[(old, Some(9))]);
        assert_eq!(crashed(&rig, &replaced, |rig| rig.put(old, 9)), [""; 0], "{model:?}");
        let removed = with(&replaced, &[(old, None)]);
        assert_eq!(crashed(&rig, &removed, |rig| rig.remove(old)), [""; 0], "{model:?}");
    }
}

fn batch() -> Vec<Change> {
    let new = (1000..1010).map(|number| (mixed(number), Some(number)));
    let changed = [(mixed(0), None), (mixed(1), Some(9)), (mixed(2000), None)];
    new.chain(changed).collect()
}

#[test]
fn a_batch_is_there_whole_or_not_at_all() {
    for model in MODELS {
        let rig = store(model, &some());
        assert_eq!(crashed(&rig, &with(&some(), &batch()), |rig| rig.batch(&batch())), [""; 0], "{model:?}");
    }
}

/// Does `work` as another thread does whose fences complete nothing of this one.
fn as_another(rig: &Arc<Rig>, work: impl FnOnce(&Rig) + Send + 'static) {
    let (other, mut work) = (Arc::clone(rig), Some(work));
    rig.medium.observe(Box::new(move |_, _| work.take().into_iter().for_each(|work| work(&other))));
    // A step that changes nothing.
    rig.medium.store(Offset(0), rig.medium.load(Offset(0), Ordering::Acquire), Ordering::Release);
    rig.medium.unobserve();
}

/// The record's room is free when the batch is over: nothing that is found after a crash names it.
#[test]
fn no_word_names_the_record_of_a_batch_that_is_over() {
    let (rig, record) = (store(Model::Line, &some()), Arc::new(Mutex::new(None)));
    let noted = Arc::clone(&record);
    rig.medium.observe(Box::new(move |medium, _| {
        let words = (0..BATCH_WORD_COUNT).filter_map(|number| BatchWord::load(medium, number).unwrap());
        words.for_each(|word| *noted.lock() = Some(word.record));
    }));
    rig.batch(&batch());
    rig.medium.unobserve();
    let record = record.lock().expect("there was one");
    as_another(&rig, move |rig| {
        // SAFETY: the place is free, and nobody else allocates.
        unsafe { rig.medium.stream(record, &[&[0xA5; 64]]) };
        rig.medium.wait(rig.medium.commit(Level::Strongest)).unwrap();
    });
    let wrong = Wrong::default();
    look(&rig.medium, &[with(&some(), &batch())], &wrong);
    assert_eq!(*wrong.lock(), [""; 0]);
}

#[test]
fn a_split_loses_nothing() {
    for model in MODELS {
        let contents: Contents = (0..150).map(|number| (mixed(number), number)).collect();
        let rig = store(model, &contents);
        assert_eq!(crashed(&rig, &contents, |rig| rig.split(mixed(0).0)), [""; 0], "{model:?}");
        assert_eq!(rig.table.split_counts(), (1, 0));
    }
}

#[test]
fn a_clear_removes_everything_or_nothing() {
    for model in MODELS {
        let rig = store(model, &some());
        assert_eq!(crashed(&rig, &Contents::new(), Rig::clear), [""; 0], "{model:?}");
    }
}

/// A store with as many keys of one signature as its segment has room for; the next of them.
fn alike(model: Model) -> (Arc<Rig>, Contents, Name) {
    let (rig, mut contents) = (store(model, &some()), some());
    let mut names = (0..).map(|number| (ALIKE, number));
    let next = loop {
        let next = names.next().expect("there are many");
        if rig.try_put(next, 5).is_err() {
            break next;
        }
        contents.insert(next, 5);
    };
    (settled(&rig), contents, next)
}

#[test]
fn a_chained_segment_is_whole_before_it_is_linked_and_linked_before_it_is_used() {
    for model in MODELS {
        let (rig, mut contents, next) = alike(model);
        assert_eq!(crashed(&rig, &contents, |rig| rig.split(next.0)), [""; 0], "{model:?}");
        assert_eq!(rig.table.split_counts(), (0, 1));
        as_another(&rig, move |rig| rig.put(next, 5));
        contents.insert(next, 5);
        let wrong = Wrong::default();
        look(&rig.medium, &[contents], &wrong);
        assert_eq!(*wrong.lock(), [""; 0], "{model:?}");
    }
}

/// A store whose next key moves another one, and that key.
fn crowded(model: Model) -> (Arc<Rig>, Contents, Name) {
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

/// How often a key lies in the table.
fn count_of(rig: &Rig, name: Name) -> usize {
    let _pin = epoch::pin();
    let (images, wanted) = (rig.table.segment(name.0).images(&rig.medium), bytes_of(name));
    let slots = images.iter().flat_map(|(.., image)| image.slots());
    slots.filter(|(_, slot)| matches!(slot.content(), Content::Whole { key, .. } if key == wanted)).count()
}

/// What crashes in a move leave of which a key is there twice, and that key.
fn twins() -> Vec<(Arc<Rig>, Name)> {
    let (rig, contents, next) = crowded(Model::Line);
    let images = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    rig.medium.observe(Box::new(move |medium, _| noted.lock().extend(medium.images(4, medium.step_count()))));
    rig.put(next, 5);
    rig.medium.unobserve();
    let left = std::mem::take(&mut *images.lock());
    let opened = left.iter().map(|image| Arc::new(Rig::opened(Sim::from_image(image, Model::Line))));
    let twin = |rig: &Arc<Rig>| contents.keys().copied().find(|&name| count_of(rig, name) == 2);
    opened.filter_map(|rig| twin(&rig).map(|twin| (rig, twin))).collect()
}

#[test]
fn an_insert_that_moves_another_key_loses_neither() {
    for model in MODELS {
        let (rig, contents, next) = crowded(model);
        let after = with(&contents, &[(next, Some(5))]);
        assert_eq!(crashed(&rig, &after, |rig| rig.put(next, 5)), [""; 0], "{model:?}");
        assert_eq!(rig.table.move_count(), 1);
    }
}

/// A key that is there twice is there once, durably, before it is written; else what was written over would be back.
#[test]
fn of_twins_one_is_gone_before_their_key_is_written() {
    let twins = twins();
    assert!(!twins.is_empty(), "no crash leaves any");
    for (rig, twin) in twins.into_iter().take(4) {
        let replaced = with(&rig.contents(), &[(twin, Some(9))]);
        assert_eq!(crashed(&rig, &replaced, |rig| rig.put(twin, 9)), [""; 0]);
        let removed = with(&replaced, &[(twin, None)]);
        assert_eq!(crashed(&rig, &removed, |rig| rig.remove(twin)), [""; 0]);
    }
}

#[test]
fn a_sweep_leaves_one_of_twins_whenever_it_is_cut_off() {
    for (rig, twin) in twins().into_iter().take(4) {
        let contents = rig.contents();
        assert_eq!(crashed(&rig, &contents, Rig::sweep), [""; 0]);
        assert_eq!(count_of(&rig, twin), 1);
        rig.remove(twin);
        let wrong = Wrong::default();
        look(&rig.medium, &[with(&contents, &[(twin, None)])], &wrong);
        assert_eq!(*wrong.lock(), [""; 0]);
    }
}
