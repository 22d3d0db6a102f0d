//! A host with one queue, which reconnects automatically.

use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nvme::{Admin, Digests, Items, Key, Keys, Kv, Status, StoreIf};

use crate::controller::{Controller, discover_at};
use crate::operation::{NAMESPACE, Operation, Outcome};
use crate::queue::{Completed, Host, Queue};
use crate::retry_limit::{RETRY_INTERVAL, RetryLimit};
use crate::several::run_some;
use crate::{Endpoint, Error};

/// Buffer size of a list or a range.
const LIST_BYTES: usize = 64 << 10;

/// A key and its value.
pub type Item = (Vec<u8>, Vec<u8>);

/// The options of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// The subsystem's name; by default the one that the device reports.
    pub subsystem: Option<String>,
    /// The connecting host; by default a new one.
    pub host: Host,
    /// Maximum number of commands in flight.
    pub entry_count: u16,
    /// Digests of transferred data.
    pub digests: Digests,
    /// Maximum time to retry connecting after a connection breaks, and to retry a command on new connections that
    /// break.
    pub reconnect_max: Duration,
    /// Maximum time for a response; unlimited if `None`. After a timeout the command's outcome is unknown, and it is
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
    /// An abandoned controller that may still execute commands.
    given_up: Option<u16>,
}

#[derive(Debug)]
struct Link {
    queue: Queue,
    /// Ends with its connection, and the queue with it.
    controller: Controller,
}

impl Client {
    /// Connects to the device at `addr`; for a name, at the first of its addresses that accepts a connection.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn connect(addr: impl ToSocketAddrs, options: Options) -> Result<Client, Error> {
        Client::at(Endpoint::of_name(addr)?, options)
    }

    /// Connects to the device on this machine that shares memory through the socket at `path`.
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
                found.ok_or(Error::Unexpected("the device reports no subsystem"))?.subsystem
            }
        };
        let mut client = Client { endpoint, subsystem, options, link: None, given_up: None };
        client.link = Some(client.open()?);
        Ok(client)
    }

    /// Returns the subsystem's name.
    #[must_use]
    pub fn subsystem(&self) -> &str {
        &self.subsystem
    }

    /// Returns the controller, for queries about it.
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

    /// Stores a value if the condition holds; returns false if it does not.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::Unknown`] if the connection broke before the completion, so that the outcome is unknown.
    pub fn store_if(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, when: StoreIf) -> Result<bool, Error> {
        let (key, value) = (key.as_ref(), value.as_ref());
        match self.one(Operation::Store { key, value, when })? {
            Outcome::Failed(status) => Err(status.into()),
            outcome => Ok(outcome == Outcome::Done),
        }
    }

    /// Returns a key's value.
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

    /// Deletes a key, which may be missing.
    ///
    /// # Errors
    /// See [`Error`]; a device may be configured to refuse missing keys.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        match self.one(Operation::Delete { key: key.as_ref() })? {
            Outcome::Done => Ok(()),
            Outcome::Missing => Err(nvme::Status::KEY_NOT_FOUND.into()),
            Outcome::Failed(status) => Err(status.into()),
            _ => Err(Error::Unexpected("unexpected outcome of a delete")),
        }
    }

    /// Returns whether the key exists.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn exists(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        match self.one(Operation::Exist { key: key.as_ref() })? {
            Outcome::Failed(status) => Err(status.into()),
            outcome => Ok(outcome == Outcome::Done),
        }
    }

    /// Returns keys in order from `from` on; an empty `from` is the beginning. Returns at most 64 KiB: to continue,
    /// start after the last key.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn list(&mut self, from: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>, Error> {
        let from = key_of(from.as_ref())?;
        let list = Kv::List { from, buffer_bytes: LIST_BYTES as u32 };
        let completed = self.repeat(|queue| run(queue, list, LIST_BYTES))?;
        Ok(Keys::new(&completed.data).map(<[u8]>::to_vec).collect())
    }

    /// Returns keys and values in order from `from` on: at most 64 KiB, or one longer item; empty at the end.
    ///
    /// # Errors
    /// See [`Error`]. [`Error::Refused`] from devices without this command.
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
            // With its key, the longest value exceeds the maximum buffer size of a command.
            for key in self.list(from.as_bytes())? {
                if let Some(value) = self.retrieve(&key)? {
                    return Ok(vec![(key, value)]);
                }
            }
        }
    }

    /// Makes completed writes durable, if the device does not do so itself.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn flush(&mut self) -> Result<(), Error> {
        self.repeat(|queue| run(queue, Kv::Flush, 0)).map(drop)
    }

    /// Runs all of `operations`, as many at a time as the queue holds, in unspecified order. If the connection breaks,
    /// it is made again and uncompleted operations are repeated. Exception: conditional stores, whose outcome is then
    /// unknown. A repeated store may overwrite another client's later store, but never a later operation of this
    /// client: hikv devices are made to execute nothing more from the broken connection.
    ///
    /// # Errors
    /// See [`Error`]: some operations may be done. With [`Error::KeyLength`] none is.
    pub fn run<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        operations: &[Operation<K, V>],
    ) -> Result<Vec<Outcome>, Error> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; operations.len()];
        self.run_with(operations, |number, outcome| outcomes[number] = Some(outcome.to_owned()))?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Like [`Client::run`], and calls `on_result` with the number and outcome of each operation as soon as it is
    /// known. A value is passed in place, without a copy.
    ///
    /// # Errors
    /// As for [`Client::run`]; some outcomes may have been reported.
    pub fn run_with<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        operations: &[Operation<K, V>],
        mut on_result: impl FnMut(usize, Outcome<&[u8]>),
    ) -> Result<(), Error> {
        // Checked before the first is sent, so that none is left on the queue.
        operations.iter().try_for_each(|operation| operation.command().map(drop))?;
        let mut is_done = vec![false; operations.len()];
        let mut retry_limit = RetryLimit::new(self.options.reconnect_max);
        loop {
            let entry_count = self.options.entry_count;
            match run_some(&mut self.link()?.queue, entry_count, operations, &mut is_done, &mut on_result) {
                Ok(()) => return Ok(()),
                Err((error, submitted)) => {
                    let may_retry = retry_limit.may_retry(is_done.iter().filter(|is_done| **is_done).count());
                    self.recover(error, may_retry, submitted.iter().all(|number| operations[*number].is_repeatable()))?;
                }
            }
        }
    }

    fn one(&mut self, operation: Operation<&[u8], &[u8]>) -> Result<Outcome, Error> {
        let mut on_result = None;
        self.run_with(&[operation], |_, outcome| on_result = Some(outcome.to_owned()))?;
        on_result.ok_or(Error::Unexpected("an operation without an outcome"))
    }

    /// After an error: prepares a retry if `may_retry`, and if the pending operations can be repeated; otherwise
    /// returns the error.
    fn recover(&mut self, error: Error, may_retry: bool, are_repeatable: bool) -> Result<(), Error> {
        if !error.is_of_connection() {
            return Err(error);
        }
        if let Some(link) = self.link.take() {
            self.given_up = Some(link.controller.admin.controller);
        }
        match error {
            // A device that hangs would hang again.
            Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => Err(Error::Unknown(error)),
            _ if may_retry && are_repeatable => Ok(()),
            Error::Io(error) => Err(Error::Unknown(error)),
            other => Err(Error::Unknown(io::Error::other(other.to_string()))),
        }
    }

    fn repeat(&mut self, mut run: impl FnMut(&mut Queue) -> Result<Completed, Error>) -> Result<Completed, Error> {
        let mut retry_limit = RetryLimit::new(self.options.reconnect_max);
        loop {
            match run(&mut self.link()?.queue) {
                Err(error) => self.recover(error, retry_limit.may_retry(0), true)?,
                done => return done,
            }
        }
    }

    /// Returns the connection, after reconnecting if it is broken.
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
                    thread::sleep(RETRY_INTERVAL);
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
                // Devices of other vendors lack this command.
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
