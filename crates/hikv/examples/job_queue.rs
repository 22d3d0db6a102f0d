//! A job queue: producers append jobs, several workers take the oldest job, and no job is lost or done twice.
//!
//! usage: job_queue [DIR]
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::{env, thread};

use hikv::{Error as StoreError, Store, WriteBatch};

type Job = (Vec<u8>, Vec<u8>);

/// Appends a job. Leading zeros make keys sort by number.
fn push(store: &Store, job: &str) -> Result<(), StoreError> {
    let number = store.increment("jobs", 1)?;
    store.put(format!("waiting:{number:020}"), job)
}

/// Takes the oldest waiting job: a transaction moves it to the running jobs, so that no other worker takes it too.
fn take(store: &Store) -> Result<Option<Job>, StoreError> {
    store.transact(|tx| {
        let Some((waiting, job)) = tx.prefix("waiting:")?.next().transpose()? else { return Ok(None) };
        let running = [b"running:", &waiting[b"waiting:".len()..]].concat();
        tx.delete(&waiting)?;
        tx.put(&running, &job)?;
        Ok(Some((running, job)))
    })
}

/// Puts back the jobs that an earlier run of the program began and did not finish.
fn recover(store: &Store) -> Result<(), StoreError> {
    for item in store.prefix("running:")? {
        let (running, job) = item?;
        let waiting = [b"waiting:", &running[b"running:".len()..]].concat();
        store.write(WriteBatch::new().delete(&running).put(waiting, job))?;
    }
    Ok(())
}

fn work(store: &Store) -> Result<usize, StoreError> {
    let mut count = 0;
    while let Some((running, _job)) = take(store)? {
        // A real program does the work here. The job is deleted once it is done.
        store.delete(running)?;
        count += 1;
    }
    Ok(count)
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = Store::open(env::args().nth(1).unwrap_or_else(|| "./jobs".into()))?;
    recover(&store)?;
    (1..=20).try_for_each(|number| push(&store, &format!("mail {number}")))?;

    let counts = thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(|| work(&store))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect::<Result<Vec<_>, _>>()
    })?;
    println!("two workers did {counts:?} jobs");
    assert_eq!(store.ordered()?.count("running:".."waiting;")?, 0, "no job waits or runs");
    Ok(store.close()?)
}
