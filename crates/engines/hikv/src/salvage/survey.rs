//! The survey of a damaged region: the head, the chunks, and the segments of the index that are in use.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use heap::layout::{SEGMENT_BYTES, UNIT_BYTES, unit_of};
use heap::salvage::{Chunk, Contents, Head, OnDamage};
use heap::{EngineNumber, HeapError};
use index::partitioned_hash::layout::{Geometry, PARTITION_COUNT_MAX, SegmentHeader};
use index::partitioned_hash::salvage::{Cover, SplitStates, Standing, is_in};
use pmem::{Medium, Offset};

use engine::Hasher;

/// The readable structure of a region.
pub(super) struct Survey {
    pub(super) head: Head,
    /// `None` if the seed is lost.
    pub(super) hasher: Option<Hasher>,
    /// In the order of their units.
    pub(super) chunks: Vec<Chunk>,
    /// Segments in use, in the order in which their entries take precedence.
    pub(super) live: Vec<Offset>,
    /// Segments that may be in use, to be searched for the keys in `gaps`; those with an intact state word come first.
    pub(super) unreadable: Vec<Offset>,
    /// The signatures that no live segment covers, in ascending runs.
    pub(super) gaps: Vec<RangeInclusive<u64>>,
    /// The last signature and the segment, by the first signature of each live segment.
    homes: BTreeMap<u64, (u64, Offset)>,
    /// Live segments that neither a split nor a `clear` has made.
    firsts: HashSet<Offset>,
}

impl Survey {
    /// Reads the region.
    ///
    /// # Errors
    /// If the region belongs to another program, or no structure can be recognised.
    pub(super) fn take<M: Medium>(medium: &M, on_damage: &mut OnDamage<'_>) -> Result<Survey, HeapError> {
        let head = Head::read(medium, on_damage)?.of_engine(EngineNumber::HIKV)?;
        let mut chunks = Vec::new();
        if medium.len_bytes() >= UNIT_BYTES {
            head.chunks(medium, on_damage, &mut |chunk| chunks.push(chunk));
        }
        let mut survey = Survey {
            hasher: head.superblock.map(|superblock| Hasher::new(superblock.hash_seed)),
            head,
            chunks,
            live: Vec::new(),
            unreadable: Vec::new(),
            gaps: vec![0..=u64::MAX],
            homes: BTreeMap::new(),
            firsts: HashSet::new(),
        };
        survey.find_segments(medium, on_damage);
        if survey.live.is_empty() && (survey.unreadable.is_empty() || survey.hasher.is_none()) {
            return Err(match survey.head.superblock {
                Some(_) => HeapError::Damaged { offset: UNIT_BYTES, what: "no segment of the index is left" },
                None => {
                    HeapError::Damaged { offset: 0, what: "neither a superblock nor a segment of the index is left" }
                }
            });
        }
        Ok(survey)
    }

    /// Returns the chunk that contains `at`.
    pub(super) fn chunk_of(&self, at: Offset) -> Option<Chunk> {
        let unit = unit_of(at)?;
        let past = self.chunks.partition_point(|chunk| chunk.unit <= unit);
        let chunk = *self.chunks.get(past.checked_sub(1)?)?;
        (unit - chunk.unit < chunk.units).then_some(chunk)
    }

    /// Returns true if no live segment covers the signature.
    pub(super) fn is_in_gap(&self, signature: u64) -> bool {
        let past = self.gaps.partition_point(|gap| *gap.start() <= signature);
        past.checked_sub(1).is_some_and(|last| self.gaps[last].contains(&signature))
    }

    /// Returns the live segment that covers the signature.
    pub(super) fn segment_of(&self, signature: u64) -> Option<Offset> {
        let (_, &(last, segment)) = self.homes.range(..=signature).next_back()?;
        (signature <= last).then_some(segment)
    }

    /// Returns true for a live segment with which the store was created.
    pub(super) fn is_first(&self, segment: Offset) -> bool {
        self.firsts.contains(&segment)
    }

    /// Returns true if there can be a segment at `at`.
    pub(super) fn is_segment_place<M: Medium>(&self, medium: &M, at: Offset) -> bool {
        let may_hold = |chunk: Chunk| matches!(chunk.contents, Contents::Segments | Contents::Unknown);
        is_in(medium.len_bytes(), at) && self.chunk_of(at).is_some_and(may_hold)
    }

    fn find_segments<M: Medium>(&mut self, medium: &M, on_damage: &mut OnDamage<'_>) {
        if medium.len_bytes() < UNIT_BYTES {
            return;
        }
        let all = Geometry::new(PARTITION_COUNT_MAX).expect("it is a number of partitions");
        let splits = SplitStates::read(medium, all, on_damage);
        let places: Vec<Offset> = self
            .chunks
            .iter()
            .filter(|chunk| chunk.contents == Contents::Segments)
            .flat_map(|c| c.segment_places())
            .collect();
        let mut standings: Vec<_> = places.iter().map(|&at| (at, splits.standing(medium, at))).collect();
        if self.head.superblock.is_none() || self.is_incomplete(&standings) {
            // A chunk's header may be damaged, so segments may be at unexpected places.
            let elsewhere = self.grid(medium).filter(|at| places.binary_search(at).is_err());
            standings.extend(elsewhere.map(|at| (at, splits.standing(medium, at))).filter(|&(at, standing)| {
                // In a chunk of items everything is a user's value, whatever it looks like.
                let is_nowhere = self.chunk_of(at).is_none();
                self.is_segment_place(medium, at) || is_nowhere && matches!(standing, Standing::Live(_))
            }));
        }
        let Some(geometry) = self.geometry(&standings) else { return };
        let generation = self.head.generation.or_else(|| newest(&standings));
        self.file(geometry, generation, &standings, on_damage);
    }

    /// Returns every place in the medium that is aligned as segments are.
    fn grid<M: Medium>(&self, medium: &M) -> impl Iterator<Item = Offset> + use<M> {
        let len_bytes = medium.len_bytes();
        (UNIT_BYTES / SEGMENT_BYTES..len_bytes / SEGMENT_BYTES).map(|number| Offset(number * SEGMENT_BYTES))
    }

    /// Returns true unless the live segments cover every key.
    fn is_incomplete(&self, standings: &[(Offset, Standing)]) -> bool {
        let (Some(geometry), Some(generation)) = (self.geometry(standings), self.head.generation) else { return true };
        let mut cover = Cover::default();
        for header in live_headers(standings).filter(|header| header.generation == generation) {
            let _ = cover.add(geometry, header);
        }
        !cover.gaps().is_empty()
    }

    /// Returns the superblock's geometry, or one with as many partitions as the segments show.
    fn geometry(&self, standings: &[(Offset, Standing)]) -> Option<Geometry> {
        let guessed = || live_headers(standings).map(|header| (header.partition + 1).next_power_of_two()).max();
        self.head.superblock.map(|superblock| superblock.partition_count).or_else(guessed).and_then(Geometry::new)
    }

    /// Records a live segment. If two segments cover the same signatures, the deeper one counts.
    fn note(&mut self, geometry: Geometry, header: SegmentHeader, at: Offset) {
        if let Some((first, last)) = geometry.signatures(header).map(RangeInclusive::into_inner) {
            let known = self.homes.entry(first).or_insert((last, at));
            *known = if last < known.0 { (last, at) } else { *known };
        }
        if header.depth == 0 && header.generation == 0 {
            self.firsts.insert(at);
        }
    }

    /// Sorts the segments into the fields of the survey.
    fn file(
        &mut self,
        geometry: Geometry,
        generation: Option<u16>,
        standings: &[(Offset, Standing)],
        on_damage: &mut OnDamage<'_>,
    ) {
        let (mut live, mut unreadable, mut cover) = (Vec::new(), Vec::new(), Cover::default());
        for &(at, standing) in standings {
            match standing {
                Standing::Live(header) if Some(header.generation) != generation => {}
                Standing::Live(header) if cover.add(geometry, header).is_some() => {
                    live.push((header.depth, at));
                    self.note(geometry, header, at);
                }
                Standing::Live(_) => unreadable.push((false, at)),
                Standing::Unreadable { is_live } => {
                    if self.chunk_of(at).is_some_and(|chunk| chunk.contents == Contents::Segments) {
                        on_damage(at, "a segment's header is damaged");
                    }
                    unreadable.push((!is_live, at));
                }
                Standing::Unused => unreadable.push((true, at)),
                Standing::Void => {}
            }
        }
        live.sort_by_key(|&(depth, at)| (std::cmp::Reverse(depth), at));
        unreadable.sort_unstable();
        self.live = live.into_iter().map(|(_, at)| at).collect();
        // If the live segments cover all keys, no other segments are needed.
        self.gaps = cover.gaps();
        let is_wanted = !self.gaps.is_empty();
        self.unreadable = unreadable.into_iter().filter(|_| is_wanted).map(|(_, at)| at).collect();
    }
}

fn live_headers(standings: &[(Offset, Standing)]) -> impl Iterator<Item = SegmentHeader> {
    standings.iter().filter_map(|(_, standing)| match standing {
        Standing::Live(header) => Some(*header),
        _ => None,
    })
}

/// Returns the newest generation of all live segments, so that remains of an older one, from an interrupted `clear`,
/// are left out.
fn newest(standings: &[(Offset, Standing)]) -> Option<u16> {
    let is_newer = |a: u16, b: u16| a.wrapping_sub(b) < 1 << 15;
    live_headers(standings).map(|header| header.generation).reduce(|a, b| if is_newer(a, b) { a } else { b })
}
