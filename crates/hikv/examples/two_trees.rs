//! Moves jobs from one tree to another by transactions, over trees with types.
//!
//! usage: two_trees [DIR]
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use hikv::typed::{TreeOf, TypedTree};
use hikv::{Error, Store};

const TODO: TreeOf<u64, String> = TreeOf::new("todo");
const RUNNING: TreeOf<u64, String> = TreeOf::new("running");

/// Takes the first job, and returns its number.
fn take(store: &Store, todo: &TypedTree<u64, String>, running: &TypedTree<u64, String>) -> Result<Option<u64>, Error> {
    store.transact(|tx| {
        let (todo, running) = (tx.typed(todo)?, tx.typed(running)?);
        let Some((number, job)) = todo.first()? else { return Ok(None) };
        todo.delete(&number)?;
        running.put(&number, &job)?;
        Ok(Some(number))
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open(std::env::args().nth(1).unwrap_or_else(|| "./two-trees".into()))?;
    let (todo, running) = (TODO.open(&store)?, RUNNING.open(&store)?);
    for (number, job) in [(1, "resize cat.png"), (2, "resize dog.png")] {
        todo.put(&number, &job.into())?;
    }
    while let Some(number) = take(&store, &todo, &running)? {
        println!("took job {number}; {} wait", todo.len()?);
    }
    assert_eq!(running.len()?, 2);
    drop((todo, running));
    Ok(store.close()?)
}
