//! Data written to a host: completions, and data before them.

use nvme::{Command, Completion, Data, Sgl, Status, Writer};

use crate::output::Outlet;

/// The destination of a turn's completions.
pub(crate) struct Reply<'o> {
    pub(crate) out: Outlet<'o>,
    pub(crate) writer: Writer,
    /// The submission queue head.
    pub(crate) queue_head: u16,
    /// For this host, a value that fits in its buffer also completes the command.
    pub(crate) values_complete: bool,
}

impl Reply<'_> {
    /// Completes a command.
    pub(crate) fn complete(&mut self, id: u16, status: Status, result: u64) {
        let queue_head = self.queue_head;
        self.writer.completion(&mut self.out, &Completion { result, queue_head, id, status });
    }

    /// Completes a command with its outcome.
    pub(crate) fn conclude(&mut self, id: u16, outcome: Result<u64, Status>) {
        match outcome {
            Ok(result) => self.complete(id, Status::SUCCESS, result),
            Err(status) => self.complete(id, status.final_one(), 0),
        }
    }

    /// Sends all of a command's data.
    pub(crate) fn data(&mut self, id: u16, bytes: &[u8]) {
        if !bytes.is_empty() {
            let data = Data { id, tag: 0, offset: 0, is_last: true, is_success: false, bytes };
            self.writer.data(&mut self.out, &data);
        }
    }

    /// Sends as much of a value as the host's buffer holds, and its full length.
    pub(crate) fn value(&mut self, id: u16, value: &[u8], buffer_bytes: usize) {
        if self.values_complete && (1..=buffer_bytes).contains(&value.len()) {
            let data = Data { id, tag: 0, offset: 0, is_last: true, is_success: true, bytes: value };
            return self.writer.data(&mut self.out, &data);
        }
        self.data(id, &value[..value.len().min(buffer_bytes)]);
        self.complete(id, Status::SUCCESS, value.len() as u64);
    }

    /// Sends as much of a page as the host's buffer holds, and completes the command.
    pub(crate) fn page(&mut self, command: &Command, page: &[u8]) {
        match buffer_of(command, page.len()) {
            Ok(len) => {
                self.data(command.id(), &page[..len]);
                self.complete(command.id(), Status::SUCCESS, 0);
            }
            Err(status) => self.conclude(command.id(), Err(status)),
        }
    }
}

/// Returns how much of `len_bytes` fits in the host's buffer, by the command's data descriptor.
pub(crate) fn buffer_of(command: &Command, len_bytes: usize) -> Result<usize, Status> {
    match command.sgl() {
        _ if len_bytes == 0 => Ok(0),
        Sgl::Transport { len_bytes: len } => Ok(len_bytes.min(len as usize)),
        Sgl::InCapsule { .. } | Sgl::Other => Err(Status::SGL_TYPE_INVALID),
    }
}
