//! Groups of commands: stores and deletes, which share a sync, and retrieves, whose memory accesses overlap.
//!
//! The commands of a turn keep their order: a command of another kind first executes the collected group.

use arrayvec::ArrayVec;
use hikv::Store;
use nvme::{Key, Status};

use crate::apply::{status_of, status_of_read};
use crate::limits;
use crate::reply::Reply;

type Gathered<T> = ArrayVec<T, { limits::GROUP_COUNT }>;

/// Collected commands; their values stay in the input. No group is full between two commands.
#[derive(Default)]
pub(crate) struct Group<'i> {
    stores: Gathered<(u16, Key, &'i [u8])>,
    /// The flag makes a missing key an error.
    deletes: Gathered<(u16, Key, bool)>,
    retrieves: Gathered<(u16, Key, usize)>,
    buffer_bytes: usize,
}

impl<'i> Group<'i> {
    /// Adds a store.
    pub(crate) fn store(&mut self, store: &Store, reply: &mut Reply<'_>, id: u16, key: Key, value: &'i [u8]) {
        self.carry_out_deletes(store, reply);
        self.carry_out_retrieves(store, reply);
        self.stores.push((id, key, value));
        if self.stores.is_full() {
            self.carry_out_stores(store, reply);
        }
    }

    /// Adds a delete of a key, which may be missing unless `must_exist`.
    pub(crate) fn delete(&mut self, store: &Store, reply: &mut Reply<'_>, id: u16, key: Key, must_exist: bool) {
        self.carry_out_stores(store, reply);
        self.carry_out_retrieves(store, reply);
        self.deletes.push((id, key, must_exist));
        if self.deletes.is_full() {
            self.carry_out_deletes(store, reply);
        }
    }

    /// Adds a retrieve with a buffer of `buffer_bytes`.
    pub(crate) fn retrieve(&mut self, store: &Store, reply: &mut Reply<'_>, id: u16, key: Key, buffer_bytes: usize) {
        self.carry_out_stores(store, reply);
        self.carry_out_deletes(store, reply);
        self.retrieves.push((id, key, buffer_bytes));
        self.buffer_bytes += buffer_bytes;
        if self.retrieves.is_full() || self.buffer_bytes >= limits::OUTPUT_BYTES_MAX {
            self.carry_out_retrieves(store, reply);
        }
    }

    /// Executes the collected commands.
    pub(crate) fn carry_out(&mut self, store: &Store, reply: &mut Reply<'_>) {
        self.carry_out_stores(store, reply);
        self.carry_out_deletes(store, reply);
        self.carry_out_retrieves(store, reply);
    }

    fn carry_out_stores(&mut self, store: &Store, reply: &mut Reply<'_>) {
        if self.stores.is_empty() {
            return;
        }
        let items: Gathered<_> = self.stores.iter().map(|(_, key, value)| (key.as_bytes(), *value)).collect();
        // Each store is completed with its own outcome. None is repeated, because that would overwrite values that
        // other hosts have stored in between.
        let mut outcomes: Gathered<Result<(), Status>> = items.iter().map(|_| Ok(())).collect();
        hikv::FrontEnd::of(store)
            .multi_put_each(&items, |number, done| outcomes[number] = done.map_err(|error| status_of(&error)));
        drop(items);
        for ((id, ..), outcome) in self.stores.drain(..).zip(outcomes) {
            reply.conclude(id, outcome.map(|()| 0));
        }
    }

    fn carry_out_deletes(&mut self, store: &Store, reply: &mut Reply<'_>) {
        if self.deletes.is_empty() {
            return;
        }
        let keys: Gathered<_> = self.deletes.iter().map(|(_, key, _)| key.as_bytes()).collect();
        let mut outcomes: Gathered<Result<bool, Status>> = keys.iter().map(|_| Ok(false)).collect();
        hikv::FrontEnd::of(store)
            .multi_delete_each(&keys, |number, done| outcomes[number] = done.map_err(|error| status_of(&error)));
        drop(keys);
        for ((id, _, must_exist), outcome) in self.deletes.drain(..).zip(outcomes) {
            let is_done = |was_there| if was_there || !must_exist { Ok(0) } else { Err(Status::KEY_NOT_FOUND) };
            reply.conclude(id, outcome.and_then(is_done));
        }
    }

    fn carry_out_retrieves(&mut self, store: &Store, reply: &mut Reply<'_>) {
        match &self.retrieves[..] {
            [] => return,
            [(id, key, buffer_bytes)] => retrieve(store, reply, *id, key, *buffer_bytes),
            gathered => retrieve_all(store, reply, gathered),
        }
        self.retrieves.clear();
        self.buffer_bytes = 0;
    }
}

fn retrieve_all(store: &Store, reply: &mut Reply<'_>, gathered: &[(u16, Key, usize)]) {
    let keys: Gathered<_> = gathered.iter().map(|(_, key, _)| key.as_bytes()).collect();
    let mut shown_count = 0;
    let outcome = store.in_place().multi_get(&keys, |number, value| {
        let (id, _, buffer_bytes) = gathered[number];
        show(reply, id, buffer_bytes, value);
        shown_count = number + 1;
    });
    if outcome.is_err() {
        let rest = &gathered[shown_count..];
        rest.iter().for_each(|(id, key, buffer_bytes)| retrieve(store, reply, *id, key, *buffer_bytes));
    }
}

fn retrieve(store: &Store, reply: &mut Reply<'_>, id: u16, key: &Key, buffer_bytes: usize) {
    match store.in_place().get(key.as_bytes(), |value| show(reply, id, buffer_bytes, Some(value))) {
        Ok(Some(())) => {}
        Ok(None) => show(reply, id, buffer_bytes, None),
        Err(error) => reply.conclude(id, Err(status_of_read(&error))),
    }
}

/// Sends as much of a value as the host's buffer holds, and its full length.
fn show(reply: &mut Reply<'_>, id: u16, buffer_bytes: usize, value: Option<&[u8]>) {
    match value {
        Some(value) => reply.value(id, value, buffer_bytes),
        None => reply.conclude(id, Err(Status::KEY_NOT_FOUND)),
    }
}
