//! Random operations of a given shape, on few keys, so that updates, deletes and re-inserts of a key meet.

use engine::{Features, Order};
use fastrand::Rng;

use crate::script::{Change, Op};

/// The shape of random operations.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The keys to draw from.
    pub keys: Vec<Vec<u8>>,
    /// The value lengths to draw from.
    pub value_lens_bytes: Vec<usize>,
    /// The number of operations.
    pub op_count: usize,
    /// Includes puts of several keys in one call.
    pub multi_puts: bool,
    /// Includes deletes of several keys in one call.
    pub multi_deletes: bool,
    /// Includes writes that take effect only if a key holds a certain value.
    pub swaps: bool,
    /// Includes atomic batches of several changes.
    pub batches: bool,
    /// Gives some of the batches conditions.
    pub conditions: bool,
    /// Includes reads of all keys in order.
    pub scans: bool,
    /// Includes taking and releasing snapshots.
    pub snapshots: bool,
    /// Includes clears.
    pub clears: bool,
    /// Includes closing the store and opening it again.
    pub reopens: bool,
    /// Makes the medium full at times.
    pub fills: bool,
}

impl Shape {
    /// Returns puts and deletes of a few short keys, one of them empty, with values of 0 to 100 bytes: word sizes,
    /// cache lines, and sizes next to them.
    #[must_use]
    pub fn small(op_count: usize) -> Shape {
        Shape {
            keys: [
                &b""[..],
                b"a",
                b"b",
                b"a key of more than one line, so that its comparison and its copy cross an edge",
            ]
            .map(Vec::from)
            .into(),
            value_lens_bytes: vec![0, 1, 8, 63, 64, 65, 100],
            op_count,
            multi_puts: false,
            multi_deletes: false,
            swaps: false,
            batches: false,
            conditions: false,
            scans: false,
            snapshots: false,
            clears: false,
            reopens: false,
            fills: false,
        }
    }

    /// Removes the operations that an engine with these features does not offer; returns also the names of the features
    /// it lacks, which the caller reports.
    #[must_use]
    pub fn offered_by(self, features: &Features) -> (Shape, Vec<&'static str>) {
        let lacks = features.named().into_iter().filter(|(_, has)| !has).map(|(name, _)| name).collect();
        let shape = Shape {
            swaps: self.swaps && features.conditional,
            batches: self.batches && features.batch,
            conditions: self.conditions && features.batch && features.conditional,
            scans: self.scans && features.order != Order::No,
            snapshots: self.snapshots && features.snapshots,
            ..self
        };
        (shape, lacks)
    }

    /// Returns the operations that `seed` draws.
    #[must_use]
    pub fn ops(&self, seed: u64) -> Vec<Op> {
        let mut rng = Rng::with_seed(seed);
        let mut ops: Vec<Op> = Vec::with_capacity(self.op_count);
        for _ in 0..self.op_count {
            let op = self.op(&mut rng, &ops);
            ops.push(op);
        }
        ops
    }

    fn op(&self, rng: &mut Rng, before: &[Op]) -> Op {
        match rng.u8(..100) {
            0..5 if self.clears => Op::Clear,
            5..12 if self.reopens => Op::Reopen,
            12..17 if self.fills => Op::Full,
            17..22 if self.fills => Op::NotFull,
            22..32 if self.batches => self.batch(rng, before),
            22..50 => Op::Delete(self.key(rng)),
            50..55 if self.multi_deletes => Op::MultiDelete(self.items(rng).into_iter().map(|(key, _)| key).collect()),
            50..62 if self.multi_puts => Op::MultiPut(self.items(rng)),
            62..70 if self.scans => Op::Scan,
            70..76 if self.snapshots => Op::Snapshot,
            76..80 if self.snapshots => Op::Release,
            70..85 if self.swaps => self.swap(rng, before),
            _ => Op::Put(self.key(rng), self.value(rng)),
        }
    }

    fn swap(&self, rng: &mut Rng, before: &[Op]) -> Op {
        let (key, expected) = self.expected(rng, before);
        Op::Cas { key, expected, new: (rng.u8(..4) > 0).then(|| self.value(rng)) }
    }

    fn batch(&self, rng: &mut Rng, before: &[Op]) -> Op {
        if !self.conditions || rng.u8(..3) == 0 {
            return Op::Batch(self.changes(rng));
        }
        let expected = (0..rng.usize(1..=2)).map(|_| self.expected(rng, before)).collect();
        let changes = if rng.u8(..8) == 0 { Vec::new() } else { self.changes(rng) };
        Op::BatchIf { expected, changes }
    }

    /// Draws a key, and as its expected value mostly the value put last, otherwise absent.
    fn expected(&self, rng: &mut Rng, before: &[Op]) -> Change {
        let key = self.key(rng);
        let last = before.iter().rev().find_map(|op| match op {
            Op::Put(put, value) if *put == key => Some(value.clone()),
            _ => None,
        });
        (key, last.filter(|_| rng.u8(..4) > 0))
    }

    /// Draws two to four items; a key may occur twice.
    fn items(&self, rng: &mut Rng) -> Vec<(Vec<u8>, Vec<u8>)> {
        (0..rng.usize(2..=4)).map(|_| (self.key(rng), self.value(rng))).collect()
    }

    /// Draws two to four changes, some of which are deletes.
    fn changes(&self, rng: &mut Rng) -> Vec<Change> {
        let items = self.items(rng).into_iter();
        items.map(|(key, value)| (key, (rng.u8(..3) > 0).then_some(value))).collect()
    }

    fn key(&self, rng: &mut Rng) -> Vec<u8> {
        rng.choice(&self.keys).expect("a shape has keys").clone()
    }

    /// Draws random bytes, so that one put's value differs from the next one's.
    fn value(&self, rng: &mut Rng) -> Vec<u8> {
        let len_bytes = *rng.choice(&self.value_lens_bytes).expect("a shape has value lengths");
        std::iter::repeat_with(|| rng.u8(..)).take(len_bytes).collect()
    }
}
