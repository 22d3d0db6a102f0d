//! `hikv stats`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use hikv::{Store, TreeInfo};
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::formats::Escaped;
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
}

impl Stats {
    pub(super) fn run(self) -> Result<(), Failure> {
        let store = match opening::read_only(&self.dir) {
            Ok(store) => store,
            Err(error) if self.json => return Err(error.into()),
            Err(error) => return self.ask_server(serving::instead(error)?),
        };
        let mut fields = serde_json::to_value(store.stats()).map_err(Failure::at_path(&self.dir))?;
        let trees = items_of_trees(&store).map_err(Failure::at_path(&self.dir))?;
        if let Value::Object(fields) = &mut fields
            && !trees.is_empty()
        {
            fields.insert("tree_items".to_owned(), Value::Object(trees));
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

/// Returns the number of keys of each named tree. Visits all keys if there are trees.
fn items_of_trees(store: &Store) -> Result<Map<String, Value>, hikv::Error> {
    let mut counts = Map::new();
    for TreeInfo { name, .. } in store.trees()? {
        if let Some(tree) = store.existing_tree(&name)? {
            counts.insert(name, tree.len()?.into());
        }
    }
    Ok(counts)
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
