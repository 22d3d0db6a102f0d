//! What is written to a host: completions, and data before them.

use nvme::{Command, Completion, Data, Sgl, Status, Writer};

use crate::output::Outlet;

/// Where the completions of a turn are written.
pub(crate) struct Reply<'o> {
    pub(crate) out: Outlet<'o>,
    pub(crate) writer: Writer,
    /// How far the queue was read.
    pub(crate) queue_head: u16,
    /// The host takes a value that it has room for as its command's completion.
    pub(crate) values_complete: bool,
}

impl Reply<'_> {
    /// Completes a command.
    pub(crate) fn complete(&mut self, id: u16, status: Status, result: u64) {
        let queue_head = self.queue_head;
        self.writer.completion(&mut self.out, &Completion { result, queue_head, id, status });
    }

    /// Completes a command that failed, or did not.
    pub(crate) fn conclude(&mut self, id: u16, outcome: Result<u64, Status>) {
        match outcome {
            Ok(result) => self.complete(id, Status::SUCCESS, result),
            Err(status) => self.complete(id, status.final_one(), 0),
        }
    }

    /// Sends a command's data, all of it.
    pub(crate) fn data(&mut self, id: u16, bytes: &[u8]) {
        if !bytes.is_empty() {
            let data = Data { id, tag: 0, offset: 0, is_last: true, is_success: false, bytes };
            self.writer.data(&mut self.out, &data);
        }
    }

    /// Sends as much of a value as there is room for, and tells its whole length.
    pub(crate) fn value(&mut self, id: u16, value: &[u8], buffer_bytes: usize) {
        if self.values_complete && (1..=buffer_bytes).contains(&value.len()) {
            let data = Data { id, tag: 0, offset: 0, is_last: true, is_success: true, bytes: value };
            return self.writer.data(&mut self.out, &data);
        }
        self.data(id, &value[..value.len().min(buffer_bytes)]);
        self.complete(id, Status::SUCCESS, value.len() as u64);
    }

    /// Sends as much of a page as the command has room for, and completes it.
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

/// How much of `len_bytes` goes to the host, by what its command says of its memory.
pub(crate) fn buffer_of(command: &Command, len_bytes: usize) -> Result<usize, Status> {
    match command.sgl() {
        _ if len_bytes == 0 => Ok(0),
        Sgl::Transport { len_bytes: len } => Ok(len_bytes.min(len as usize)),
        Sgl::InCapsule { .. } | Sgl::Other => Err(Status::SGL_TYPE_INVALID),
    }
}
