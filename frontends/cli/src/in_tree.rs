//! The option `--tree`.

use std::path::Path;

use clap::Args;
use hikv::{Error, ReadView, Store, Tree};

use crate::failure::Failure;

/// The tree that a command reads or writes.
#[derive(Args)]
pub(crate) struct InTree {
    /// The named tree with the keys [default: the tree without a name]
    #[arg(long = "tree", value_name = "NAME")]
    name: Option<String>,
}

impl InTree {
    /// Returns true if a tree was named.
    pub(crate) fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// Returns the tree, which has to exist. It keeps the store open until it is dropped.
    pub(crate) fn existing(&self, store: &Store, dir: &Path) -> Result<Tree, Failure> {
        let Some(name) = &self.name else { return Ok(Tree::clone(store)) };
        let found = store.existing_tree(name).and_then(|tree| tree.ok_or(Error::NoSuchTree { name: (**name).into() }));
        found.map_err(Failure::at_path(dir))
    }

    /// Returns the tree, and creates it if there is none. It keeps the store open until it is dropped.
    pub(crate) fn made(&self, store: &Store, dir: &Path) -> Result<Tree, Failure> {
        let Some(name) = &self.name else { return Ok(Tree::clone(store)) };
        store.tree(name).map_err(Failure::at_path(dir))
    }

    /// Returns the items of the tree, which has to exist.
    pub(crate) fn view(&self, store: &Store, dir: &Path) -> Result<ReadView, Failure> {
        let view = store.read_view().map_err(Failure::at_path(dir))?;
        let Some(name) = &self.name else { return Ok(view) };
        let found = view.tree(name).and_then(|tree| tree.ok_or(Error::NoSuchTree { name: (**name).into() }));
        found.map_err(Failure::at_path(dir))
    }

    /// Returns an error if a tree was named, for commands that ask a server, whose protocol has no names of trees.
    pub(crate) fn refuse_server(&self, dir: &Path) -> Result<(), Failure> {
        match &self.name {
            None => Ok(()),
            Some(name) => Err(Failure::at(
                dir.display(),
                format!("`hikv serve` has the store open; it does not show the tree '{name}'"),
            )),
        }
    }
}
