//! The first program of the README: opens a store, writes, reads, and scans a range.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use hikv::{Store, WriteBatch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("./data")?;
    store.put("fruit:apple", "red")?; // durable when it returns
    assert_eq!(store.get("fruit:apple")?.as_deref(), Some(&b"red"[..]));
    store.write(WriteBatch::new().put("fruit:banana", "yellow").delete("fruit:cherry"))?; // all or nothing
    for item in store.range("fruit:a".."fruit:d")? {
        let (key, value) = item?;
        println!("{} = {}", key.escape_ascii(), value.escape_ascii());
    }
    Ok(store.close()?)
}
