//! A cache: a computed value is kept for a minute; the next reader then computes it again.
//!
//! usage: cache_with_expiry [DIR]
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;
use std::error::Error;
use std::time::Duration;

use hikv::{Clock, Durability, Options, PutOptions, Store};

const LIFETIME: Duration = Duration::from_secs(60);

/// Returns the cached value of `key`, or computes it and keeps it for [`LIFETIME`].
fn cached(store: &Store, key: &str, compute: impl FnOnce() -> String) -> Result<String, Box<dyn Error>> {
    if let Some(value) = store.get(key)? {
        return Ok(String::from_utf8(value.into_vec())?);
    }
    let value = compute();
    store.put_with(key, &value, PutOptions::new().ttl(LIFETIME))?;
    Ok(value)
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = env::args().nth(1).unwrap_or_else(|| "./cache".into());
    // A program uses the default clock. This example advances its own clock, so that it need not wait.
    let clock = Clock::manual(0);
    // A cache can afford to lose its last writes in a power failure, which makes writes cheap.
    let store = Options::new().durability(Durability::Process).clock(clock.clone()).open(dir)?;
    store.clear()?;

    let mut computed = 0;
    for seconds_later in [0, 30, 31] {
        clock.advance(Duration::from_secs(seconds_later));
        let page = cached(&store, "page:/index", || {
            computed += 1;
            format!("version {computed}")
        })?;
        println!("{seconds_later:2} s later: {page}, expires in {:?}", store.ttl("page:/index")?);
    }
    assert_eq!(computed, 2, "the second request is within the minute, the third is not");
    Ok(store.close()?)
}
