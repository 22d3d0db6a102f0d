//! The receiving side of a connection: bytes, the requests among them, and whether more may arrive.

use std::io;
use std::mem;

use mio::event::Event;
use resp::{Limits, Parser};

use crate::administration::settings::Settings;
use crate::clients::session::Session;
use crate::connections::buffers::Buffers;
use crate::connections::input::Input;
use crate::connections::output::Output;
use crate::connections::transport::{Arrived, Transport};
use crate::execution::pipeline::Pipeline;
use crate::execution::worker::Worker;
use crate::telemetry::BatchCounts;

pub(super) struct Incoming {
    input: Input,
    parser: Parser,
    /// The parser uses the limits for clients that are not logged in.
    is_limited: bool,
    pipeline: Pipeline,
    /// The socket may have data to read.
    readable: bool,
    /// The client has closed its side; data that it sent before must be read to the end.
    hung_up: bool,
    /// Nothing more will be read.
    ended: bool,
    /// One more read, then none.
    finishing: bool,
    /// The input holds no complete request.
    starved: bool,
}

impl Incoming {
    pub(super) fn new(settings: &Settings) -> Incoming {
        Incoming {
            input: Input::default(),
            parser: Parser::new(settings.limits()),
            is_limited: false,
            pipeline: Pipeline::default(),
            readable: false,
            hung_up: false,
            ended: false,
            finishing: false,
            starved: true,
        }
    }

    /// Records an event of the poller.
    pub(super) fn note(&mut self, event: &Event) {
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.hung_up |= event.is_read_closed();
    }

    /// Allows one more read.
    pub(super) fn finish(&mut self) {
        self.readable = !self.ended;
        self.finishing = true;
    }

    /// Borrows the loop's buffers for a turn.
    pub(super) fn borrow(&mut self, buffers: &mut Buffers) {
        self.input.borrow(buffers);
        self.pipeline.borrow(buffers);
    }

    /// Returns the loop's buffers after a turn.
    pub(super) fn return_buffers(&mut self, buffers: &mut Buffers) {
        self.input.return_buffer(buffers);
        self.pipeline.return_buffer(buffers);
    }

    /// Returns whether the socket may have data to read.
    pub(super) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Returns whether the input holds no complete request.
    pub(super) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Returns whether no further request will arrive.
    pub(super) fn is_over(&self) -> bool {
        self.ended && self.starved
    }

    /// Returns whether the client, or the server, has ended the connection; requests may be left.
    pub(super) fn is_ending(&self) -> bool {
        self.hung_up || self.finishing || self.ended
    }

    /// Parses further requests once all are executed, and returns whether there are any. The parser's limits depend on
    /// whether the client is logged in.
    pub(super) fn has_request(&mut self, session: &Session, settings: &Settings) -> bool {
        if self.pipeline.is_done() {
            self.input.consume(self.pipeline.restart());
            let is_unauthenticated = session.login.user().is_none();
            if mem::replace(&mut self.is_limited, is_unauthenticated) != is_unauthenticated {
                let limits = if is_unauthenticated { Limits::unauthenticated() } else { settings.limits() };
                self.parser.set_limits(limits);
            }
            self.pipeline.parse(&mut self.parser, self.input.pending(), self.is_limited);
        }
        self.starved = self.pipeline.is_done();
        !self.starved
    }

    /// Executes requests of the client; see [`Pipeline::run`].
    pub(super) fn run(&mut self, session: &mut Session, worker: &Worker<'_>, output: &mut Output) -> BatchCounts {
        self.pipeline.run(self.input.pending(), session, worker, output)
    }

    /// Returns whether the last reply is incomplete.
    pub(super) fn is_within_reply(&self) -> bool {
        self.pipeline.is_within_reply()
    }

    /// Reads once.
    pub(super) fn read(&mut self, transport: &mut Transport) -> io::Result<()> {
        match self.input.read(transport, self.parser.wanted_bytes())? {
            Arrived::Some => {}
            // A read that does not fill the buffer has emptied the socket. Later data causes an event, but an end of
            // stream that was reported with the data does not.
            Arrived::All => self.readable = self.hung_up,
            Arrived::End => self.ended = true,
        }
        self.ended |= mem::take(&mut self.finishing);
        self.readable &= !self.ended;
        self.starved = false;
        Ok(())
    }

    /// Takes the requests and the unparsed input, for a background job.
    pub(super) fn take(&mut self) -> (Pipeline, Input) {
        (mem::take(&mut self.pipeline), mem::take(&mut self.input))
    }

    /// Puts them back.
    pub(super) fn restore(&mut self, pipeline: Pipeline, input: Input) {
        (self.pipeline, self.input) = (pipeline, input);
    }

    /// Returns the bytes read since the last call.
    pub(super) fn take_count(&mut self) -> u64 {
        self.input.take_count()
    }

    /// Returns the bytes that wait, and the unused capacity.
    pub(super) fn sizes(&self) -> [usize; 2] {
        [self.input.pending().len(), self.input.unused_bytes()]
    }
}
