//! The stored data: items in sixteen databases, their order, and backups.

pub(crate) mod collections;
pub(crate) mod database;
pub(crate) mod databases;
pub(crate) mod items;
mod memory;
pub(crate) mod namespace;
mod order;
mod saves;
mod table;

use std::io;
use std::path::PathBuf;

use hikv::{EngineKind, Error, Features, Ordered, Store};

use crate::errors::Refusal;
use collections::{Collections, Reclaim, View};
use database::Database;
use databases::Databases;
use items::{Items, Pending};
use memory::MemoryLimit;
use namespace::Namespace;
use order::{Order, OrderHandles};
use saves::Saves;
pub(crate) use table::Table;

/// The store and the server's state for it.
pub(crate) struct Keyspace {
    pub(crate) store: Store,
    /// The engine of the store, which determines its features.
    pub(crate) engine: EngineKind,
    pub(crate) features: Features,
    order: Order,
    pub(crate) databases: Databases,
    pub(crate) collections: Collections,
    pub(crate) memory: MemoryLimit,
    pub(crate) saves: Saves,
}

impl Keyspace {
    /// Creates the keyspace of `store`. With `is_ordered` the order of keys is built from the start; backups go to
    /// `backups`.
    ///
    /// # Errors
    /// A damaged table of databases; a request for order from an engine without; an impossible location of backups.
    pub(crate) fn of(store: Store, is_ordered: bool, backups: Option<PathBuf>) -> io::Result<Keyspace> {
        let store = hikv::FrontEnd::of(&store).store_of_stored_keys();
        let databases = Databases::load(&store)?;
        let order = Order::default();
        // The keys of several databases are counted in order, if the engine has one.
        let is_counted = || databases.is_stored() && store.features().order != hikv::Order::No;
        if is_ordered || is_counted() {
            order.of(&store).map_err(io::Error::other)?;
        }
        let collections = Collections::load(&store).map_err(io::Error::other)?;
        let saves = Saves::new(&store, backups)?;
        let (engine, features) = (store.engine_kind(), store.features());
        let memory = MemoryLimit::default();
        Ok(Keyspace { store, engine, features, order, databases, collections, memory, saves })
    }

    /// Returns the items as a command sees them, including the `pending` changes of its transaction.
    #[inline]
    pub(crate) fn items<'a>(&'a self, pending: Option<&'a Pending>) -> Items<'a> {
        Items::new(&self.store, &self.databases, pending)
    }

    /// Returns the namespace of database `db`.
    #[inline]
    pub(crate) fn namespace(&self, db: Database) -> Namespace {
        self.databases.namespace(db)
    }

    /// Returns the ordered operations. The first call starts building the order in the background.
    pub(crate) fn ordered(&self) -> Result<&OrderHandles, Error> {
        self.order.of(&self.store)
    }

    /// Returns the ordered operations for a command that does not wait for long.
    pub(crate) fn ordered_soon(&self) -> Result<&Ordered, Refusal> {
        self.order.soon(&self.store)
    }

    /// Returns the collections of a database as a command sees them; `None` while the store has none.
    #[inline]
    pub(crate) fn view<'a>(&'a self, items: Items<'a>, namespace: Namespace) -> Option<View<'a>> {
        View::of(&self.collections, &self.order, items, namespace)
    }

    /// Returns the steps that delete dead collections; `None` while the store has none.
    pub(crate) fn reclaim(&self) -> Option<Reclaim<'_>> {
        self.view(self.items(None), self.namespace(Database::FIRST)).map(Reclaim::of)
    }

    /// Creates the tree of collections if there is none, and returns whether a catalog began. No command is under way.
    pub(crate) fn begin_collections(&self) -> Result<bool, Refusal> {
        if self.collections.exist() {
            return Ok(false);
        }
        let begins = self.databases.begin_catalog(&self.store)?;
        self.collections.begin(&self.store)?;
        Ok(begins)
    }
}
