//! Checks the state that a power cut would leave of the kernel module's store. `cargo xtask kernel rounds` runs this
//! on the host, next to its guest.
//!
//! usage: ink_judge DIR SEED ACKNOWLEDGED…
//!
//! DIR contains the region as `store.hikv`. The library opens that store and checks all nodes. Its items are compared
//! with the changes that `ink_cut` had acknowledged.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

#[path = "ink_cut/script.rs"]
mod script;

use std::env;
use std::error::Error;

use hikv::{Durability, Options};
use script::Found;

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [dir, rest @ ..] = arguments else { return Err("usage: ink_judge DIR SEED ACKNOWLEDGED…".into()) };
    // A tmpfs provides no more.
    let store = Options::new().durability(Durability::Process).open(dir)?;
    let (seed, acknowledged) = script::arguments(rest)?;
    let damage = store.verify(|_| {})?.damage;
    if !damage.is_empty() {
        return Err(format!("damage: {damage:?}").into());
    }
    let mut found = Found::new(acknowledged.len());
    store.for_each(|key, value| {
        found.insert(key.to_vec(), value.to_vec());
    })?;
    script::say_judged(&found.judged(seed, &acknowledged)?);
    Ok(())
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Err(error) = run(&arguments) {
        println!("lost {error}");
    }
}
