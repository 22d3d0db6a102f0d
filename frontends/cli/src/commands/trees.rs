//! `hikv trees`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use hikv::{Store, TreeInfo};

use crate::durable::Durable;
use crate::failure::Failure;
use crate::formats::Escaped;
use crate::memory::Memory;
use crate::opening;

/// List the named trees of a store, or change them
///
/// Without a command: prints the name and the number of keys of each tree. Each change is one step: a crash leaves it
/// done or not.
#[derive(Args)]
pub(crate) struct Trees {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    #[command(subcommand)]
    change: Option<Change>,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    memory: Memory,
}

#[derive(Subcommand)]
enum Change {
    /// Create a tree, unless it exists
    Create {
        /// The name: 1 to 255 bytes, without 'hikv:' at its beginning
        name: String,
    },
    /// Give a tree another name
    Rename {
        /// The present name
        from: String,
        /// The new name
        to: String,
    },
    /// Exchange the keys of two trees
    Swap {
        /// The name of a tree
        a: String,
        /// The name of another
        b: String,
    },
    /// Remove a tree with all its keys
    Drop {
        /// The name
        name: String,
    },
    /// Remove all keys of a tree
    Clear {
        /// The name
        name: String,
    },
}

impl Trees {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Some(change) = &self.change else { return self.list() };
        let store = opening::open(&self.memory.options(self.durable.options()).create(false), &self.dir)?;
        change.apply(&store).map_err(Failure::at_path(&self.dir))?;
        store.close().map_err(Failure::at_path(&self.dir))
    }

    fn list(&self) -> Result<(), Failure> {
        let store = opening::read_only(&self.dir, &self.memory)?;
        let mut out = io::stdout().lock();
        for (name, count) in counted(&store).map_err(Failure::at_path(&self.dir))? {
            writeln!(out, "{}\t{count}", Escaped(name.as_bytes())).map_err(Failure::output("the trees"))?;
        }
        out.flush().map_err(Failure::output("the trees"))
    }
}

/// Returns the names of the trees and their numbers of keys. Visits all keys if there are trees.
pub(super) fn counted(store: &Store) -> Result<Vec<(String, u64)>, hikv::Error> {
    let count = |name: &str| store.existing_tree(name)?.map_or(Ok(0), |tree| tree.len());
    let trees = store.trees()?.into_iter();
    trees.map(|TreeInfo { name, .. }| count(&name).map(|count| (name, count))).collect()
}

impl Change {
    fn apply(&self, store: &Store) -> Result<(), hikv::Error> {
        match self {
            Change::Create { name } => store.tree(name).map(drop),
            Change::Rename { from, to } => store.rename_tree(from, to),
            Change::Swap { a, b } => store.swap_trees(a, b),
            Change::Drop { name } => store.drop_tree(name),
            Change::Clear { name } => {
                let found = store.existing_tree(name)?;
                found.ok_or(hikv::Error::NoSuchTree { name: (**name).into() })?.clear()
            }
        }
    }
}
