//! What a batch asks for, and whether its conditions hold.
//!
//! Conditions are judged while the pairs of all keys are locked, those of the conditions among them, and before anything of the
//! batch is published: so all hold at one moment, which is that of the batch. On memory the batch makes what it finds durable
//! first; on a log what it publishes comes behind. A batch that publishes nothing, since a condition does not hold or there is
//! nothing to write, looks again as a reader before it says so (`look_again`).

use index::Position;
use index::partitioned_hash::batch::Batch;
use pmem::Medium;

use crate::{HiKv, Memory};
use crate::{canary, item};
use engine::{BatchOp, Condition, Error};
use items::Item;

/// What a batch asks for, with signatures: conditions as they were given, each key's last operation in the order of signatures,
/// and the signatures of both, in order.
pub(crate) struct Plan<'a> {
    pub(crate) conditions: Vec<(u64, Condition<'a>)>,
    pub(crate) ops: Vec<(u64, &'a BatchOp<'a>)>,
    pub(crate) signatures: Vec<u64>,
}

/// Each key's last operation, in the order of signatures.
fn last_of_each_key<'a>(ops: &'a [BatchOp<'a>], signature: impl Fn(&'a [u8]) -> u64) -> Vec<(u64, &'a BatchOp<'a>)> {
    let mut signed = Vec::with_capacity(ops.len());
    signed.extend(ops.iter().enumerate().map(|(number, op)| (signature(op.key()), number)));
    sort_by_signature(&mut signed);
    if signed.windows(2).all(|pair| pair[0].0 != pair[1].0) {
        return signed.into_iter().map(|(signature, number)| (signature, &ops[number])).collect();
    }
    let mut last: Vec<(u64, usize)> = Vec::with_capacity(ops.len());
    for (signature, number) in signed {
        match last.last() {
            Some((before, _)) if *before == signature => later_of_its_key(&mut last, ops, signature, number),
            _ => last.push((signature, number)),
        }
    }
    last.into_iter().map(|(signature, number)| (signature, &ops[number])).collect()
}

/// As one of several operations of a signature, which may be of one key or not.
#[cold]
fn later_of_its_key(last: &mut Vec<(u64, usize)>, ops: &[BatchOp<'_>], signature: u64, number: usize) {
    let mut alike = last.iter_mut().rev().take_while(|(other, _)| *other == signature);
    match alike.find(|(_, other)| ops[*other].key() == ops[number].key()) {
        Some((_, other)) => *other = number.max(*other),
        None => last.push((signature, number)),
    }
}

/// Signatures are spread evenly: so many of one batch are nearly in their order once their first bits are.
const SPREAD_COUNT_MIN: usize = 256;
/// Places of first bits at the most: their ends stay in the cache.
const SPREAD_BITS_MAX: u32 = 12;

/// Sorts by signature alone.
fn sort_by_signature(signed: &mut Vec<(u64, usize)>) {
    if signed.len() < SPREAD_COUNT_MIN {
        return signed.sort_unstable_by_key(|(signature, _)| *signature);
    }
    let bits = signed.len().ilog2().min(SPREAD_BITS_MAX);
    let first_bits = |(signature, _): &(u64, usize)| (signature >> (u64::BITS - bits)) as usize;
    let mut ends = vec![0; 1 << bits];
    signed.iter().for_each(|one| ends[first_bits(one)] += 1);
    let mut start = 0;
    for end in &mut ends {
        (*end, start) = (start, start + *end);
    }
    let mut spread = vec![(0, 0); signed.len()];
    for one in &*signed {
        let place = &mut ends[first_bits(one)];
        spread[*place] = *one;
        *place += 1;
    }
    start = 0;
    for end in ends {
        // Mostly one or two.
        match &mut spread[start..end] {
            [one, other] if one.0 > other.0 => std::mem::swap(one, other),
            [] | [_] | [_, _] => {}
            many => many.sort_unstable_by_key(|(signature, _)| *signature),
        }
        start = end;
    }
    *signed = spread;
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// What these ask for.
    pub(crate) fn plan<'a>(&self, conditions: &[Condition<'a>], ops: &'a [BatchOp<'a>]) -> Plan<'a> {
        let signature = |key| self.hasher.signature(key);
        let conditions: Vec<_> = conditions.iter().map(|condition| (signature(condition.key), *condition)).collect();
        let ops = last_of_each_key(ops, signature);
        let asked = conditions.iter().map(|(signature, _)| *signature);
        let mut signatures: Vec<_> = asked.chain(ops.iter().map(|(signature, _)| *signature)).collect();
        if !conditions.is_empty() {
            signatures.sort_unstable();
        }
        Plan { conditions, ops, signatures }
    }

    /// An error that names the first condition that does not hold, by what `find` finds.
    pub(crate) fn conditions_hold<'a>(
        &'a self,
        plan: &Plan<'_>,
        mut find: impl FnMut(u64, &[u8]) -> Result<Option<(Position, Item<'a>)>, Error>,
    ) -> Result<(), Error> {
        let is_forgotten = |key| {
            self.medium.breaks(canary::CONDITION_OF_WRITTEN_KEY_FORGOTTEN)
                && plan.ops.iter().any(|(_, op)| op.key() == key)
        };
        for (number, &(signature, Condition { key, version })) in plan.conditions.iter().enumerate() {
            let found = find(signature, key)?;
            let live = found.map_or(Ok(None), |(position, item)| {
                Ok::<_, Error>(
                    self.unexpired(item, position)?.map(|item| item::version(item.header.checksum, position)),
                )
            })?;
            if live != version && !is_forgotten(key) {
                return Err(Error::Unmet { condition: number });
            }
        }
        Ok(())
    }

    /// What a key has, under its pair's lock.
    pub(crate) fn find_locked<'a>(
        &'a self,
        batch: &Batch<'a, M, D>,
        signature: u64,
        key: &[u8],
    ) -> Result<Option<(Position, Item<'a>)>, Error> {
        let found = batch.find(batch.number_of(signature), |position| self.item_of(position, key))?;
        if found.is_none() {
            self.refuse_hidden(signature, key)?;
        }
        Ok(found.map(|found| (found.position, found.value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of which some share a signature, in batches that are sorted at once and spread before.
    #[test]
    fn the_last_operation_of_each_key_comes_in_the_order_of_signatures() {
        let signature = |key: &[u8]| u64::from(key[0] % 97).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for count in [0, 1, 2, 100, SPREAD_COUNT_MIN - 1, SPREAD_COUNT_MIN, 3000] {
            let items: Vec<([u8; 2], [u8; 2])> =
                (0..count).map(|i| ([(i * 7 % 251) as u8, (i % 3) as u8], (i as u16).to_le_bytes())).collect();
            let ops: Vec<_> = items.iter().map(|(key, value)| BatchOp::Put { key, value }).collect();
            let planned = last_of_each_key(&ops, signature);
            assert!(planned.is_sorted_by_key(|(signature, _)| *signature));
            let mut last = std::collections::BTreeMap::new();
            ops.iter().for_each(|op| _ = last.insert(op.key(), *op));
            assert_eq!(planned.len(), last.len());
            for (of, op) in planned {
                assert_eq!((of, last.remove(op.key())), (signature(op.key()), Some(*op)));
            }
        }
    }
}
