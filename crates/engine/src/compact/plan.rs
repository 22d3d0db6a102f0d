//! Which chunks are emptied, and into which others.

use heap::{ChunkUse, Class};

/// How far it is worth going.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Thoroughness {
    /// Every chunk that can be emptied.
    Full,
    /// Chunks of which an eighth is free at least: for each byte that is moved something is gained.
    Worthwhile,
}

/// A plan for one pass.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// To be emptied.
    pub(super) leaving: Vec<ChunkUse>,
    /// By class, to be filled: the fullest last, which is the first to be filled.
    taking: Vec<Vec<ChunkUse>>,
}

impl Plan {
    /// Of each class the emptiest chunks, as many as the gaps of the others can take in: so no room is needed but these.
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

    /// The next chunk of this class to be filled.
    pub(super) fn next_to_fill(&mut self, class: Class) -> Option<ChunkUse> {
        self.taking[usize::from(class.index())].pop()
    }

    /// Bytes of the chunks that are emptied.
    pub(super) fn leaving_bytes(&self) -> u64 {
        self.leaving.iter().map(|chunk| chunk.len_bytes).sum()
    }

    /// Bytes of the slots that are moved.
    pub(super) fn moved_bytes(&self) -> u64 {
        self.leaving.iter().map(|chunk| u64::from(chunk.used_count) * chunk.class.bytes()).sum()
    }
}

/// How many of a class's chunks, the emptiest first, fit into the gaps of the rest.
fn leaving_count(class: &[ChunkUse], thoroughness: Thoroughness) -> usize {
    let gaps = |chunk: &ChunkUse| u64::from(chunk.slot_count - chunk.used_count);
    let mut room: u64 = class.iter().map(gaps).sum();
    let mut moved = 0;
    class
        .iter()
        .take_while(|chunk| {
            room -= gaps(chunk);
            moved += u64::from(chunk.used_count);
            let is_worth_it = thoroughness == Thoroughness::Full || gaps(chunk) * 8 >= u64::from(chunk.slot_count);
            is_worth_it && moved <= room
        })
        .count()
}
