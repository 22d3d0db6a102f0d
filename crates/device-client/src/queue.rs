//! A queue: a connection that has connected to a controller. Commands are sent, and completed in any order.

use nvme::{Command, Completion, Connect, ConnectData, Data, Digests, Fabrics, Pdu, Ready, Sgl, Status};

use crate::auth::{Secrets, authenticate};
use crate::by_id::ById;
use crate::{Endpoint, Error, Wire};

/// A host that connects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The host's name.
    pub name: String,
    /// Its number.
    pub id: [u8; 16],
    /// What it shows to devices that ask for it.
    pub secrets: Option<Secrets>,
}

impl Host {
    /// A host that nobody has seen before.
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

/// A command that is completed, with data that it owns or that lies where it arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completed<D = Vec<u8>> {
    /// Its identifier.
    pub id: u16,
    /// What became of it.
    pub status: Status,
    /// What it says besides.
    pub result: u64,
    /// The data that came with it.
    pub data: D,
    /// What it was submitted for, by the caller's count.
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
    /// The result of a command that was done.
    ///
    /// # Errors
    /// Its status, if it was not.
    pub fn done(self) -> Result<Completed<D>, Status> {
        if self.status.is_success() { Ok(self) } else { Err(self.status) }
    }
}

#[derive(Default, Debug)]
struct Pending {
    value: Vec<u8>,
    /// Data that was not all there when the first of it was.
    received: Vec<u8>,
    buffer_bytes: usize,
    /// What it was submitted for.
    number: usize,
}

/// A queue of a controller.
#[derive(Debug)]
pub struct Queue {
    wire: Wire,
    /// The controller's number.
    pub controller: u16,
    /// Data that a command may bring in its capsule.
    capsule_bytes_max: usize,
    pending: ById<Pending>,
    id_next: u16,
}

/// The data of Connect is in its capsule, whatever a queue takes otherwise.
const CAPSULE_BYTES: usize = 8192;

impl Queue {
    /// Connects to queue `number` of `controller`, for so many commands at a time.
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
            // Whoever poses as the device would leave the question out.
            return Err(Error::Authentication("the device does not show that it knows its secret"));
        }
        Ok(queue)
    }

    /// A connection on which Connect is completed, for tools that send that themselves.
    #[must_use]
    pub fn of(wire: Wire) -> Queue {
        Queue { wire, controller: 0, capsule_bytes_max: CAPSULE_BYTES, pending: ById::default(), id_next: 1 }
    }

    /// Commands that are not completed.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// The wire, for tools that send what is no command.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// Sends a command with an identifier of its own, which is returned, with a value, and with room for data.
    pub fn submit(&mut self, command: Command, value: &[u8], buffer_bytes: usize) -> u16 {
        self.submit_for(0, command, value, buffer_bytes)
    }

    /// The same, for something that the caller has by this number.
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

    /// What the commands were submitted for that are not completed.
    pub(crate) fn pending_numbers(&self) -> impl Iterator<Item = usize> {
        self.pending.values().map(|pending| pending.number)
    }

    /// Sends what was submitted, and waits for the next completion.
    ///
    /// # Errors
    /// See [`Error`]; the queue is of no use any more.
    pub fn complete(&mut self) -> Result<Completed, Error> {
        self.complete_with(|completed| completed.to_owned())
    }

    /// The same, and shows it to `shown`, with the data where it lies.
    pub(crate) fn complete_with<R>(&mut self, mut shown: impl FnMut(&Completed<&[u8]>) -> R) -> Result<R, Error> {
        self.wire.send()?;
        loop {
            match self.completed_with(&mut shown)? {
                Some(shown) => return Ok(shown),
                None => self.wire.fill()?,
            }
        }
    }

    /// Shows the next completion that has arrived, if one has: nothing is sent, but for values that the device asks for, and nothing waited for.
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
                _ => return Err(Error::Unexpected("a PDU that may not come now")),
            };
            let Some((completion, data, len_bytes)) = done else {
                self.wire.consume(len_bytes);
                continue;
            };
            let Completion { id, status, result, .. } = completion;
            let pending = self.pending.remove(id).ok_or(Error::Unexpected("a completion of no command"))?;
            let data = if data.is_empty() { &pending.received } else { data };
            let shown = shown(&Completed { id, status, result, data, number: pending.number });
            self.wire.consume(len_bytes);
            return Ok(Some(shown));
        }
    }

    /// As [`Queue::complete`], for a command that is alone.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn complete_one(&mut self, id: u16) -> Result<Completed, Error> {
        let completed = self.complete()?;
        if completed.id == id { Ok(completed) } else { Err(Error::Unexpected("another command's completion")) }
    }

    fn give_value(&mut self, ready: &Ready) -> Result<(), Error> {
        let pending = self.pending.get_mut(ready.id).ok_or(Error::Unexpected("a request for data of no command"))?;
        let (start, len) = (ready.offset as usize, ready.len_bytes as usize);
        let part = start.checked_add(len).and_then(|end| pending.value.get(start..end));
        let part =
            part.filter(|part| !part.is_empty()).ok_or(Error::Unexpected("a request for data beyond the value"))?;
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

/// The completion that stands behind a command's last data, a PDU of so many bytes, if it is there by now; and how long the two are.
fn completion_behind(wire: &Wire, data: &Data<'_>, len_bytes: usize) -> Result<Option<(Completion, usize)>, Error> {
    if !data.is_last {
        return Ok(None);
    }
    if data.is_success {
        // The data stands for the completion as well: it is all that there is.
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

/// The command that data is of, which has room for the data behind what it has received.
fn pending_with_space<'p>(pending: Option<&'p mut Pending>, data: &Data<'_>) -> Result<&'p mut Pending, Error> {
    let pending = pending.ok_or(Error::Unexpected("data of no command"))?;
    let end = pending.received.len() + data.bytes.len();
    if data.offset as usize != pending.received.len() || end > pending.buffer_bytes {
        return Err(Error::Unexpected("data for which there is no room"));
    }
    Ok(pending)
}
