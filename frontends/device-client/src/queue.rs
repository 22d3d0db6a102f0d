//! A queue: a connection to a controller. Commands are sent in order, and completed in any order.

use nvme::{Command, Completion, Connect, ConnectData, Data, Digests, Fabrics, Pdu, Ready, Sgl, Status};

use crate::auth::{Secrets, authenticate};
use crate::by_id::ById;
use crate::{Endpoint, Error, Wire};

/// A connecting host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The host's name.
    pub name: String,
    /// Its identifier.
    pub id: [u8; 16],
    /// The secrets for devices that require authentication.
    pub secrets: Option<Secrets>,
}

impl Host {
    /// Creates a host with a new name and identifier.
    #[must_use]
    pub fn new() -> Host {
        let uuid = uuid::Uuid::new_v4();
        Host { name: format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}"), id: uuid.into_bytes(), secrets: None }
    }
}

impl Default for Host {
    fn default() -> Host {
        Host::new()
    }
}

/// A completed command, with owned or borrowed data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completed<D = Vec<u8>> {
    /// Its identifier.
    pub id: u16,
    /// Its status.
    pub status: Status,
    /// Its result.
    pub result: u64,
    /// The data that came with it.
    pub data: D,
    /// The caller's number of the command.
    pub(crate) number: usize,
}

impl Completed<&[u8]> {
    fn to_owned(&self) -> Completed {
        let Completed { id, status, result, data, number } = *self;
        Completed { id, status, result, data: data.to_vec(), number }
    }
}

impl Completed {
    pub(crate) fn borrowed(&self) -> Completed<&[u8]> {
        let Completed { id, status, result, ref data, number } = *self;
        Completed { id, status, result, data, number }
    }
}

impl<D> Completed<D> {
    /// Returns the completion of a successful command.
    ///
    /// # Errors
    /// Its status, if it failed.
    pub fn done(self) -> Result<Completed<D>, Status> {
        if self.status.is_success() { Ok(self) } else { Err(self.status) }
    }
}

#[derive(Default, Debug)]
struct Pending {
    value: Vec<u8>,
    /// Data received so far, if it arrives in parts.
    received: Vec<u8>,
    buffer_bytes: usize,
    /// The caller's number of the command.
    number: usize,
}

/// A queue of a controller.
#[derive(Debug)]
pub struct Queue {
    wire: Wire,
    /// The controller's number.
    pub controller: u16,
    /// Maximum data in a command capsule.
    capsule_bytes_max: usize,
    pending: ById<Pending>,
    id_next: u16,
}

/// The data of Connect is in its capsule, whatever the queue accepts otherwise.
const CAPSULE_BYTES: usize = 8192;

impl Queue {
    /// Connects to queue `number` of `controller`, for `entry_count` commands in flight.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn connect(
        endpoint: impl Into<Endpoint>,
        digests: Digests,
        host: &Host,
        subsystem: &str,
        (controller, number): (u16, u16),
        (entry_count, keep_alive_ms): (u16, u32),
    ) -> Result<Queue, Error> {
        let wire = Wire::open(endpoint, digests)?;
        let mut queue =
            Queue { wire, controller, capsule_bytes_max: CAPSULE_BYTES, pending: ById::default(), id_next: 0 };
        let connect =
            Connect { queue: number, queue_entries: entry_count.saturating_sub(1), keep_alive_ms, attributes: 0 };
        let data =
            ConnectData { host_id: host.id, controller, subsystem: subsystem.to_owned(), host: host.name.clone() };
        let id = queue.submit(Fabrics::Connect(connect).command(0), &data.encode(), 0);
        let completed = queue.complete_one(id)?;
        let result = completed.done()?.result;
        queue.controller = result as u16;
        if result & nvme::AUTHENTICATION_ASKED != 0 {
            authenticate(&mut queue, host, subsystem)?;
        } else if host.secrets.as_ref().is_some_and(|secrets| secrets.controller.is_some()) {
            // A program that impersonates the device would omit the challenge.
            return Err(Error::Authentication("the device does not prove its secret"));
        }
        Ok(queue)
    }

    /// Creates a queue of a connection on which Connect is completed, for tools that send Connect themselves.
    #[must_use]
    pub fn of(wire: Wire) -> Queue {
        Queue { wire, controller: 0, capsule_bytes_max: CAPSULE_BYTES, pending: ById::default(), id_next: 1 }
    }

    /// Returns the number of pending commands.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Returns the wire, for tools that send other data than commands.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// Submits a command with a value and a buffer for data, and returns its new identifier.
    pub fn submit(&mut self, command: Command, value: &[u8], buffer_bytes: usize) -> u16 {
        self.submit_for(0, command, value, buffer_bytes)
    }

    /// The same, with the caller's number of the command.
    pub(crate) fn submit_for(&mut self, number: usize, command: Command, value: &[u8], buffer_bytes: usize) -> u16 {
        let id = self.pending.next_free(self.id_next);
        self.id_next = id;
        let is_in_capsule = !value.is_empty() && value.len() <= self.capsule_bytes_max;
        let sgl = if is_in_capsule {
            Sgl::InCapsule { offset: 0, len_bytes: value.len() as u32 }
        } else {
            Sgl::Transport { len_bytes: value.len().max(buffer_bytes) as u32 }
        };
        let command = command.with_id(id).with_sgl(sgl);
        let in_capsule = if is_in_capsule { value } else { &[] };
        self.wire.write(|writer, out| writer.command(out, &command, in_capsule));
        let value = if is_in_capsule { Vec::new() } else { value.to_vec() };
        self.pending.insert(id, Pending { value, received: Vec::new(), buffer_bytes, number });
        id
    }

    /// Returns the callers' numbers of the pending commands.
    pub(crate) fn pending_numbers(&self) -> impl Iterator<Item = usize> {
        self.pending.values().map(|pending| pending.number)
    }

    /// Sends the submitted commands, and waits for the next completion.
    ///
    /// # Errors
    /// See [`Error`]; the queue cannot be used any more.
    pub fn complete(&mut self) -> Result<Completed, Error> {
        self.complete_with(|completed| completed.to_owned())
    }

    /// The same, and passes the completion to `shown`, with the data in place.
    pub(crate) fn complete_with<R>(&mut self, mut shown: impl FnMut(&Completed<&[u8]>) -> R) -> Result<R, Error> {
        self.wire.send()?;
        loop {
            match self.completed_with(&mut shown)? {
                Some(shown) => return Ok(shown),
                None => self.wire.fill()?,
            }
        }
    }

    /// Passes the next completion to `shown`, if one has arrived. Sends nothing except values that the device requests,
    /// and does not wait.
    pub(crate) fn completed_with<R>(&mut self, shown: impl FnOnce(&Completed<&[u8]>) -> R) -> Result<Option<R>, Error> {
        loop {
            let Some((pdu, len_bytes)) = self.wire.next(0)? else { return Ok(None) };
            let done = match pdu {
                Pdu::Completion(completion) => Some((completion, &[][..], len_bytes)),
                Pdu::Data(data) => {
                    let pending = pending_with_space(self.pending.get_mut(data.id), &data)?;
                    match completion_behind(&self.wire, &data, len_bytes)? {
                        Some((completion, len_bytes)) if data.offset == 0 => Some((completion, data.bytes, len_bytes)),
                        behind => {
                            pending.received.extend_from_slice(data.bytes);
                            behind.map(|(completion, len_bytes)| (completion, &[][..], len_bytes))
                        }
                    }
                }
                Pdu::Ready(ready) => {
                    self.wire.consume(len_bytes);
                    self.give_value(&ready)?;
                    continue;
                }
                _ => return Err(Error::Unexpected("PDU out of sequence")),
            };
            let Some((completion, data, len_bytes)) = done else {
                self.wire.consume(len_bytes);
                continue;
            };
            let Completion { id, status, result, .. } = completion;
            let pending = self.pending.remove(id).ok_or(Error::Unexpected("completion of an unknown command"))?;
            let data = if data.is_empty() { &pending.received } else { data };
            let shown = shown(&Completed { id, status, result, data, number: pending.number });
            self.wire.consume(len_bytes);
            return Ok(Some(shown));
        }
    }

    /// Like [`Queue::complete`], for the only pending command.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn complete_one(&mut self, id: u16) -> Result<Completed, Error> {
        let completed = self.complete()?;
        if completed.id == id { Ok(completed) } else { Err(Error::Unexpected("completion of another command")) }
    }

    fn give_value(&mut self, ready: &Ready) -> Result<(), Error> {
        let pending = self.pending.get_mut(ready.id).ok_or(Error::Unexpected("data request for an unknown command"))?;
        let (start, len) = (ready.offset as usize, ready.len_bytes as usize);
        let part = start.checked_add(len).and_then(|end| pending.value.get(start..end));
        let part = part.filter(|part| !part.is_empty()).ok_or(Error::Unexpected("data request beyond the value"))?;
        let mut offset = ready.offset;
        let mut pieces = part.chunks(self.wire.data_bytes_max).peekable();
        while let Some(bytes) = pieces.next() {
            let is_last = pieces.peek().is_none();
            let data = Data { id: ready.id, tag: ready.tag, offset, is_last, is_success: false, bytes };
            self.wire.write(|writer, out| writer.data(out, &data));
            self.wire.send()?;
            offset += bytes.len() as u32;
        }
        Ok(())
    }
}

/// Returns the completion that follows a command's last data, a PDU of `len_bytes`, if it has already arrived, with the
/// length of both.
fn completion_behind(wire: &Wire, data: &Data<'_>, len_bytes: usize) -> Result<Option<(Completion, usize)>, Error> {
    if !data.is_last {
        return Ok(None);
    }
    if data.is_success {
        // The data also stands for the completion: it is all there is.
        let result = u64::from(data.offset) + data.bytes.len() as u64;
        let completion = Completion { result, queue_head: 0, id: data.id, status: Status::SUCCESS };
        return Ok(Some((completion, len_bytes)));
    }
    Ok(match wire.next(len_bytes)? {
        Some((Pdu::Completion(completion), more_bytes)) if completion.id == data.id => {
            Some((completion, len_bytes + more_bytes))
        }
        _ => None,
    })
}

/// Returns the command of the data, if its buffer has space after the data received so far.
fn pending_with_space<'p>(pending: Option<&'p mut Pending>, data: &Data<'_>) -> Result<&'p mut Pending, Error> {
    let pending = pending.ok_or(Error::Unexpected("data of an unknown command"))?;
    let end = pending.received.len() + data.bytes.len();
    if data.offset as usize != pending.received.len() || end > pending.buffer_bytes {
        return Err(Error::Unexpected("data beyond the buffer"));
    }
    Ok(pending)
}
