//! Random operations of a given shape: few keys, so that updates, deletes and re-inserts meet.

use engine::{Features, Order};
use fastrand::Rng;

use crate::script::{Change, Op};

/// What random operations look like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The keys to draw from.
    pub keys: Vec<Vec<u8>>,
    /// The value lengths to draw from.
    pub value_lens_bytes: Vec<usize>,
    /// How many operations.
    pub op_count: usize,
    /// Whether some put several keys at once.
    pub multi_puts: bool,
    /// Whether some delete several keys at once.
    pub multi_deletes: bool,
    /// Whether some write only where a key holds a certain value.
    pub swaps: bool,
    /// Whether some change several keys as one step.
    pub batches: bool,
    /// Whether some of those have conditions.
    pub conditions: bool,
    /// Whether some read all keys in order.
    pub scans: bool,
    /// Whether some take snapshots and release them.
    pub snapshots: bool,
    /// Whether some clear the store.
    pub clears: bool,
    /// Whether some close and open it again.
    pub reopens: bool,
    /// Whether the medium is full at times.
    pub fills: bool,
}

impl Shape {
    /// Puts and deletes of `op_count` operations on a few short keys, the empty one among them, with values of 0 to 100
    /// bytes: word sizes, lines, and their neighbours.
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

    /// The same without what an engine with these features cannot do; and the names of those that it lacks, which the caller says.
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

    /// The operations that `seed` draws.
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
            17..22 if self.fills => Op::Room,
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

    /// A key, and mostly what was put there last, or nothing.
    fn expected(&self, rng: &mut Rng, before: &[Op]) -> Change {
        let key = self.key(rng);
        let last = before.iter().rev().find_map(|op| match op {
            Op::Put(put, value) if *put == key => Some(value.clone()),
            _ => None,
        });
        (key, last.filter(|_| rng.u8(..4) > 0))
    }

    /// Two to four; a key may come twice.
    fn items(&self, rng: &mut Rng) -> Vec<(Vec<u8>, Vec<u8>)> {
        (0..rng.usize(2..=4)).map(|_| (self.key(rng), self.value(rng))).collect()
    }

    /// As many; some keys are removed.
    fn changes(&self, rng: &mut Rng) -> Vec<Change> {
        let items = self.items(rng).into_iter();
        items.map(|(key, value)| (key, (rng.u8(..3) > 0).then_some(value))).collect()
    }

    fn key(&self, rng: &mut Rng) -> Vec<u8> {
        rng.choice(&self.keys).expect("a shape has keys").clone()
    }

    /// Random bytes, so that one put's value differs from the next one's.
    fn value(&self, rng: &mut Rng) -> Vec<u8> {
        let len_bytes = *rng.choice(&self.value_lens_bytes).expect("a shape has value lengths");
        std::iter::repeat_with(|| rng.u8(..)).take(len_bytes).collect()
    }
}
