//! Every engine on a log that fails at every moment of every operation. Acknowledged data is read as before, and is
//! present when the store is opened again. Any effect of the failed operation that a read returns is present then as
//! well.

mod kinds;
mod stop;

use std::collections::BTreeMap;

use engine::prelude::*;
use engine::{BatchOp, Condition, Cursor, Decision, Error, Expiry, Progress, Required};
use pmem::{Canary, MediumError};
use pmem_sim::{Crashable, DiskImage, Fault, Model, SimDisk};
use testkit::Extent;

use kinds::{Kind, OfHiKv, OfInk, OfPmekv, OfRewoHash};
use stop::{REFUSED, created, opened, stopped_at};

/// Keys that a store holds before a trial.
const KEY_COUNT: u32 = 60;

/// Crash images that are opened after each failure.
const IMAGE_COUNT: usize = 4;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// A key and its value after the operation; `None` if it is deleted.
type Outcome = (Vec<u8>, Option<Vec<u8>>);

type Operate = dyn Fn(&dyn Engine) -> Result<(), Error>;

/// An operation and its effect on keys.
struct Trial {
    name: &'static str,
    /// True if the operation is atomic.
    is_whole: bool,
    outcomes: Vec<Outcome>,
    operate: Box<Operate>,
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Returns a value of one of three sizes: one that fits in a slot of Rewo-Hash, a small record, and a record that is
/// written before any lock is taken.
fn value(number: u32, version: u32) -> Vec<u8> {
    let len_bytes = [3, 100, 3000][number as usize % 3];
    format!("{version}{number}").into_bytes().into_iter().cycle().take(len_bytes).collect()
}

fn put(number: u32) -> Outcome {
    (key(number), Some(value(number, 2)))
}

fn delete(number: u32) -> Outcome {
    (key(number), None)
}

fn batch_op((key, value): &Outcome) -> BatchOp<'_> {
    match value {
        Some(value) => BatchOp::Put { key, value },
        None => BatchOp::Delete { key },
    }
}

fn single(name: &'static str, outcome: Outcome, operate: fn(&dyn Engine, &Outcome) -> Result<(), Error>) -> Trial {
    let outcomes = vec![outcome.clone()];
    Trial { name, is_whole: true, outcomes, operate: Box::new(move |store| operate(store, &outcome)) }
}

fn plain(store: &dyn Engine, (key, value): &Outcome) -> Result<(), Error> {
    match value {
        Some(value) => store.put(key, value),
        None => store.delete(key).map(drop),
    }
}

fn update(store: &dyn Engine, (key, value): &Outcome) -> Result<(), Error> {
    let decision = || value.as_ref().map_or(Decision::Delete, |value| Decision::Put(value.into()));
    store.update(key, &mut |_| decision()).map(drop)
}

fn put_until(store: &dyn Engine, (key, value): &Outcome) -> Result<(), Error> {
    store.put_until(key, value.as_ref().expect("it is a put"), Expiry::at_ms(1 << 50))
}

fn several(
    name: &'static str,
    is_whole: bool,
    outcomes: Vec<Outcome>,
    operate: fn(&dyn Engine, &[Outcome]) -> Result<(), Error>,
) -> Trial {
    let all = outcomes.clone();
    Trial { name, is_whole, outcomes, operate: Box::new(move |store| operate(store, &all)) }
}

fn batch(store: &dyn Engine, outcomes: &[Outcome]) -> Result<(), Error> {
    store.write_batch(&outcomes.iter().map(batch_op).collect::<Vec<_>>())
}

fn batch_if(store: &dyn Engine, outcomes: &[Outcome]) -> Result<(), Error> {
    let (held, absent, mut version) = (key(0), key(999), None);
    store.get(&held, &mut |witness, _, value| version = Some(witness.version(&held, value)))?;
    let conditions =
        [Condition { key: &held, required: version.into() }, Condition { key: &absent, required: Required::Absent }];
    store.write_batch_if(&conditions, &outcomes.iter().map(batch_op).collect::<Vec<_>>())
}

fn multi_put(store: &dyn Engine, outcomes: &[Outcome]) -> Result<(), Error> {
    let items: Vec<_> =
        outcomes.iter().map(|(key, value)| (&key[..], &value.as_ref().expect("it is a put")[..])).collect();
    store.multi_put(&items)
}

fn multi_delete(store: &dyn Engine, outcomes: &[Outcome]) -> Result<(), Error> {
    let keys: Vec<_> = outcomes.iter().map(|(key, _)| &key[..]).collect();
    let mut first = Ok(());
    store.multi_delete_each(&keys, &mut |_, deleted| {
        first = std::mem::replace(&mut first, Ok(())).and(deleted.map(drop))
    });
    first
}

fn one_by_one(store: &dyn Engine, outcomes: &[Outcome]) -> Result<(), Error> {
    outcomes.iter().try_for_each(|outcome| plain(store, outcome))
}

fn trials(held: &Contents) -> Vec<Trial> {
    let cleared = held.keys().map(|key| (key.clone(), None)).collect();
    let several_changes = vec![put(1), put(2), delete(3), put(101), put(102), delete(4), put(103)];
    vec![
        single("a new small item", put(102), plain),
        single("a new item", put(100), plain),
        single("a new large item", put(101), plain),
        single("a small item replaced", put(6), plain),
        single("an item replaced", put(7), plain),
        single("a large item replaced", put(8), plain),
        single("a small item deleted", delete(6), plain),
        single("an item deleted", delete(7), plain),
        single("an update", put(7), update),
        single("an update of nothing", put(100), update),
        single("an update that deletes", delete(7), update),
        single("an item that expires", put(7), put_until),
        several("a batch", true, several_changes.clone(), batch),
        several("a batch with conditions", true, several_changes, batch_if),
        several("a large batch", true, (100..130).map(put).collect(), batch),
        several("puts of several", false, (3..12).chain(100..104).map(put).collect(), multi_put),
        several("deletes of several", false, (3..12).map(delete).collect(), multi_delete),
        several("a clear", true, cleared, |store, _| store.clear()),
        several("many puts", false, (1000..1020).map(put).collect(), one_by_one),
        several("background work", false, Vec::new(), |store, _| background(store)),
    ]
}

fn background(store: &dyn Engine) -> Result<(), Error> {
    for _ in 0..100 {
        if store.step()? != Progress::More {
            break;
        }
    }
    Ok(())
}

/// A store that was killed, and its contents.
struct Filled {
    image: DiskImage,
    held: Contents,
}

fn filled<K: Kind>() -> Filled {
    let disk = SimDisk::new(0, Model::Disk);
    let store = K::format(created(&disk));
    let held: Contents = (0..KEY_COUNT).map(|number| (key(number), value(number, 1))).collect();
    held.iter().for_each(|(key, value)| store.put(key, value).unwrap());
    disk.fail(Some(Fault::Dead(0)));
    drop(store);
    disk.fail(None);
    Filled { image: disk.killed().unwrap_or_else(|| disk.images(1, 0).remove(0)), held }
}

/// Returns the key's value; the outer `None` if the read failed because the value is not known to be durable.
fn read(store: &dyn Engine, key: &[u8]) -> Option<Option<Vec<u8>>> {
    let mut found = None;
    match store.get(key, &mut |_, _, value| found = Some(value.to_vec())) {
        Ok(_) => Some(found),
        Err(Error::Medium(MediumError::Poisoned { .. })) => None,
        Err(error) => panic!("{error}"),
    }
}

fn walked(store: &dyn Engine) -> Option<Contents> {
    let (mut cursor, mut all) = (Cursor::default(), Contents::new());
    while !cursor.is_done() {
        let mut show = |key: &[u8], value: &[u8], _| drop(all.insert(key.to_vec(), value.to_vec()));
        cursor = store.walk(cursor, &mut show).ok()?;
    }
    Some(all)
}

/// The description of a violation.
type Wrong = String;

/// Compares a store whose log failed during the trial with the contents before, and with the contents after the store
/// is opened again.
struct Judge<'a> {
    trial: &'a Trial,
    held: &'a Contents,
    is_done: bool,
}

impl Judge<'_> {
    fn outcome(&self, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.trial.outcomes.iter().find(|(changed, _)| changed == key).map(|(_, value)| value)
    }

    fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.held.keys().chain(self.trial.outcomes.iter().map(|(key, _)| key))
    }

    /// Judges reads of the failed store and returns the values that they show.
    fn judge_reads(&self, store: &dyn Engine) -> Result<Contents, Wrong> {
        let (mut seen, mut is_new, mut is_old) = (Contents::new(), false, false);
        for key in self.keys() {
            let (before, found) = (self.held.get(key).cloned(), read(store, key));
            let name = String::from_utf8_lossy(key);
            match (self.outcome(key), &found) {
                (None, found) if found.as_ref() != Some(&before) => {
                    return Err(format!(
                        "{name}, which nothing changed, is {}",
                        if found.is_some() { "different" } else { "refused" }
                    ));
                }
                (Some(new), found) if self.is_done && found.as_ref() != Some(new) => {
                    return Err(format!("{name} was acknowledged, but a read does not return it"));
                }
                (Some(new), Some(found)) if found == new && *new != before => is_new = true,
                (Some(_), Some(found)) if *found == before => is_old = true,
                (Some(_), Some(_)) => return Err(format!("{name} has a value that it never had")),
                _ => {}
            }
            seen.extend(found.flatten().map(|value| (key.clone(), value)));
        }
        if self.trial.is_whole && is_new && is_old { Err("reads return a part of it".into()) } else { Ok(seen) }
    }

    /// Checks that values that were read are present again, and so are all keys that the trial did not change. An
    /// atomic trial is present completely or not at all.
    fn judge_again(&self, seen: &Contents, unread: &[Vec<u8>], again: &Contents) -> Result<(), Wrong> {
        let changes = self.trial.outcomes.iter().filter(|(key, new)| self.held.get(key) != new.as_ref());
        let (new, old): (Vec<_>, Vec<_>) = changes.partition(|(key, new)| again.get(key) == new.as_ref());
        if self.trial.is_whole && !new.is_empty() && !old.is_empty() {
            return Err("a part of it is present after reopening".into());
        }
        for key in self.keys() {
            let (before, now) = (self.held.get(key), again.get(key));
            let is_allowed = match self.outcome(key) {
                None => now == before,
                Some(new) if self.is_done => now == new.as_ref(),
                Some(_) if unread.contains(key) => true,
                // A new value that a read found stays; an operation that failed may have taken effect nevertheless.
                Some(new) => now == seen.get(key) || seen.get(key) == before && now == new.as_ref(),
            };
            if !is_allowed {
                return Err(format!("{} is different after reopening", String::from_utf8_lossy(key)));
            }
        }
        Ok(())
    }

    fn judge<K: Kind>(&self, store: K::Store, disk: &SimDisk) -> Result<(), Wrong> {
        let seen = self.judge_reads(&store)?;
        let unread: Vec<_> = self.keys().filter(|key| read(&store, key).is_none()).cloned().collect();
        if let Some(walked) = walked(&store)
            && walked.iter().any(|(key, value)| !unread.contains(key) && seen.get(key) != Some(value))
        {
            return Err("a walk shows an item that no read returns".into());
        }
        disk.fail(Some(Fault::Dead(0)));
        drop(store);
        disk.fail(None);
        for image in disk.images(IMAGE_COUNT, 7) {
            let store = K::open(opened(&image, None).1);
            let again = walked(&store).expect("the disk works again");
            self.judge_again(&seen, &unread, &again)?;
        }
        Ok(())
    }
}

/// Fails the log at each moment of these trials, of every third in a sample without a broken variant; returns the
/// number of moments and the violations.
fn judge_all<K: Kind>(filled: &Filled, trials: &[Trial], canary: Option<Canary>) -> (u64, Vec<Wrong>) {
    let (mut moment_count, mut wrong) = (0, Vec::new());
    let all = trials.iter().flat_map(|trial| [(trial, true), (trial, false)]);
    let step = if canary.is_none() { Extent::pick(3, 1) } else { 1 };
    for (trial, is_swept) in all.step_by(step) {
        for refused in REFUSED {
            for at in 1.. {
                let (disk, medium) = opened(&filled.image, canary);
                let store = K::open(medium);
                if is_swept {
                    background(&store).unwrap();
                }
                let (done, is_met) = stopped_at(K::medium(&store), &disk, (at, refused), || (trial.operate)(&store));
                if !is_met {
                    done.unwrap();
                    break;
                }
                moment_count += 1;
                let judge = Judge { trial, held: &filled.held, is_done: done.is_ok() };
                if let Err(what) = judge.judge::<K>(store, &disk) {
                    wrong.push(format!("{}, moment {at} (swept: {is_swept}, refused: {refused}): {what}", trial.name));
                }
            }
        }
    }
    (moment_count, wrong)
}

fn passes<K: Kind>() {
    let filled = filled::<K>();
    let (moment_count, wrong) = judge_all::<K>(&filled, &trials(&filled.held), None);
    let shown = wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {moment_count} are wrong:\n{shown}", wrong.len());
    assert!(moment_count > Extent::pick(100, 400), "{moment_count} moments");
}

/// Batches are enough to show each fault.
fn caught<K: Kind>(canary: Canary) {
    let filled = filled::<K>();
    let batches: Vec<_> = trials(&filled.held).into_iter().filter(|trial| trial.name == "a batch").collect();
    assert!(!judge_all::<K>(&filled, &batches, Some(canary)).1.is_empty(), "{canary:?} was not caught");
}

#[test]
fn refusals_that_are_ignored_are_caught() {
    caught::<OfHiKv>(index::canary::FAILED_BATCH_FINISHED);
    caught::<OfRewoHash>(index::block_hash::canary::REFUSED_BATCH_CARRIED_OUT);
}

#[test]
fn hikv_shows_nothing_refused() {
    passes::<OfHiKv>();
}

#[test]
fn rewo_hash_shows_nothing_refused() {
    passes::<OfRewoHash>();
}

#[test]
fn pmekv_shows_nothing_refused() {
    passes::<OfPmekv>();
}

#[test]
fn ink_shows_nothing_refused() {
    passes::<OfInk>();
}
