//! The choice of the chunks to empty and of the chunks that receive their items.

use heap::{ChunkUse, Class};

/// The amount of work that a plan may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Thoroughness {
    /// Every chunk that can be emptied.
    Full,
    /// Only chunks of which at least an eighth is free, so that moving pays.
    Worthwhile,
}

/// A plan for one pass.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The chunks to empty.
    pub(super) leaving: Vec<ChunkUse>,
    /// The chunks to fill, by class, the fullest last. The last is filled first.
    taking: Vec<Vec<ChunkUse>>,
}

impl Plan {
    /// Plans to empty the emptiest chunks of each class: as many as fit into the gaps of the others, so no other space
    /// is needed.
    pub(super) fn of(mut chunks: Vec<ChunkUse>, thoroughness: Thoroughness) -> Plan {
        chunks.sort_unstable_by_key(|chunk| (chunk.class, chunk.used_count));
        let mut plan = Plan { leaving: Vec::new(), taking: vec![Vec::new(); Class::COUNT] };
        for class in chunks.chunk_by(|one, other| one.class == other.class) {
            let (leaving, taking) = class.split_at(leaving_count(class, thoroughness));
            plan.leaving.extend(leaving);
            plan.taking[usize::from(class[0].class.index())] =
                taking.iter().copied().filter(|chunk| chunk.used_count < chunk.slot_count).collect();
        }
        plan
    }

    /// Removes and returns the next chunk of this class to fill.
    pub(super) fn next_to_fill(&mut self, class: Class) -> Option<ChunkUse> {
        self.taking[usize::from(class.index())].pop()
    }

    /// Returns the bytes of the chunks to empty.
    pub(super) fn leaving_bytes(&self) -> u64 {
        self.leaving.iter().map(|chunk| chunk.len_bytes).sum()
    }

    /// Returns the bytes of the slots to move.
    pub(super) fn moved_bytes(&self) -> u64 {
        self.leaving.iter().map(|chunk| u64::from(chunk.used_count) * chunk.class.bytes()).sum()
    }
}

/// Returns the number of a class's chunks, the emptiest first, whose items fit into the gaps of the other chunks.
fn leaving_count(class: &[ChunkUse], thoroughness: Thoroughness) -> usize {
    let gaps = |chunk: &ChunkUse| u64::from(chunk.slot_count - chunk.used_count);
    let mut gap_count: u64 = class.iter().map(gaps).sum();
    let mut moved = 0;
    class
        .iter()
        .take_while(|chunk| {
            gap_count -= gaps(chunk);
            moved += u64::from(chunk.used_count);
            let is_worth_it = thoroughness == Thoroughness::Full || gaps(chunk) * 8 >= u64::from(chunk.slot_count);
            is_worth_it && moved <= gap_count
        })
        .count()
}
