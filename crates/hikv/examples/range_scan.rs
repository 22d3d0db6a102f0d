//! Ranges, prefixes and pages: the readings of a sensor in order of time.
//!
//! usage: range_scan [DIR]
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;
use std::error::Error;
use std::ops::Bound;

use hikv::{Error as StoreError, Item, Store, prefix_range};

/// Returns one page of the keys that begin with `prefix`, after the last key of the previous page.
fn page(store: &Store, prefix: &str, after: Option<&[u8]>, count: usize) -> Result<Vec<Item>, StoreError> {
    let (first, end) = prefix_range(prefix);
    let start = after.map_or(first, |key| Bound::Excluded(key.to_vec()));
    store.range((start, end))?.take(count).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = Store::open(env::args().nth(1).unwrap_or_else(|| "./readings".into()))?;
    for minute in 0..25u32 {
        // Keys sort by their bytes, so numbers need leading zeros or big-endian bytes.
        store.put(format!("sensor-7:{minute:04}"), (20 + minute % 5).to_string())?;
    }
    store.put("sensor-8:0000", "3")?;
    let ordered = store.ordered()?;

    let between: Vec<Item> = ordered.range("sensor-7:0010".."sensor-7:0013")?.collect::<Result<_, _>>()?;
    assert_eq!(between.len(), 3);
    let (latest, value) = ordered.prefix("sensor-7:")?.next_back().ok_or("no reading")??;
    println!("latest: {} = {}", latest.escape_ascii(), value.escape_ascii());
    assert_eq!(ordered.floor("sensor-7:00105")?.ok_or("no reading")?.0, b"sensor-7:0010");

    let (mut last, mut counts) = (None, Vec::new());
    loop {
        let items = page(&store, "sensor-7:", last.as_deref(), 10)?;
        let Some((key, _)) = items.last() else { break };
        println!("page to {}: {} items", key.escape_ascii(), items.len());
        counts.push(items.len());
        last = Some(key.clone());
    }
    assert_eq!(counts, [10, 10, 5], "no item is skipped or shown twice");
    drop(ordered);
    Ok(store.close()?)
}
