//! A thread's stream of operations. Operations are drawn and their keys generated some hundred at a time, so that this
//! work neither separates two operations whose memory accesses could overlap nor counts in any latency.

use hikv::pool::Kind;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::client::{Client, GROUP_KEYS};
use crate::draws::{Act, Draw, Draws};
use crate::pass::{Step, Turn};
use crate::scans::Scans;
use crate::subject::{Error, Subject};
use crate::worker::Worker;

/// Operations drawn at a time, a multiple of a group of keys: a few kilobytes, which stay in the L1 cache.
const AHEAD_COUNT: usize = 16 * GROUP_KEYS;

/// One thread's operations on a subject.
pub(crate) struct Stream<'a, S> {
    client: Client<'a, S>,
    draws: Box<dyn Draws>,
    rng: SmallRng,
    worker: Worker,
    /// For workloads that may scan.
    scans: Option<Scans>,
    /// Operations that were drawn, and the number of those that are done.
    ahead: Vec<Draw>,
    next: usize,
    /// The keys of these operations.
    keys: Vec<u8>,
    kind: Kind,
    inserted_count: u64,
    deleted_count: u64,
    /// The records that were taken as the first in order.
    taken: Vec<u64>,
}

impl<'a, S: Subject> Stream<'a, S> {
    /// Creates a stream of the operations of `draws` on loaded records; `scans` if these may scan.
    pub(crate) fn new(subject: &'a S, worker: Worker, draws: Box<dyn Draws>, scans: bool) -> Stream<'a, S> {
        Stream {
            client: Client::new(subject, worker.records),
            draws,
            rng: SmallRng::seed_from_u64(worker.seed()),
            worker,
            scans: scans.then(|| Scans::new(worker.records)),
            ahead: Vec::with_capacity(AHEAD_COUNT),
            next: 0,
            keys: vec![0; AHEAD_COUNT * worker.records.key_bytes],
            kind: Kind::Get,
            inserted_count: 0,
            deleted_count: 0,
            taken: Vec::new(),
        }
    }

    /// Returns the number of wrong results so far.
    pub(crate) fn errors(&self) -> u64 {
        self.client.errors
    }

    /// Returns the number of values put so far.
    pub(crate) fn put_count(&self) -> u64 {
        self.client.put_count
    }

    /// Returns the kind of the last operation.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Prepares another pass, if a pass uses records up.
    pub(crate) fn rewind(&mut self) -> Result<(), Error> {
        self.put_back()?;
        if self.draws.rewind() {
            self.ahead.clear();
            self.next = 0;
        }
        Ok(())
    }

    /// Leaves exactly the loaded records in the store.
    pub(crate) fn restore(&mut self) -> Result<(), Error> {
        let mut key = vec![0; self.worker.records.key_bytes];
        for number in 0..std::mem::take(&mut self.inserted_count) {
            self.worker.records.write_key(self.worker.fresh(number), &mut key);
            self.client.delete(&key)?;
        }
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), Error> {
        let mut key = vec![0; self.worker.records.key_bytes];
        let deleted = (0..std::mem::take(&mut self.deleted_count)).map(|number| self.worker.victim(number));
        { deleted }.chain(std::mem::take(&mut self.taken)).try_for_each(|record| {
            self.worker.records.write_key(record, &mut key);
            self.client.put(record, &key)
        })
    }

    #[cold]
    #[inline(never)]
    fn draw_ahead(&mut self) {
        self.next = 0;
        self.ahead.clear();
        self.ahead.extend(std::iter::from_fn(|| self.draws.draw(&mut self.rng)).take(AHEAD_COUNT));
        for (draw, key) in self.ahead.iter().zip(self.keys.chunks_exact_mut(self.worker.records.key_bytes)) {
            self.worker.records.write_key(draw.record, key);
        }
    }

    fn step(&mut self) -> Result<u64, Error> {
        let Some(&Draw { act, record }) = self.ahead.get(self.next) else { return Ok(0) };
        self.kind = act.kind();
        let key_bytes = self.worker.records.key_bytes;
        let key = &self.keys[self.next * key_bytes..][..key_bytes];
        match act {
            Act::GetInto => self.client.get_into(record, key)?,
            Act::GetOwned => self.client.get_owned(record, key)?,
            Act::GetWith => self.client.get_with(record, key)?,
            Act::Miss => self.client.miss(key)?,
            Act::Update => self.client.put(record, key)?,
            Act::ReadThenUpdate => {
                self.client.get_into(record, key)?;
                self.client.put(record, key)?;
            }
            Act::Insert => {
                self.client.put(record, key)?;
                self.inserted_count += 1;
            }
            Act::Delete => {
                self.client.delete(key)?;
                self.deleted_count += 1;
            }
            Act::Scan(count) => {
                let scans = self.scans.as_mut().expect("a workload that scans declares it");
                self.client.scan(key, count, scans)?;
            }
            Act::MultiGet => return self.multi_get(),
            Act::Transact | Act::TransactParts | Act::TransactRead => return self.transact(act),
            Act::TakeFirst => self.taken.extend(self.client.take_first()?),
        }
        self.next += 1;
        Ok(1)
    }

    /// Runs an operation on the next two records.
    fn transact(&mut self, act: Act) -> Result<u64, Error> {
        let (key_bytes, places) = (self.worker.records.key_bytes, [self.next, self.next + 1]);
        let keys = places.map(|place| &self.keys[place * key_bytes..][..key_bytes]);
        let records = places.map(|place| self.ahead[place].record);
        match act {
            Act::TransactParts => self.client.transact_parts(records, keys)?,
            _ => self.client.transact(records, keys, act == Act::Transact)?,
        }
        self.next += 2;
        Ok(1)
    }

    fn multi_get(&mut self) -> Result<u64, Error> {
        let (key_bytes, first) = (self.worker.records.key_bytes, self.next);
        let keys: [&[u8]; GROUP_KEYS] =
            std::array::from_fn(|place| &self.keys[(first + place) * key_bytes..][..key_bytes]);
        self.client.multi_get(&keys, |place| self.ahead[first + place].record)?;
        self.next += GROUP_KEYS;
        Ok(GROUP_KEYS as u64)
    }
}

impl<S: Subject> Turn for Stream<'_, S> {
    #[inline(always)]
    fn prepare(&mut self) {
        if self.next == self.ahead.len() {
            self.draw_ahead();
        }
    }

    #[inline(always)]
    fn turn(&mut self) -> Result<Step, Error> {
        self.step().map(|count| if count == 0 { Step::Over } else { Step::Served(count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Nothing;
    use crate::draws::draws_of;
    use crate::records::Records;
    use crate::workload::Workload;

    /// An operation that one pass drew and did not do is not repeated in the next.
    #[test]
    fn pass_after_empty_pass_visits_all() {
        let records = Records { count: 1_000, key_bytes: 16, shared_bytes: 0, value_bytes: 32 };
        let (subject, worker) = (Nothing::new(records), Worker { records, thread: 0, threads: 1, seed: 0 });
        for workload in [Workload::Delete, Workload::Insert] {
            let draws = draws_of(workload, &worker).unwrap();
            let mut stream = Stream::new(&subject, worker, draws, false);
            stream.prepare();
            stream.rewind().unwrap();
            let mut done = 0;
            stream.prepare();
            while let Step::Served(count) = stream.turn().unwrap() {
                done += count;
                stream.prepare();
            }
            let expected = if workload == Workload::Insert { 2 * records.count } else { records.count };
            assert_eq!(done, expected, "{workload:?}");
        }
    }
}
