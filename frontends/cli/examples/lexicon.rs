//! Loads and prints a lexicon with the library. `lexicon load DIR FILE` stores the lines `KEY<tab>VALUE` of a file, and
//! prints the number of acknowledged items after each thousand. `lexicon show DIR` prints all items in the same form,
//! each read by its key.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use hikv::Store;

/// Items between two acknowledgements.
const ACKNOWLEDGED_ITEMS: usize = 1_000;
/// Keys of one `multi_get`.
const BATCH_KEYS: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["load", dir, file] => load(&Store::open(dir)?, BufReader::new(File::open(file)?)),
        ["show", dir] => show(&Store::open_read_only(dir)?, &mut BufWriter::new(io::stdout().lock())),
        _ => Err("usage: lexicon load DIR FILE | lexicon show DIR".into()),
    }
}

fn load(store: &Store, lines: impl BufRead) -> Result<(), Box<dyn Error>> {
    for (number, line) in lines.lines().enumerate() {
        let line = line?;
        let (key, value) = line.split_once('\t').ok_or_else(|| format!("line {} has no tab", number + 1))?;
        store.put(key, value)?;
        if (number + 1) % ACKNOWLEDGED_ITEMS == 0 {
            writeln!(io::stdout(), "{}", number + 1)?;
        }
    }
    Ok(())
}

fn show(store: &Store, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut keys = Vec::new();
    store.for_each(|key, _| keys.push(key.to_vec()))?;
    for batch in keys.chunks(BATCH_KEYS) {
        for (key, together) in batch.iter().zip(store.multi_get(batch)?) {
            let alone = store.get(key)?;
            if alone != together {
                return Err(format!("get and multi_get differ about {}", key.escape_ascii()).into());
            }
            out.write_all(&[key, &b"\t"[..], &*alone.ok_or("a listed key is absent")?, b"\n"].concat())?;
        }
    }
    Ok(out.flush()?)
}
