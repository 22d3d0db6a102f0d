//! A transfer between two accounts. Both change or neither does, even while other threads transfer.
//!
//! usage: atomic_batch [DIR]
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::{env, thread};

use hikv::{Error as StoreError, Store, WriteBatch};

const ACCOUNTS: [&str; 2] = ["alice", "bob"];

fn balance(bytes: &[u8]) -> Result<i64, Box<dyn Error + Send + Sync>> {
    Ok(std::str::from_utf8(bytes)?.parse()?)
}

/// Reads both balances, and writes new ones if neither has changed since. Otherwise it starts again.
fn transfer(store: &Store, from: &str, to: &str, amount: i64) -> Result<(), Box<dyn Error + Send + Sync>> {
    loop {
        let from_item = store.get_item(from)?.ok_or("no such account")?;
        let to_item = store.get_item(to)?.ok_or("no such account")?;
        let mut batch = WriteBatch::new();
        batch.expect_version(from, from_item.version).expect_version(to, to_item.version);
        batch.put(from, (balance(&from_item.value)? - amount).to_string());
        batch.put(to, (balance(&to_item.value)? + amount).to_string());
        match store.write(&batch) {
            Err(StoreError::ConditionFailed { .. }) => {}
            written => return Ok(written?),
        }
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let store = Store::open(env::args().nth(1).unwrap_or_else(|| "./accounts".into()))?;
    store.write(WriteBatch::new().put("alice", "100").put("bob", "100"))?;

    thread::scope(|scope| {
        let [alice, bob] = ACCOUNTS;
        let transfers = [(alice, bob, 3), (bob, alice, 2)];
        let threads = transfers.map(|(from, to, amount)| {
            let store = &store;
            scope.spawn(move || (0..10).try_for_each(|_| transfer(store, from, to, amount)))
        });
        threads.into_iter().try_for_each(|thread| thread.join().expect("a transfer does not panic"))
    })?;

    let balances = store.multi_get(ACCOUNTS)?;
    let balances: Vec<i64> = balances.iter().flatten().map(|bytes| balance(bytes)).collect::<Result<_, _>>()?;
    println!("alice and bob: {balances:?}");
    assert_eq!(balances, [90, 110], "ten transfers of 3, ten of 2 back");
    Ok(store.close()?)
}
