//! An established connection: PDUs over a socket.

use std::io::{ErrorKind, Read, Write};

use nvme::{Digests, Framing, InitialRequest, Pdu, Side, Writer};

use crate::endpoint::Stream;
use crate::{Endpoint, Error};

/// Maximum data of a PDU from a device: the longest value, and more than any page.
const DATA_BYTES_MAX: usize = 4 << 20;
const READ_BYTES: usize = 64 << 10;

/// A connection to a device, carrying PDUs in both directions.
#[derive(Debug)]
pub struct Wire {
    socket: Stream,
    framing: Framing,
    /// Writes PDUs for the device.
    pub writer: Writer,
    /// Maximum data of one PDU to the device.
    pub data_bytes_max: usize,
    output: Vec<u8>,
    /// As long as its capacity.
    input: Vec<u8>,
    /// Bytes of the input that were read, and that have arrived.
    read: usize,
    arrived: usize,
}

impl Wire {
    /// Connects, and negotiates the transport's parameters.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn open(endpoint: impl Into<Endpoint>, digests: Digests) -> Result<Wire, Error> {
        let socket = endpoint.into().open()?;
        let plain = Digests::default();
        let mut wire = Wire {
            socket,
            framing: Framing { side: Side::Host, digests: plain, capsule_bytes_max: 0, data_bytes_max: DATA_BYTES_MAX },
            writer: Writer { reader: Side::Controller, digests: plain, alignment: 0 },
            data_bytes_max: 0,
            output: Vec::new(),
            input: Vec::new(),
            read: 0,
            arrived: 0,
        };
        let request = InitialRequest { version: 0, alignment: 0, digests, ready_count_max: 0 };
        wire.write(|writer, out| writer.initial_request(out, &request));
        let response = wire.receive(|pdu| match pdu {
            Pdu::InitialResponse(response) => Ok(response),
            _ => Err(Error::Unexpected("invalid initial response")),
        })?;
        if response.version != 0 || response.alignment > 31 || response.data_bytes_max < 4096 {
            return Err(Error::Unexpected("initial response with unsupported parameters"));
        }
        wire.data_bytes_max = response.data_bytes_max as usize;
        wire.framing.digests = response.digests;
        wire.writer = Writer { digests: response.digests, alignment: response.alignment, ..wire.writer };
        Ok(wire)
    }

    /// Writes PDUs, which are sent before the next receive.
    pub fn write(&mut self, write: impl FnOnce(&Writer, &mut Vec<u8>)) {
        write(&self.writer, &mut self.output);
    }

    /// Sends the written PDUs.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send(&mut self) -> Result<(), Error> {
        self.socket.write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }

    /// Returns the socket, for tools that send other data than PDUs.
    pub fn socket(&mut self) -> &mut Stream {
        &mut self.socket
    }

    /// Sends the written PDUs, and passes the next PDU to `take`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn receive<R>(&mut self, mut take: impl FnMut(Pdu<'_>) -> Result<R, Error>) -> Result<R, Error> {
        self.send()?;
        loop {
            match self.arrived(&mut take)? {
                Some(taken) => return Ok(taken),
                None => self.fill()?,
            }
        }
    }

    /// Passes the next PDU to `take`, if it has arrived.
    fn arrived<R>(&mut self, take: impl FnOnce(Pdu<'_>) -> Result<R, Error>) -> Result<Option<R>, Error> {
        let Some((pdu, len_bytes)) = self.next(0)? else { return Ok(None) };
        let taken = take(pdu);
        self.consume(len_bytes);
        taken.map(Some)
    }

    /// Returns the PDU at `behind_bytes` after the consumed bytes, if it has arrived, with its length.
    pub(crate) fn next(&self, behind_bytes: usize) -> Result<Option<(Pdu<'_>, usize)>, Error> {
        match self.framing.next(&self.input[self.read + behind_bytes..self.arrived])? {
            Some((Pdu::Terminate { cause, information }, _)) => Err(Error::Terminated { cause, information }),
            Some((Pdu::CorruptData(_), _)) => Err(Error::Unexpected("data has a wrong digest")),
            next => Ok(next),
        }
    }

    /// Consumes bytes.
    pub(crate) fn consume(&mut self, len_bytes: usize) {
        self.read += len_bytes;
    }

    /// Waits for more bytes.
    pub(crate) fn fill(&mut self) -> Result<(), Error> {
        self.input.copy_within(self.read..self.arrived, 0);
        (self.read, self.arrived) = (0, self.arrived - self.read);
        // A long PDU extends it permanently, so the buffer is not zeroed again for each read.
        if self.input.len() - self.arrived < READ_BYTES {
            self.input.resize(self.arrived + READ_BYTES, 0);
        }
        let len_bytes = loop {
            match self.socket.read(&mut self.input[self.arrived..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.arrived += len_bytes;
        if len_bytes == 0 { Err(std::io::Error::from(ErrorKind::UnexpectedEof).into()) } else { Ok(()) }
    }
}
