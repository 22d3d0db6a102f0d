//! The trees of an open store.
//!
//! Changes of the catalog run one at a time, under [`Trees::open`]. Locks, in their order: those of a front end that
//! keeps its commands out ([`StoredKeysUser`]), the gate lock of the store (crate `transact`), `open`, windows of
//! writers, `marked`, the engine's. An operation opens one window, for the gates of all its trees. An operation on
//! stored keys may change any tree, and passes the gate of all. Only nameless keys that look like stored keys of a tree
//! need `marked`.
//!
//! | step of a drop or clear | a crash after it leaves |
//! |---|---|
//! | 1 close the tree's gate, wait for its writers | the tree |
//! | 2 the catalog's batch ([`catalog::Catalog`]) | the dropped or empty tree; the old id is dead |
//! | 3 use the new id | as after 2 |
//! | 4 open the gate | as after 2 |

mod counting;
mod databases;
mod info;
mod named;
mod reclaim;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use catalog::{Catalog, Counts, RESERVED, Space, TreeId};
use engine::{Engine, Error};
use parking_lot::{Mutex, RwLock};
use pmem_os::ForkGuard;
use transact::{Gate, GateLock};

pub use databases::StoredKeysUser;
use databases::User;
pub use info::{TreeInfo, TreeStats};
pub(crate) use named::Named;
pub(crate) use reclaim::{Hold, ReclaimFigures, Reclaimer};

/// The time for which a change of trees waits for operations under way.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The trees of an open store.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    /// True once the store has a catalog: nameless keys that look marked are stored under other names.
    is_begun: Arc<AtomicBool>,
    /// Held shared by operations on such keys in a store without a catalog, and exclusively while it begins.
    marked: RwLock<()>,
    /// The trees that handles share, by name.
    open: Mutex<HashMap<Box<str>, Arc<Named>>>,
    /// A number of this opening, which its trees have.
    owner: u64,
    /// The number of times that a tree may have got a space that it had before: swaps, and beginnings of the catalog.
    return_count: AtomicU64,
    /// The front end that relies on the present form of stored keys.
    user: User,
    /// Deletes the keys of dropped and cleared trees.
    pub(crate) reclaimer: Reclaimer,
    counts: Arc<Counts>,
}

/// The number of openings of this process so far.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

impl Trees {
    /// Returns the trees of a store that was just opened. With a guard, a thread deletes the keys of dropped trees.
    pub(crate) fn of(engine: &Arc<dyn Engine>, guard: Option<&ForkGuard>) -> Result<Trees, Error> {
        let catalog = Catalog::of(&**engine);
        let counts = Arc::new(Counts::default());
        if let Some(key_changes) = engine.key_changes() {
            let (counts, engine) = (Arc::clone(&counts), Arc::downgrade(engine));
            key_changes.set(Box::new(move |stored, by| {
                let has_passed = |place: &_| engine.upgrade().is_some_and(|engine| engine.has_passed(place, stored));
                counts.note(stored, by, has_passed);
            }));
        }
        let for_thread = guard.map(|guard| (Arc::downgrade(engine), guard.clone()));
        let reclaimer = Reclaimer::new(for_thread, Arc::clone(&counts));
        let is_begun = match catalog.is_begun() {
            // A value that cannot be read is there.
            Err(Error::Corrupt { .. }) => true,
            is_begun => is_begun?,
        };
        let owner = OPENINGS.fetch_add(1, Ordering::Relaxed);
        // Those of a catalog that cannot be read are left alone.
        catalog.dead_ids().into_iter().flatten().for_each(|id| _ = reclaimer.add(id));
        Ok(Trees { is_begun: Arc::new(AtomicBool::new(is_begun)), owner, reclaimer, counts, ..Trees::default() })
    }

    /// Returns true if the store has a catalog.
    #[inline]
    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Acquire)
    }

    /// Returns a number that is another one once a tree may have got a space that it had before. A caller that loads
    /// the number, then twice the same space of a tree, then the same number, knows that the tree had no other space
    /// in between.
    pub(crate) fn return_count(&self) -> u64 {
        self.return_count.load(Ordering::Acquire)
    }

    /// Counts a change that may give a tree an earlier space back, before the change. The caller holds `open`.
    fn note_return(&self) {
        self.return_count.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns true if the tree belongs to this opening of the store.
    pub(crate) fn owns(&self, named: &Named) -> bool {
        named.owner() == self.owner
    }

    /// Runs an operation on nameless keys that look marked. Their stored form stays the same until it returns.
    pub(crate) fn with_nameless<R>(&self, operate: impl FnOnce(Space) -> R) -> R {
        if self.is_begun() {
            return operate(Space::Nameless);
        }
        let _shared = self.marked.read_recursive();
        operate(self.nameless())
    }

    /// Returns the space of nameless keys at this moment.
    #[inline]
    pub(crate) fn nameless(&self) -> Space {
        if self.is_begun() { Space::Nameless } else { Space::Whole }
    }

    /// Returns a function that returns the nameless key of a stored key, if it is one, for callbacks that outlive the
    /// handle.
    pub(crate) fn nameless_keys(&self) -> impl Fn(&[u8]) -> Option<&[u8]> + Send + Sync + 'static {
        let is_begun = Arc::clone(&self.is_begun);
        move |stored| {
            let space = if is_begun.load(Ordering::Acquire) { Space::Nameless } else { Space::Whole };
            space.key_of(stored)
        }
    }

    /// Returns the tree of this name, if it exists.
    pub(crate) fn find(&self, engine: &dyn Engine, name: &str) -> Result<Option<Arc<Named>>, Error> {
        let mut open = self.open.lock();
        if let Some(named) = open.get(name) {
            return Ok(Some(Arc::clone(named)));
        }
        let found = Catalog::of(engine).find(name)?;
        Ok(found.map(|entry| {
            Arc::clone(open.entry(name.into()).or_insert(Arc::new(Named::new(name, entry.id, self.owner))))
        }))
    }

    /// Returns the tree of this name, and creates it if there is none.
    pub(crate) fn find_or_create(
        &self,
        engine: &dyn Engine,
        gate_lock: &GateLock,
        name: &str,
    ) -> Result<Arc<Named>, Error> {
        if let Some(named) = self.find(engine, name)? {
            return Ok(named);
        }
        loop {
            self.begin(engine, gate_lock, name)?;
            let _holder = gate_lock.lock()?;
            let mut open = self.open.lock();
            // Another thread may have deleted everything, the catalog included.
            if self.is_begun() {
                let id = created_or_found(Catalog::of(engine), name)?;
                return Ok(Arc::clone(
                    open.entry(name.into()).or_insert_with(|| Arc::new(Named::new(name, id, self.owner))),
                ));
            }
        }
    }

    /// Begins the catalog if there is none, while a front end is idle.
    fn begin(&self, engine: &dyn Engine, gate_lock: &GateLock, name: &str) -> Result<(), Error> {
        if self.is_begun() {
            return Ok(());
        }
        self.user.while_idle(gate_lock, || self.begin_alone(engine, gate_lock, name))
    }

    /// Begins the catalog if there is none. No front end uses stored keys.
    fn begin_alone(&self, engine: &dyn Engine, gate_lock: &GateLock, name: &str) -> Result<(), Error> {
        let _holder = gate_lock.lock()?;
        let _open = self.open.lock();
        if self.is_begun() {
            return Ok(());
        }
        let busy = || Error::TreeBusy { name: name.into() };
        let _alone = self.marked.try_write_for(WAIT_MAX).ok_or_else(busy)?;
        Catalog::of(engine).begin()?;
        self.note_return();
        self.is_begun.store(true, Ordering::Release);
        Ok(())
    }

    /// Records the types of a tree, or compares them with those that it has.
    pub(crate) fn note_types(
        &self,
        engine: &dyn Engine,
        gate_lock: &GateLock,
        name: &str,
        types: &str,
    ) -> Result<(), Error> {
        let _holder = gate_lock.lock()?;
        let _open = self.open.lock();
        Catalog::of(engine).note_types(name, types)
    }

    pub(crate) fn rename(&self, engine: &dyn Engine, gate_lock: &GateLock, from: &str, to: &str) -> Result<(), Error> {
        let _holder = gate_lock.lock()?;
        let mut open = self.open.lock();
        Catalog::of(engine).rename(from, to)?;
        if let Some(named) = open.remove(from) {
            named.set_name(to);
            open.insert(to.into(), named);
        }
        Ok(())
    }

    pub(crate) fn swap(&self, engine: &dyn Engine, gate_lock: &GateLock, names: [&str; 2]) -> Result<(), Error> {
        let holder = gate_lock.lock()?;
        let open = self.open.lock();
        if names[0] == names[1] {
            return Catalog::of(engine).swap(names).map(drop);
        }
        let held = names.map(|name| open.get(name));
        held.iter().flatten().try_for_each(|named| named.close(&holder))?;
        let ids = Catalog::of(engine).swap(names)?;
        self.note_return();
        held.into_iter().zip(ids).for_each(|(named, id)| named.into_iter().for_each(|named| named.set_id(id)));
        Ok(())
    }

    pub(crate) fn drop_tree(&self, engine: &dyn Engine, gate_lock: &GateLock, name: &str) -> Result<(), Error> {
        let holder = gate_lock.lock()?;
        let mut open = self.open.lock();
        open.get(name).map_or(Ok(()), |named| named.close(&holder))?;
        let id = Catalog::of(engine).drop_tree(name)?;
        open.remove(name).into_iter().for_each(|named| named.set_dropped());
        let added_count = self.reclaimer.add(id);
        drop((open, holder));
        self.reclaimer.help(engine, added_count);
        Ok(())
    }

    /// Empties a tree, in one step. A database is emptied while its front end is idle, which then uses the new id.
    pub(crate) fn clear(&self, engine: &dyn Engine, gate_lock: &GateLock, named: &Named) -> Result<(), Error> {
        self.begin(engine, gate_lock, &named.name())?;
        let clear = || self.clear_named(engine, gate_lock, named);
        if named.name().starts_with(RESERVED) { self.user.while_idle(gate_lock, clear) } else { clear() }
    }

    fn clear_named(&self, engine: &dyn Engine, gate_lock: &GateLock, named: &Named) -> Result<(), Error> {
        let holder = gate_lock.lock()?;
        let open = self.open.lock();
        // The name cannot change while `open` is held.
        let name = named.name();
        named.close(&holder)?;
        named.space()?;
        let [old, new] = Catalog::of(engine).clear(&name)?;
        named.set_id(new);
        let added_count = self.reclaimer.add(old);
        drop((open, holder));
        self.reclaimer.help(engine, added_count);
        Ok(())
    }

    /// Deletes every stored key, also those of the catalog, in one step. All handles of named trees are then of
    /// dropped trees.
    pub(crate) fn clear_all(
        &self,
        engine: &dyn Engine,
        gate_lock: &GateLock,
        nameless: &Arc<Gate>,
    ) -> Result<(), Error> {
        let holder = gate_lock.lock()?;
        let mut open = self.open.lock();
        let closed = holder.close(open.values().map(|named| named.gate()).chain([nameless]), WAIT_MAX);
        closed.map_err(|_| Error::TreeBusy { name: "".into() })?;
        engine.clear()?;
        self.counts.forget();
        self.note_return();
        self.is_begun.store(false, Ordering::Release);
        open.drain().for_each(|(_, named)| named.set_dropped());
        Ok(())
    }
}

/// Creates a tree, or finds the one of this name that another thread has created.
fn created_or_found(catalog: Catalog<'_>, name: &str) -> Result<TreeId, Error> {
    match catalog.create(name) {
        Err(Error::TreeExists { .. }) => {
            Ok(catalog.find(name)?.ok_or_else(|| Error::NoSuchTree { name: name.into() })?.id)
        }
        created => created,
    }
}
