//! Several requests in one system call.

use std::io;

use crate::abi::{Op, Request};
use crate::{Ink, When};

/// Requests to be carried out one after the other.
#[derive(Debug, Default)]
pub struct Batch<'a> {
    requests: Vec<Request>,
    buffers: std::marker::PhantomData<&'a mut [u8]>,
}

/// The result of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// 0, or an error's number.
    pub errno: i32,
    /// The value's length, for a read.
    pub len: u64,
}

impl<'a> Batch<'a> {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Batch<'a> {
        Batch::default()
    }

    /// Adds a put.
    pub fn put(&mut self, key: &'a [u8], value: &'a [u8], when: When) -> &mut Batch<'a> {
        self.add(Op::Insert, Request::of_value(key, value, when.flags()))
    }

    /// Adds a read into `buffer`.
    pub fn get(&mut self, key: &'a [u8], buffer: &'a mut [u8]) -> &mut Batch<'a> {
        self.add(Op::Read, Request::of_buffer(key, buffer, 0))
    }

    /// Adds a deletion.
    pub fn delete(&mut self, key: &'a [u8]) -> &mut Batch<'a> {
        self.add(Op::Remove, Request::of_key(key))
    }

    fn add(&mut self, op: Op, request: Request) -> &mut Batch<'a> {
        self.requests.push(Request { op: op as u32, ..request });
        self
    }

    pub(crate) fn submit(mut self, ink: &Ink) -> io::Result<Vec<Done>> {
        let (value, count) = (self.requests.as_mut_ptr() as u64, self.requests.len() as u64);
        let mut whole = Request { value, count, ..Request::new() };
        // SAFETY: there are this many requests, and the memory of each is borrowed for the batch's lifetime.
        unsafe { ink.ask(Op::Submit, &mut whole) }?;
        Ok(self.requests.iter().map(|request| Done { errno: request.error, len: request.result }).collect())
    }
}
