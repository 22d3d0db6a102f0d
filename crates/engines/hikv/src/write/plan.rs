//! The plan of a batch, and the judgement of its conditions.
//!
//! Conditions are judged while the pairs of all keys are locked, including those of the conditions, and before any
//! operation of the batch is published. So all hold at one moment, which is that of the batch. On memory the batch
//! first makes the items that it finds durable; on a log, the batch's own changes come after these items. A batch that
//! publishes nothing, because a condition does not hold or there is nothing to write, first looks up the keys again as
//! a reader (`find_again`).

use std::ptr;

use index::Position;
use pmem::Medium;

use crate::canary;
use crate::read::Reader;
use engine::{BatchOp, Condition, Error};
use items::Item;

/// A batch with signatures: conditions as they were given, each key's last operation in the order of signatures, and
/// the sorted signatures of both. With conditions, each signature occurs once.
pub(super) struct Plan<'a> {
    pub(super) conditions: Vec<(u64, Condition<'a>)>,
    pub(super) ops: Vec<Signed<'a>>,
    pub(super) signatures: Vec<u64>,
}

/// Up to so many conditions, the signature of a key that is also written is found among theirs.
const FEW_CONDITIONS: usize = 8;

/// An operation with its signature.
type Signed<'a> = (u64, &'a BatchOp<'a>);

/// Returns each key's last operation, in the order of signatures.
fn last_of_each_key<'a>(ops: &'a [BatchOp<'a>], signature: impl Fn(&'a [u8]) -> u64) -> Vec<Signed<'a>> {
    let mut signed: Vec<_> = ops.iter().map(|op| (signature(op.key()), op)).collect();
    let is_strict = sort_by_signature(&mut signed);
    if is_strict { signed } else { last_of_those_alike(signed) }
}

/// Returns the last operation of each key. The operations are in the order of signatures, some of which occur several
/// times.
#[cold]
fn last_of_those_alike<'a>(signed: Vec<Signed<'a>>) -> Vec<Signed<'a>> {
    let mut last: Vec<Signed<'a>> = Vec::with_capacity(signed.len());
    for (signature, op) in signed {
        let mut alike = last.iter_mut().rev().take_while(|(other, _)| *other == signature);
        match alike.find(|(_, other)| other.key() == op.key()) {
            // The operations are in one slice: the later one is at the higher address.
            Some((_, other)) => *other = if ptr::from_ref(op) > ptr::from_ref(*other) { op } else { other },
            None => last.push((signature, op)),
        }
    }
    last
}

/// From this number of operations on, a batch is first distributed by the first bits of the signatures. Signatures are
/// evenly distributed, so the batch is then nearly sorted.
const SPREAD_COUNT_MIN: usize = 256;
/// The most bits to distribute by: the bounds of 2^15 places stay in the cache.
const SPREAD_BITS_MAX: u32 = 15;
/// The mean number of moves per operation, by one place each, after which the operations count as unsorted: that
/// happens if keys are repeated often.
const MOVES_MAX: usize = 16;

/// Sorts by signature only; returns false if a signature occurs several times.
fn sort_by_signature(signed: &mut Vec<Signed<'_>>) -> bool {
    if signed.len() >= SPREAD_COUNT_MIN {
        *signed = spread(signed);
        if let Some(is_strict) = move_into_order(signed) {
            return is_strict;
        }
    }
    signed.sort_unstable_by_key(|(signature, _)| *signature);
    signed.windows(2).all(|pair| pair[0].0 != pair[1].0)
}

/// Sorts operations that are nearly in the order of signatures; returns false if a signature occurs several times,
/// `None` if it gives up.
fn move_into_order(signed: &mut [Signed<'_>]) -> Option<bool> {
    let (mut is_strict, mut left) = (true, MOVES_MAX * signed.len());
    for number in 1..signed.len() {
        let (one, mut place) = (signed[number], number);
        if signed[number - 1].0 < one.0 {
            continue;
        }
        while place > 0 && signed[place - 1].0 > one.0 {
            signed[place] = signed[place - 1];
            place -= 1;
        }
        signed[place] = one;
        is_strict &= place == 0 || signed[place - 1].0 != one.0;
        left = left.checked_sub(number - place)?;
    }
    Some(is_strict)
}

/// Returns the operations in the order of their signatures' first bits, with about as many places as operations.
fn spread<'a>(signed: &[Signed<'a>]) -> Vec<Signed<'a>> {
    let bits = (2 * signed.len()).ilog2().min(SPREAD_BITS_MAX);
    let first_bits = |(signature, _): &Signed<'_>| (signature >> (u64::BITS - bits)) as usize;
    let mut ends = vec![0; 1 << bits];
    signed.iter().for_each(|one| ends[first_bits(one)] += 1);
    let mut start = 0;
    for end in &mut ends {
        (*end, start) = (start, start + *end);
    }
    let mut spread = vec![signed[0]; signed.len()];
    for one in signed {
        let place = &mut ends[first_bits(one)];
        spread[*place] = *one;
        *place += 1;
    }
    spread
}

impl<'a> Plan<'a> {
    /// Returns the plan of a batch.
    pub(super) fn new(
        conditions: &[Condition<'a>],
        ops: &'a [BatchOp<'a>],
        signature: impl Fn(&'a [u8]) -> u64,
    ) -> Plan<'a> {
        let conditions: Vec<_> = conditions.iter().map(|condition| (signature(condition.key), *condition)).collect();
        let of_condition = |key: &[u8]| conditions.iter().find(|(_, condition)| condition.key == key);
        let ops = match conditions.len() {
            1..=FEW_CONDITIONS => {
                last_of_each_key(ops, |key| of_condition(key).map_or_else(|| signature(key), |one| one.0))
            }
            _ => last_of_each_key(ops, signature),
        };
        let asked = conditions.iter().map(|(signature, _)| *signature);
        let mut signatures: Vec<_> = asked.chain(ops.iter().map(|(signature, _)| *signature)).collect();
        if !conditions.is_empty() {
            signatures.sort_unstable();
            // Most conditions concern keys that are written.
            signatures.dedup();
        }
        Plan { conditions, ops, signatures }
    }

    /// Returns an error that names the first condition that does not hold, by the items that `find` returns.
    pub(super) fn conditions_hold<'i, M: Medium>(
        &self,
        reader: &Reader<M>,
        mut find: impl FnMut(u64, &[u8]) -> Result<Option<(Position, Item<'i>)>, Error>,
    ) -> Result<(), Error> {
        let is_forgotten = |key| {
            reader.medium().breaks(canary::CONDITION_OF_WRITTEN_KEY_FORGOTTEN)
                && self.ops.iter().any(|(_, op)| op.key() == key)
        };
        for (number, (signature, condition)) in self.conditions.iter().enumerate() {
            let found = find(*signature, condition.key)?;
            let live = found.map_or(Ok(None), |(position, item)| reader.live_witness(position, item))?;
            if !condition.holds(live) && !is_forgotten(condition.key) {
                return Err(Error::ConditionFailed { condition: number });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of which some share a signature, in batches that are sorted directly and batches that are distributed
    /// first.
    #[test]
    fn last_operations_are_sorted_by_signature() {
        comes_in_order(|key| u64::from(key[0] % 97).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }

    /// All operations have the same first bits, and come in reverse order.
    #[test]
    fn plan_sorts_clustered_signatures() {
        comes_in_order(|key| 1_000 - u64::from(key[0]));
        let keys = [[9], [8], [7]];
        let ops = keys.each_ref().map(|key| BatchOp::Delete { key });
        let mut signed: Vec<_> = ops.iter().cycle().take(1_000).map(|op| (u64::from(op.key()[0]), op)).collect();
        assert_eq!(move_into_order(&mut signed), None, "they are far from their order");
    }

    fn comes_in_order(signature: fn(&[u8]) -> u64) {
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
