//! A host with one queue, which connects again by itself.

use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nvme::{Admin, Digests, Items, Key, Keys, Kv, Status, StoreIf};

use crate::controller::{Controller, discover_at};
use crate::operation::{NAMESPACE, Operation, Outcome};
use crate::patience::{AGAIN_EVERY, Patience};
use crate::queue::{Completed, Host, Queue};
use crate::several::run_some;
use crate::{Endpoint, Error};

/// Room for a list, or a range.
const LIST_BYTES: usize = 64 << 10;

/// A key and its value.
pub type Item = (Vec<u8>, Vec<u8>);

/// How a client connects.
#[derive(Clone, Debug)]
pub struct Options {
    /// The subsystem's name; by default the one that the device tells of.
    pub subsystem: Option<String>,
    /// The host that connects; by default a host that nobody has seen before.
    pub host: Host,
    /// Commands at a time.
    pub entry_count: u16,
    /// Digests of what travels.
    pub digests: Digests,
    /// How long it is tried to connect again when a connection breaks, and to do something on new connections that break.
    pub reconnect_max: Duration,
    /// How long the device may take for an answer; for ever, if it is `None`. Beyond it is unknown what became of the command, which is
    /// not repeated.
    pub timeout: Option<Duration>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            subsystem: None,
            host: Host::new(),
            entry_count: 128,
            digests: Digests::default(),
            reconnect_max: Duration::from_secs(10),
            timeout: Some(Duration::from_secs(30)),
        }
    }
}

/// A client of a device.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    subsystem: String,
    options: Options,
    link: Option<Link>,
    /// A controller that was given up, and may have commands that are not carried out yet.
    given_up: Option<u16>,
}

#[derive(Debug)]
struct Link {
    queue: Queue,
    /// Ends with its connection, and the queue with it.
    controller: Controller,
}

impl Client {
    /// Connects to the device at `addr`, of a name at the first of its addresses that takes a connection.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn connect(addr: impl ToSocketAddrs, options: Options) -> Result<Client, Error> {
        Client::at(Endpoint::of_name(addr)?, options)
    }

    /// Connects to the device on this machine that shares memory by the socket at `path`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn connect_shm(path: impl AsRef<Path>, options: Options) -> Result<Client, Error> {
        Client::at(path.as_ref().into(), options)
    }

    fn at(endpoint: Endpoint, options: Options) -> Result<Client, Error> {
        let endpoint = endpoint.with_timeout(options.timeout);
        let subsystem = match &options.subsystem {
            Some(name) => name.clone(),
            None => {
                let log = discover_at(&endpoint)?;
                let found = log.entries.into_iter().find(|entry| !entry.is_discovery);
                found.ok_or(Error::Unexpected("it tells of no subsystem"))?.subsystem
            }
        };
        let mut client = Client { endpoint, subsystem, options, link: None, given_up: None };
        client.link = Some(client.open()?);
        Ok(client)
    }

    /// The subsystem's name.
    #[must_use]
    pub fn subsystem(&self) -> &str {
        &self.subsystem
    }

    /// The controller, for what it says of itself.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn controller(&mut self) -> Result<&mut Controller, Error> {
        Ok(&mut self.link()?.controller)
    }

    /// Stores a value under a key of 1 to 16 bytes.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn store(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.store_if(key, value, StoreIf::Always).map(drop)
    }

    /// Stores a value if that holds; false if it does not.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::Unknown`] if the connection broke before it was completed, which it may be.
    pub fn store_if(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, when: StoreIf) -> Result<bool, Error> {
        let (key, value) = (key.as_ref(), value.as_ref());
        match self.one(Operation::Store { key, value, when })? {
            Outcome::Failed(status) => Err(status.into()),
            outcome => Ok(outcome == Outcome::Done),
        }
    }

    /// A key's value.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn retrieve(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        match self.one(Operation::Retrieve { key: key.as_ref() })? {
            Outcome::Value(value) => Ok(Some(value)),
            Outcome::Failed(status) => Err(status.into()),
            _ => Ok(None),
        }
    }

    /// Deletes a key, which need not be there.
    ///
    /// # Errors
    /// See [`Error`]; a device may be told to refuse it for keys that are not there.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        match self.one(Operation::Delete { key: key.as_ref() })? {
            Outcome::Done => Ok(()),
            Outcome::Missing => Err(nvme::Status::KEY_NOT_FOUND.into()),
            Outcome::Failed(status) => Err(status.into()),
            _ => Err(Error::Unexpected("it deletes, and says something else")),
        }
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn exists(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        match self.one(Operation::Exist { key: key.as_ref() })? {
            Outcome::Failed(status) => Err(status.into()),
            outcome => Ok(outcome == Outcome::Done),
        }
    }

    /// Keys in order from `from` on; an empty `from` is the beginning. At most what 64 KiB hold: to go on, begin behind the last.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn list(&mut self, from: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>, Error> {
        let from = key_of(from.as_ref())?;
        let list = Kv::List { from, buffer_bytes: LIST_BYTES as u32 };
        let completed = self.repeat(|queue| run(queue, list, LIST_BYTES))?;
        Ok(Keys::new(&completed.data).map(<[u8]>::to_vec).collect())
    }

    /// Keys and values in order from `from` on, as many as 64 KiB hold, or one that is longer; none at the end.
    ///
    /// # Errors
    /// See [`Error`]. [`Error::Refused`] by devices that have no such command.
    pub fn range(&mut self, from: impl AsRef<[u8]>) -> Result<Vec<Item>, Error> {
        let from = key_of(from.as_ref())?;
        let range = Kv::Range { from, buffer_bytes: LIST_BYTES as u32 };
        loop {
            let completed = self.repeat(|queue| run(queue, range, LIST_BYTES))?;
            let items: Vec<_> =
                Items::new(&completed.data).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            if !items.is_empty() || completed.result <= LIST_BYTES as u64 {
                return Ok(items);
            }
            // With its key the longest value takes more room than any command may have.
            for key in self.list(from.as_bytes())? {
                if let Some(value) = self.retrieve(&key)? {
                    return Ok(vec![(key, value)]);
                }
            }
        }
    }

    /// Has the device make durable what was completed, should it not be.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn flush(&mut self) -> Result<(), Error> {
        self.repeat(|queue| run(queue, Kv::Flush, 0)).map(drop)
    }

    /// Does all of `operations`, as many at a time as the queue takes, in no order that can be relied on. Where the connection breaks
    /// it is made again, and what was not completed is repeated: all but conditional stores, of which it is then unknown whether
    /// they were done. A repeated store may come after another client's, but before whatever this client does later: devices of hikv are
    /// told to carry out nothing more of the connection that broke.
    ///
    /// # Errors
    /// See [`Error`]: some may be done. With [`Error::KeyLength`] none is.
    pub fn run<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        operations: &[Operation<K, V>],
    ) -> Result<Vec<Outcome>, Error> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; operations.len()];
        self.run_with(operations, |number, outcome| outcomes[number] = Some(outcome.to_owned()))?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// As [`Client::run`], and `on_result` is told what came of each operation, by its number, as soon as that is known. A value is shown where it
    /// has arrived, and copied by nobody else.
    ///
    /// # Errors
    /// As for [`Client::run`]; what came of some may have been told.
    pub fn run_with<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        operations: &[Operation<K, V>],
        mut on_result: impl FnMut(usize, Outcome<&[u8]>),
    ) -> Result<(), Error> {
        // Before the first is sent: none is left behind on the queue.
        operations.iter().try_for_each(|operation| operation.command().map(drop))?;
        let mut is_done = vec![false; operations.len()];
        let mut patience = Patience::new(self.options.reconnect_max);
        loop {
            let entry_count = self.options.entry_count;
            match run_some(&mut self.link()?.queue, entry_count, operations, &mut is_done, &mut on_result) {
                Ok(()) => return Ok(()),
                Err((error, submitted)) => {
                    let lasts = patience.lasts(is_done.iter().filter(|is_done| **is_done).count());
                    self.recover(error, lasts, submitted.iter().all(|number| operations[*number].is_repeatable()))?;
                }
            }
        }
    }

    fn one(&mut self, operation: Operation<&[u8], &[u8]>) -> Result<Outcome, Error> {
        let mut on_result = None;
        self.run_with(&[operation], |_, outcome| on_result = Some(outcome.to_owned()))?;
        on_result.ok_or(Error::Unexpected("an operation without an outcome"))
    }

    /// After an error: whether it is worth another connection, if patience lasts, and what was under way can be repeated.
    fn recover(&mut self, error: Error, lasts: bool, are_repeatable: bool) -> Result<(), Error> {
        if !error.is_of_connection() {
            return Err(error);
        }
        if let Some(link) = self.link.take() {
            self.given_up = Some(link.controller.admin.controller);
        }
        match error {
            // A device that hangs would hang again.
            Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => Err(Error::Unknown(error)),
            _ if lasts && are_repeatable => Ok(()),
            Error::Io(error) => Err(Error::Unknown(error)),
            other => Err(Error::Unknown(io::Error::other(other.to_string()))),
        }
    }

    fn repeat(&mut self, mut run: impl FnMut(&mut Queue) -> Result<Completed, Error>) -> Result<Completed, Error> {
        let mut patience = Patience::new(self.options.reconnect_max);
        loop {
            match run(&mut self.link()?.queue) {
                Err(error) => self.recover(error, patience.lasts(0), true)?,
                done => return done,
            }
        }
    }

    /// The connection, made again if it is broken.
    fn link(&mut self) -> Result<&mut Link, Error> {
        if self.link.is_none() {
            (self.link, self.given_up) = (Some(self.open_again()?), None);
        }
        self.link.as_mut().ok_or(Error::Unexpected("a connection that was made is not there"))
    }

    fn open_again(&self) -> Result<Link, Error> {
        let began = Instant::now();
        loop {
            match self.open() {
                Err(error) if error.is_of_connection() && began.elapsed() < self.options.reconnect_max => {
                    thread::sleep(AGAIN_EVERY);
                }
                opened => return opened,
            }
        }
    }

    fn open(&self) -> Result<Link, Error> {
        let Options { host, digests, entry_count, .. } = &self.options;
        let mut controller = Controller::connect(self.endpoint.clone(), *digests, host, &self.subsystem, 0)?;
        if let Some(number) = self.given_up {
            match controller.admin(Admin::EndController { number }, 0, 0) {
                // Devices of others have no such command.
                Err(Error::Refused(status)) if status.is(Status::INVALID_OPCODE) => {}
                ended => drop(ended?),
            }
        }
        Ok(Link { queue: controller.queue(1, *entry_count)?, controller })
    }
}

fn key_of(bytes: &[u8]) -> Result<Key, Error> {
    Key::new(bytes).ok_or(Error::KeyLength { len_bytes: bytes.len() })
}

fn run(queue: &mut Queue, kv: Kv, buffer_bytes: usize) -> Result<Completed, Error> {
    let id = queue.submit(kv.command(0, NAMESPACE), &[], buffer_bytes);
    Ok(queue.complete_one(id)?.done()?)
}
