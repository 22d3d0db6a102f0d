//! A first program with the library, which counts its own runs in the store at `./data` and shows what else is there.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::ops::ControlFlow;

use hikv::Store;

fn main() -> Result<(), Box<dyn Error>> {
    // Made if it is not there. A store is cheap to clone, and any thread may use it.
    let store = Store::open("./data")?;

    let before: u64 = match store.get("runs")? {
        Some(count) => String::from_utf8(count)?.parse()?,
        None => 0,
    };
    // When this returns the value is durable, as far as the medium goes.
    store.put("runs", (before + 1).to_string())?;

    // Every item once, in no order.
    store.for_each(|key, value| {
        println!("{} = {}", key.escape_ascii(), value.escape_ascii());
        ControlFlow::Continue(())
    })?;

    let stats = store.stats();
    println!("durability on {}: {}", stats.medium, stats.durability);
    Ok(())
}
