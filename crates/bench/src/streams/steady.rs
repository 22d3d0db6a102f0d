//! Operations that use no record up, so that a pass lasts as long as it may.

use hikv::Error;
use hikv::pool::Kind;

use super::{Seat, Stream};
use crate::client::{BATCH_KEYS, Client, Shape};
use crate::scans::Scans;
use crate::subject::Subject;

/// One operation, again and again; it returns how many records it took.
pub(crate) struct Steady<'a, S, F> {
    client: Client<'a, S>,
    kind: Kind,
    operation: F,
}

impl<'a, S: Subject, F: FnMut(&mut Client<'a, S>) -> Result<u64, Error> + Send> Steady<'a, S, F> {
    /// Does `operation`, which is of this kind, for as long as a pass lasts.
    pub(crate) fn new(seat: &Seat<'a, S>, kind: Kind, operation: F) -> Steady<'a, S, F> {
        Steady { client: seat.client(), kind, operation }
    }
}

impl<'a, S: Subject, F: FnMut(&mut Client<'a, S>) -> Result<u64, Error> + Send> Stream for Steady<'a, S, F> {
    fn step(&mut self) -> Result<u64, Error> {
        (self.operation)(&mut self.client)
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn errors(&self) -> u64 {
        self.client.errors
    }
}

/// Does `act` on one loaded record.
pub(crate) fn on_any<'a, S: Subject>(
    act: impl Fn(&mut Client<'a, S>, u64) -> Result<(), Error>,
) -> impl Fn(&mut Client<'a, S>) -> Result<u64, Error> {
    move |client| {
        let record = client.any();
        act(client, record).map(|()| 1)
    }
}

/// Scans from one loaded record on.
pub(crate) fn scan<'a, S: Subject>(shape: Shape) -> impl FnMut(&mut Client<'a, S>) -> Result<u64, Error> {
    let mut scans = Scans::new(shape);
    move |client| {
        let record = client.any();
        client.scan(record, &mut scans).map(|()| 1)
    }
}

/// Reads a batch of loaded records.
pub(crate) fn batch<S: Subject>(client: &mut Client<'_, S>) -> Result<u64, Error> {
    let records = std::array::from_fn(|_| client.any());
    client.multi_get(records).map(|()| BATCH_KEYS as u64)
}
