//! `hikv stats`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Map, Value};

use super::trees;
use crate::failure::{Failure, warn};
use crate::formats::Escaped;
use crate::memory::Memory;
use crate::opening;
use crate::serving::{self, Client, Reply};

/// Show contents, storage, durability and cost of a store
///
/// If `hikv serve` has the store open, shows the INFO of the server; --json then fails.
#[derive(Args)]
pub(crate) struct Stats {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: Memory,
}

impl Stats {
    pub(super) fn run(self) -> Result<(), Failure> {
        let store = match opening::read_only(&self.dir, &self.memory) {
            Ok(store) => store,
            Err(error) if self.json => return Err(error.into()),
            Err(error) => return self.ask_server(serving::instead(error)?),
        };
        let mut fields = serde_json::to_value(store.stats()).map_err(Failure::at_path(&self.dir))?;
        // The other figures of a damaged store are shown.
        let trees = trees::counted(&store).unwrap_or_else(|error| {
            warn(&format!("{}: the keys of its trees cannot be counted: {error}", self.dir.display()));
            Vec::new()
        });
        if let Value::Object(fields) = &mut fields
            && !trees.is_empty()
        {
            let trees = trees.into_iter().map(|(name, items)| (name, items.into()));
            fields.insert("tree_items".to_owned(), Value::Object(trees.collect()));
        }
        let written = match &fields {
            Value::Object(fields) if !self.json => write_table(fields),
            _ => writeln!(io::stdout(), "{fields}"),
        };
        written.map_err(Failure::output("standard output"))
    }

    /// Prints the INFO of the server that has the store open.
    fn ask_server(&self, mut server: Client) -> Result<(), Failure> {
        match server.ask(&[b"INFO"]).map_err(|error| Failure::at(server.addr(), error))? {
            Reply::Bulk(Some(reported)) => {
                io::stdout().write_all(&reported).map_err(Failure::output("standard output"))
            }
            other => Err(serving::refused(&self.dir, &other)),
        }
    }
}

fn write_table(fields: &Map<String, Value>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let width = fields.keys().map(String::len).max().unwrap_or_default();
    for (name, value) in fields {
        let Value::Object(trees) = value else {
            writeln!(out, "{name:width$}  {}", readable(name, value))?;
            continue;
        };
        for (tree, items) in trees {
            writeln!(out, "{name:width$}  {}: {}", Escaped(tree.as_bytes()), readable(name, items))?;
        }
    }
    Ok(())
}

/// Formats a value; the last part of the field's name is its unit.
fn readable(name: &str, value: &Value) -> String {
    match (value, value.as_u64()) {
        (_, Some(count)) if name.ends_with("_bytes") => format!("{} ({count} bytes)", HumanBytes(count)),
        (_, Some(count)) => HumanCount(count).to_string(),
        (Value::Number(share), None) => format!("{:.2}", share.as_f64().unwrap_or_default()),
        (Value::String(text), _) => text.clone(),
        (Value::Null, _) => "not counted".to_owned(),
        (other, _) => other.to_string(),
    }
}
