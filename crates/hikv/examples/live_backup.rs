//! A backup of a store while another thread writes to it, and its restore.
//!
//! usage: live_backup [DIR]
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, thread};

use hikv::{Durability, Error as StoreError, Options, Store};

/// Writes until `is_over`, and returns the number of items written.
fn write(store: &Store, is_over: &AtomicBool) -> Result<u64, StoreError> {
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) {
        store.put(format!("new:{count}"), "written during the backup")?;
        count += 1;
    }
    Ok(count)
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir: PathBuf = env::args_os().nth(1).map_or_else(|| "./backed-up".into(), PathBuf::from);
    let (live, backup, restored) = (dir.join("live"), dir.join("monday"), dir.join("restored"));
    std::fs::create_dir_all(&dir)?;
    let store = Options::new().durability(Durability::Buffered).open(live)?;
    (0..1_000).try_for_each(|number| store.put(format!("old:{number}"), "written before the backup"))?;

    let is_over = AtomicBool::new(false);
    let (report, written) = thread::scope(|scope| {
        let writer = scope.spawn(|| write(&store, &is_over));
        // The backup contains the items of one moment. Every checksum is verified.
        let report = store.backup(&backup, |_| {});
        is_over.store(true, Ordering::Relaxed);
        (report, writer.join().expect("the writer does not panic"))
    });
    let (report, written) = (report?, written?);
    println!("{} items in the backup; {written} were written during it", report.items);
    store.close()?;

    hikv::restore(&backup, &restored, |_| {})?;
    let store = Store::open(restored)?;
    assert_eq!(store.prefix("old:")?.count(), 1_000);
    assert_eq!(store.len()?, report.items);
    Ok(store.close()?)
}
