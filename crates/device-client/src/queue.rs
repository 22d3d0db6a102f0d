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

/// A command that is completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completed {
    /// Its identifier.
    pub id: u16,
    /// What became of it.
    pub status: Status,
    /// What it says besides.
    pub result: u64,
    /// The data that came with it.
    pub data: Vec<u8>,
}

impl Completed {
    /// The result of a command that was done.
    ///
    /// # Errors
    /// Its status, if it was not.
    pub fn done(self) -> Result<Completed, Status> {
        if self.status.is_success() { Ok(self) } else { Err(self.status) }
    }
}

#[derive(Default, Debug)]
struct Pending {
    value: Vec<u8>,
    received: Vec<u8>,
    room_bytes: usize,
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
    pub fn submit(&mut self, command: Command, value: &[u8], room_bytes: usize) -> u16 {
        let id = self.pending.next_free(self.id_next);
        self.id_next = id;
        let is_in_capsule = !value.is_empty() && value.len() <= self.capsule_bytes_max;
        let sgl = if is_in_capsule {
            Sgl::InCapsule { offset: 0, len_bytes: value.len() as u32 }
        } else {
            Sgl::Transport { len_bytes: value.len().max(room_bytes) as u32 }
        };
        let command = command.with_id(id).with_sgl(sgl);
        let in_capsule = if is_in_capsule { value } else { &[] };
        self.wire.write(|writer, out| writer.command(out, &command, in_capsule));
        let value = if is_in_capsule { Vec::new() } else { value.to_vec() };
        self.pending.insert(id, Pending { value, received: Vec::new(), room_bytes });
        id
    }

    /// Sends what was submitted, and waits for the next completion.
    ///
    /// # Errors
    /// See [`Error`]; the queue is of no use any more.
    pub fn complete(&mut self) -> Result<Completed, Error> {
        loop {
            let pending = &mut self.pending;
            let event = self.wire.receive(|pdu| event_of(pending, pdu))?;
            if let Some(completed) = self.note(event)? {
                return Ok(completed);
            }
        }
    }

    /// The next completion that has arrived, if one has: nothing is sent, and nothing waited for.
    ///
    /// # Errors
    /// See [`Error`]; the queue is of no use any more.
    pub fn completed(&mut self) -> Result<Option<Completed>, Error> {
        loop {
            let pending = &mut self.pending;
            let Some(event) = self.wire.arrived(|pdu| event_of(pending, pdu))? else { return Ok(None) };
            if let Some(completed) = self.note(event)? {
                return Ok(Some(completed));
            }
        }
    }

    /// The command that is completed with an event, if one is.
    fn note(&mut self, event: Event) -> Result<Option<Completed>, Error> {
        match event {
            Event::Completion(completion) => self.end(&completion).map(Some),
            Event::Ready(ready) => self.give_value(&ready).map(|()| None),
            Event::Data(None) => Ok(None),
            // The data stands for the completion as well.
            Event::Data(Some(id)) => {
                self.end(&Completion { result: 0, queue_head: 0, id, status: Status::SUCCESS }).map(Some)
            }
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

    fn end(&mut self, completion: &Completion) -> Result<Completed, Error> {
        let pending = self.pending.remove(completion.id).ok_or(Error::Unexpected("a completion of no command"))?;
        let Completion { id, status, result, .. } = *completion;
        Ok(Completed { id, status, result, data: pending.received })
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

enum Event {
    Completion(Completion),
    Ready(Ready),
    /// The command that is done with it, if it says so.
    Data(Option<u16>),
}

fn event_of(pending: &mut ById<Pending>, pdu: Pdu<'_>) -> Result<Event, Error> {
    match pdu {
        Pdu::Completion(completion) => Ok(Event::Completion(completion)),
        Pdu::Ready(ready) => Ok(Event::Ready(ready)),
        Pdu::Data(data) => take_data(pending, &data).map(Event::Data),
        _ => Err(Error::Unexpected("a PDU that may not come now")),
    }
}

fn take_data(pending: &mut ById<Pending>, data: &Data<'_>) -> Result<Option<u16>, Error> {
    let pending = pending.get_mut(data.id).ok_or(Error::Unexpected("data of no command"))?;
    let end = pending.received.len() + data.bytes.len();
    if data.offset as usize != pending.received.len() || end > pending.room_bytes {
        return Err(Error::Unexpected("data for which there is no room"));
    }
    pending.received.extend_from_slice(data.bytes);
    Ok((data.is_last && data.is_success).then_some(data.id))
}
