//! Reads the complete contents of a store in every way that a store offers, and checks that they agree.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use crate::rival::is_rival;
use crate::subject::{Contents, Direction, Failure, Operations};
use crate::violation::Problem;

/// Turns a store's refusal into a problem.
pub(crate) fn refused(operation: &'static str) -> impl Fn(Failure) -> Problem {
    move |failure| Problem::Refused { operation, failure }
}

/// Returns the contents of `store`. Listing, counting, lookups and scans must agree on all keys, those in `keys`
/// included.
pub(crate) fn read(store: &(impl Operations + ?Sized), keys: &BTreeSet<Vec<u8>>) -> Result<Contents, Problem> {
    let contents = read_uncounted(store, keys)?;
    let (said, listed) = (store.len().map_err(refused("len"))?, contents.len() as u64);
    if said == listed { Ok(contents) } else { Err(Problem::Length { said, listed }) }
}

/// Like [`read`], but without the count: a store opened for reading does not reap expired keys, and counts them.
///
/// The first scan comes before anything else, so that a recovered store's ordered index is built from the state that
/// recovery left.
pub(crate) fn read_uncounted(
    store: &(impl Operations + ?Sized),
    keys: &BTreeSet<Vec<u8>>,
) -> Result<Contents, Problem> {
    let forward = scan(store, Direction::Forward)?;
    let contents = list(store)?;
    for key in keys.iter().chain(contents.keys()) {
        if store.get(key).map_err(refused("get"))?.as_ref() != contents.get(key) {
            return Err(Problem::Lookup(key.clone()));
        }
    }
    compare(forward, &contents, Direction::Forward)?;
    compare(scan(store, Direction::Backward)?, &contents, Direction::Backward)?;
    Ok(contents)
}

/// Checks that scans show `contents`. The second writer's key is ignored.
pub(crate) fn in_order(store: &(impl Operations + ?Sized), contents: &Contents) -> Result<(), Problem> {
    let shown = |direction| scan(store, direction).map(|shown| shown.map(without_rival));
    let scan = |direction| compare(shown(direction)?, contents, direction);
    [Direction::Forward, Direction::Backward].into_iter().try_for_each(scan)
}

/// Keys with their values from a scan; `None` from a store without order.
type Scanned = Option<Vec<(Vec<u8>, Vec<u8>)>>;

fn without_rival(mut items: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    items.retain(|(key, _)| !is_rival(key));
    items
}

fn scan(store: &(impl Operations + ?Sized), direction: Direction) -> Result<Scanned, Problem> {
    let mut items = Vec::new();
    let mut push = |key: &[u8], value: &[u8]| {
        items.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    let is_ordered = store.scan(Bound::Unbounded, direction, &mut push).map_err(refused("scan"))?;
    Ok(is_ordered.then_some(items))
}

/// Returns the items of a scan; `None` from a store without order.
pub(crate) fn scanned(store: &(impl Operations + ?Sized)) -> Result<Option<Contents>, Problem> {
    Ok(scan(store, Direction::Forward)?.map(|items| items.into_iter().collect()))
}

/// Checks that a scan shows `contents`.
fn compare(scanned: Scanned, contents: &Contents, direction: Direction) -> Result<(), Problem> {
    let Some(scanned) = scanned else { return Ok(()) };
    let mut wanted: Vec<_> = contents.iter().collect();
    if direction == Direction::Backward {
        wanted.reverse();
    }
    let differs = |(i, item): &(usize, &(Vec<u8>, Vec<u8>))| wanted.get(*i) != Some(&(&item.0, &item.1));
    let wrong = scanned.iter().enumerate().find(differs);
    if wrong.is_none() && scanned.len() == wanted.len() {
        return Ok(());
    }
    Err(Problem::Order { direction, shown: wrong.map(|(_, (key, _))| key.clone()) })
}

fn list(store: &(impl Operations + ?Sized)) -> Result<Contents, Problem> {
    let (mut contents, mut duplicate) = (Contents::new(), None);
    let mut insert = |key: &[u8], value: &[u8]| {
        if contents.insert(key.to_vec(), value.to_vec()).is_some() {
            duplicate = Some(key.to_vec());
        }
    };
    store.for_each(&mut insert).map_err(refused("for_each"))?;
    duplicate.map_or(Ok(contents), |key| Err(Problem::Duplicate(key)))
}

/// Checks that the store's own checker finds no damage.
pub(crate) fn check(store: &(impl Operations + ?Sized)) -> Result<(), Problem> {
    let damage = store.check().map_err(refused("check"))?;
    if damage.is_empty() { Ok(()) } else { Err(Problem::Damage(damage)) }
}

/// The finding for a copy of the superblock that a crash has torn. A store opened for reading does not repair it.
const TORN: &str = "this copy of the superblock is damaged";

/// Like [`check`], for a store that is opened for reading after a crash.
pub(crate) fn check_unmended(store: &(impl Operations + ?Sized)) -> Result<(), Problem> {
    let mut damage = store.check().map_err(refused("check"))?;
    damage.retain(|what| !what.ends_with(TORN));
    if damage.is_empty() { Ok(()) } else { Err(Problem::Damage(damage)) }
}
