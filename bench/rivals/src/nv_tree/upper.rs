//! The inner nodes, in DRAM: levels of nodes that never change, contiguous, with children by arithmetic, above the last
//! level (`pln`), which changes. When a node of the last level is full, all are built again, one for each leaf.

use pmem::Offset;

use super::pln::Pln;
use crate::key::Key;

/// Children of an inner node.
const FAN_OUT: usize = 64;

/// One level of inner nodes: node after node, the greatest key of each child. A node's last children may not exist; the
/// greatest key of the last that does is above every key.
struct Level(Box<[[Key; FAN_OUT]]>);

/// All inner nodes.
pub(super) struct Upper {
    /// From the root down.
    levels: Vec<Level>,
    pub(super) plns: Box<[Pln]>,
    /// The greatest key of each of the last level's nodes.
    bounds: Box<[Key]>,
}

impl Upper {
    /// Builds inner nodes over leaves in ascending order, each with the greatest key that it may hold. The last one has
    /// no bound.
    pub(super) fn build(leaves: &[(Key, Offset)]) -> Upper {
        let plns = leaves.iter().map(|(_, leaf)| Pln::of(*leaf)).collect();
        let mut bounds: Vec<Key> = leaves.iter().map(|(key, _)| *key).collect();
        if let Some(last) = bounds.last_mut() {
            *last = Key::LAST;
        }
        let (mut levels, mut greatest) = (Vec::new(), bounds.clone());
        while greatest.len() > 1 {
            let node = |keys: &[Key]| std::array::from_fn(|i| keys.get(i).copied().unwrap_or(Key::LAST));
            levels.push(Level(greatest.chunks(FAN_OUT).map(node).collect()));
            greatest = greatest.chunks(FAN_OUT).map(|keys| keys[keys.len() - 1]).collect();
        }
        levels.reverse();
        Upper { levels, plns, bounds: bounds.into() }
    }

    /// Returns the number of the last level's node for `key`.
    #[inline(always)]
    pub(super) fn pln_of(&self, key: Key) -> usize {
        self.levels
            .iter()
            .fold(0, |node, Level(nodes)| node * FAN_OUT + nodes[node].partition_point(|last| *last < key))
    }

    /// Returns all leaves with the greatest key that each may hold. No leaf is split during the call.
    pub(super) fn leaves(&self) -> Vec<(Key, Offset)> {
        let of_pln = |(pln, bound): (&Pln, &Key)| {
            let count = pln.count();
            let key = |i| if i + 1 < count { pln.key(i) } else { *bound };
            (0..count).map(|i| (key(i), pln.leaf(i))).collect::<Vec<_>>()
        };
        self.plns.iter().zip(&self.bounds).flat_map(of_pln).collect()
    }

    pub(super) fn dram_bytes(&self) -> u64 {
        let inner: usize = self.levels.iter().map(|Level(nodes)| size_of_val(&**nodes)).sum();
        (inner + size_of_val(&*self.plns) + size_of_val(&*self.bounds)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_leaf() {
        for leaf_count in [1, 2, 63, 64, 65, 4095, 4096, 4097] {
            let key = |i: u128| Key::of(&(10 * i).to_be_bytes());
            let leaves: Vec<_> = (0..leaf_count).map(|i| (key(i), Offset(i as u64))).collect();
            let upper = Upper::build(&leaves);
            for i in 0..leaf_count {
                assert_eq!(upper.pln_of(key(i)) as u128, i, "of {leaf_count}");
                let above = upper.pln_of(Key::of(&(10 * i + 1).to_be_bytes())) as u128;
                assert_eq!(above, (i + 1).min(leaf_count - 1));
            }
            assert_eq!(upper.pln_of(Key::LAST) as u128, leaf_count - 1);
            let again = upper.leaves();
            assert!(again[..again.len() - 1] == leaves[..leaves.len() - 1] && again.len() == leaves.len());
        }
    }
}
