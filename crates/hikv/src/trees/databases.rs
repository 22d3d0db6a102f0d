//! The trees of a server, which maps its keys to stored keys itself.
//!
//! The server reads and writes the keys of all its databases by their stored names. These names depend on whether the
//! store has a catalog, and on the ids of the databases. So the server registers itself ([`StoredKeysUser`]), and is
//! idle while another thread changes one of the two; it then reads both again. Its own changes of databases run while
//! it is idle as well.
//!
//! | step of a change of databases | a crash after it leaves |
//! |---|---|
//! | 1 close the gates of the databases whose ids change, wait for their writers | the databases |
//! | 2 one batch: names, ids, and the server's other changes ([`catalog::Catalog::assign`]) | all changes |
//! | 3 use the new ids; dead ids are reclaimed in the background | as after 2 |
//! | 4 open the gates | as after 2 |

use std::fmt;
use std::sync::{Arc, Weak};

use catalog::{Catalog, DatabaseIds, Space, TreeId, database_name};
use engine::{BatchOp, Condition, Engine, Error};
use parking_lot::Mutex;
use transact::GateLock;

use super::{Trees, WAIT_MAX, created_or_found};

/// A front end that maps its keys to stored keys.
pub trait StoredKeysUser: Send + Sync {
    /// Calls `change` while no command of the front end uses a stored key. The front end then reads again how keys are
    /// stored.
    fn while_idle(&self, change: &mut dyn FnMut());
}

/// The front end of a store, if it has one.
#[derive(Default)]
pub(super) struct User(Mutex<Option<Weak<dyn StoredKeysUser>>>);

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("User").field(&self.0.lock().is_some()).finish()
    }
}

impl User {
    /// Runs `change` while the front end is idle. The caller holds no lock: the front end may wait for the gate lock.
    pub(super) fn while_idle<R>(
        &self,
        gate_lock: &GateLock,
        mut change: impl FnMut() -> Result<R, Error>,
    ) -> Result<R, Error> {
        // A thread that another one may wait for must not wait itself.
        drop(gate_lock.lock()?);
        let user = self.0.lock().as_ref().and_then(Weak::upgrade);
        let Some(user) = user else { return change() };
        let mut changed = None;
        user.while_idle(&mut || changed = Some(change()));
        changed.unwrap_or(Err(Error::TreeBusy { name: "".into() }))
    }
}

impl Trees {
    /// Registers a front end, which replaces an earlier one.
    pub(crate) fn set_user(&self, user: Weak<dyn StoredKeysUser>) {
        *self.user.0.lock() = Some(user);
    }

    /// Begins the catalog for a front end that is idle.
    pub(crate) fn begin_for_user(&self, engine: &dyn Engine, gate_lock: &GateLock) -> Result<(), Error> {
        self.begin_alone(engine, gate_lock, &database_name(0))
    }

    /// Creates a tree of a front end that is idle, or finds it.
    pub(crate) fn create_for_user(
        &self,
        engine: &dyn Engine,
        gate_lock: &GateLock,
        name: &str,
    ) -> Result<TreeId, Error> {
        self.begin_alone(engine, gate_lock, name)?;
        let _holder = gate_lock.lock()?;
        created_or_found(Catalog::of(engine), name)
    }

    /// Records that a database has keys. The gate lock keeps this from a count of keys, which has no window for it.
    pub(crate) fn create_database(&self, engine: &dyn Engine, gate_lock: &GateLock, number: u8) -> Result<(), Error> {
        let _holder = gate_lock.lock()?;
        Catalog::of(engine).create_with_id(&database_name(number.into()), TreeId::new(number.into()))
    }

    /// Gives the databases these ids, and carries out the operations, in one step. The front end is idle.
    pub(crate) fn assign(
        &self,
        engine: &dyn Engine,
        gate_lock: &GateLock,
        ids: &DatabaseIds,
        (conditions, ops): (&[Condition<'_>], &[BatchOp<'_>]),
    ) -> Result<(), Error> {
        let holder = gate_lock.lock()?;
        let mut open = self.open.lock();
        let mut changed = Vec::new();
        for (number, id) in ids.iter().enumerate() {
            let name = database_name(number);
            if let Some(named) = open.get(&*name).filter(|named| named.space().ok() != Some(Space::of(*id))) {
                changed.push((name, Arc::clone(named), *id));
            }
        }
        let closed = holder.close(changed.iter().map(|(_, named, _)| named.gate()), WAIT_MAX);
        closed.map_err(|_| Error::TreeBusy { name: "".into() })?;
        let dead = Catalog::of(engine).assign(ids, conditions, ops)?;
        for (name, named, id) in changed {
            // The tree without a name has a gate of its own: its handles are others.
            if id == TreeId::NAMELESS || named.space().ok() == Some(Space::Nameless) {
                named.set_dropped();
                open.remove(&*name);
            } else {
                named.set_id(id);
            }
        }
        let added_count = dead.into_iter().map(|id| self.reclaimer.add(id)).sum();
        drop((open, holder));
        self.reclaimer.help(engine, added_count);
        Ok(())
    }
}
