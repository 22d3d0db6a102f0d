//! A request and all that its execution may touch.

use std::borrow::Cow;

use hikv::Store;
use resp::{Reply, Request};

use crate::changes;
use crate::databases::Slot;
use crate::errors::Refusal;
use crate::notify::Class;
use crate::session::Session;
use crate::shared::{Shared, Tally};

pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    pub(crate) request: Request<'a>,
    pub(crate) reply: Reply<'a>,
    pub(crate) tally: &'a mut Tally,
}

impl<'a> Call<'a> {
    pub(crate) fn store(&self) -> &'a Store {
        &self.shared.store
    }

    /// Argument number `index`.
    pub(crate) fn argument(&self, index: usize) -> &'a [u8] {
        self.request.argument(index)
    }

    /// Argument number `index`, a whole number.
    pub(crate) fn integer(&self, index: usize) -> Result<i64, Refusal> {
        resp::parse_integer(self.argument(index)).ok_or(Refusal::NotAnInteger)
    }

    /// The selected database.
    pub(crate) fn slot(&self) -> Slot {
        self.shared.databases.slot(self.session.db)
    }

    /// Argument number `index`, a key, as the store calls it.
    pub(crate) fn key(&self, index: usize) -> Cow<'a, [u8]> {
        self.slot().raw(self.argument(index))
    }

    /// Says that the key that is argument number `index` was changed: to those who watch it, and to those who listen.
    pub(crate) fn changed(&self, class: Class, event: &str, index: usize) {
        self.changed_key(class, event, self.session.db, self.argument(index));
    }

    /// As [`Call::changed`], of any key.
    pub(crate) fn changed_key(&self, class: Class, event: &str, db: u8, key: &[u8]) {
        changes::tell(self.shared, class, event, db, key);
    }

    pub(crate) fn ok(&mut self) {
        self.reply.simple("OK");
    }
}
