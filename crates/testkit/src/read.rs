//! The whole contents of a store, by every way in which it shows them.

use std::collections::BTreeSet;

use crate::subject::{Contents, Failure, Operations};
use crate::violation::Problem;

/// Turns a refusal into a problem.
pub(crate) fn refused(operation: &'static str) -> impl Fn(Failure) -> Problem {
    move |failure| Problem::Refused { operation, failure }
}

/// What `store` holds. Listing, counting and looking up must agree, on what it lists and on all of `keys`.
pub(crate) fn read(store: &(impl Operations + ?Sized), keys: &BTreeSet<Vec<u8>>) -> Result<Contents, Problem> {
    let contents = list(store)?;
    let (said, listed) = (store.len().map_err(refused("len"))?, contents.len() as u64);
    if said != listed {
        return Err(Problem::Length { said, listed });
    }
    for key in keys.iter().chain(contents.keys()) {
        if store.get(key).map_err(refused("get"))?.as_ref() != contents.get(key) {
            return Err(Problem::Lookup(key.clone()));
        }
    }
    Ok(contents)
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

/// Objects to what the store's own checker finds.
pub(crate) fn check(store: &(impl Operations + ?Sized)) -> Result<(), Problem> {
    let damage = store.check().map_err(refused("check"))?;
    if damage.is_empty() { Ok(()) } else { Err(Problem::Damage(damage)) }
}
