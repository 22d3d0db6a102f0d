//! What is stored: items in sixteen databases, their order and backups.

pub(crate) mod database;
pub(crate) mod databases;
pub(crate) mod items;
mod memory;
pub(crate) mod namespace;
mod order;
mod saves;

use std::io;
use std::path::PathBuf;

use hikv::{EngineKind, Error, Features, Store};

use database::Database;
use databases::Databases;
use items::{Items, Pending};
use memory::MemoryLimit;
use namespace::Namespace;
use order::{Asked, Order};
use saves::Saves;

/// The store, and what the server keeps beside it.
pub(crate) struct Keyspace {
    pub(crate) store: Store,
    /// What keeps the store, and what it has beside single keys.
    pub(crate) engine: EngineKind,
    pub(crate) features: Features,
    order: Order,
    pub(crate) databases: Databases,
    pub(crate) memory: MemoryLimit,
    pub(crate) saves: Saves,
}

impl Keyspace {
    /// That of `store`, with its keys in order from the start if `is_ordered`, and backups at `backups`.
    ///
    /// # Errors
    /// If the table of databases is damaged; if order is asked for and the store has none; if `backups` can be no such place.
    pub(crate) fn of(store: Store, is_ordered: bool, backups: Option<PathBuf>) -> io::Result<Keyspace> {
        let databases = Databases::load(&store)?;
        let order = Order::default();
        // Keys of several databases are counted in order, where the engine has one.
        let is_counted = || databases.is_stored() && store.features().order != hikv::Order::No;
        if is_ordered || is_counted() {
            order.of(&store).map_err(io::Error::other)?;
        }
        let saves = Saves::new(&store, backups)?;
        let (engine, features) = (store.engine_kind(), store.features());
        Ok(Keyspace { store, engine, features, order, databases, memory: MemoryLimit::default(), saves })
    }

    /// The items, as a transaction sees them that has changed `pending`, if it is one.
    #[inline]
    pub(crate) fn items<'a>(&'a self, pending: Option<&'a Pending>) -> Items<'a> {
        Items::new(&self.store, &self.databases, pending)
    }

    /// The namespace of database `db`.
    #[inline]
    pub(crate) fn namespace(&self, db: Database) -> Namespace {
        self.databases.namespace(db)
    }

    /// The ordered operations. The first call has the keys put in order, in the background.
    pub(crate) fn ordered(&self) -> Result<&Asked, Error> {
        self.order.of(&self.store)
    }
}
