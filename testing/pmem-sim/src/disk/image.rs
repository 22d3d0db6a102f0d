//! The state of the simulated disk's files after a crash or a kill.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::NAMES;
use super::sectors::{SECTOR_BYTES, Sector, Sectors, set_sector};
use crate::choice::{choices, write_survivors};
use crate::crashable::CrashImage;
use crate::pages::{PAGE_BYTES, Pages};

/// The files after a crash. Cheap: it shares the durable data with its disk and owns the differences.
#[derive(Clone)]
pub struct DiskImage {
    files: [FileImage; 2],
    choice: Vec<(Part, usize)>,
    hash: u64,
    /// After a kill: the files as they are; unsynced data in them may still be lost.
    left: Option<Arc<[Sectors; 2]>>,
}

#[derive(Clone)]
struct FileImage {
    durable: Arc<Pages>,
    survivors: Vec<(u64, Sector)>,
    len_bytes: u64,
    holes: Arc<BTreeSet<u64>>,
}

/// A piece of the pending state that survives independently of the other pieces.
#[derive(Clone, Copy, Debug)]
struct Part {
    file: usize,
    /// The sector, or none for the length.
    sector: Option<u64>,
    outcome_count: usize,
}

/// Returns at most `budget` images of `files`, like [`crate::Sim::images`].
pub(super) fn images(files: &[Sectors; 2], budget: usize, seed: u64) -> Vec<DiskImage> {
    let parts: Vec<Part> = files.iter().enumerate().flat_map(|(file, sectors)| parts(file, sectors)).collect();
    let outcome_counts: Vec<usize> = parts.iter().map(|part| part.outcome_count).collect();
    let image = |kept: Vec<usize>| DiskImage::of(files, parts.iter().copied().zip(kept).collect());
    let mut images: Vec<DiskImage> = choices(&outcome_counts, budget, seed).into_iter().map(image).collect();
    let mut known = HashSet::new();
    images.retain(|image| known.insert(image.hash));
    images
}

/// Returns the state that a killed process leaves, or `None` if all of it is durable and the cache shows it.
pub(super) fn killed(files: &[Sectors; 2]) -> Option<DiskImage> {
    let parts = files.iter().enumerate().flat_map(|(file, sectors)| parts(file, sectors));
    let choice: Vec<_> = parts.map(|part| (part, part.outcome_count - 1)).collect();
    if choice.is_empty() && files.iter().all(|sectors| sectors.pending().next().is_none()) {
        return None;
    }
    let image = DiskImage::of(files, choice);
    let mut hasher = DefaultHasher::new();
    for sectors in files {
        sectors.lengths().hash(&mut hasher);
        sectors.pending().for_each(|(number, history)| (number, history).hash(&mut hasher));
    }
    Some(DiskImage { hash: image.hash ^ hasher.finish(), left: Some(Arc::new(files.clone())), ..image })
}

fn parts(file: usize, sectors: &Sectors) -> impl Iterator<Item = Part> {
    let length = Part { file, sector: None, outcome_count: sectors.lengths().len() };
    let part = move |(number, outcome_count)| Part { file, sector: Some(number), outcome_count };
    let pending = sectors.pending().map(|(number, history)| (number, history.contents.len())).map(part);
    [length].into_iter().chain(pending).filter(|part| part.outcome_count > 1)
}

impl DiskImage {
    fn of(files: &[Sectors; 2], choice: Vec<(Part, usize)>) -> DiskImage {
        let files = [0, 1].map(|file| FileImage::of(&files[file], choice.iter().filter(|(part, _)| part.file == file)));
        let mut image = DiskImage { files, choice, hash: 0, left: None };
        let hashes = image.files.clone().map(|file| file.pages().hash() ^ file.len_bytes);
        image.hash = hashes[0].rotate_left(1) ^ hashes[1];
        image
    }

    /// Returns the files as the next opening finds them: all of it is durable, except unsynced data of a killed
    /// process.
    pub(super) fn files(&self) -> [Sectors; 2] {
        if let Some(left) = &self.left {
            return <[Sectors; 2]>::clone(left);
        }
        self.files.clone().map(|file| Sectors::holding(file.pages(), file.len_bytes, file.holes))
    }
}

impl FileImage {
    fn of<'a>(sectors: &Sectors, choice: impl Iterator<Item = &'a (Part, usize)>) -> FileImage {
        let mut image = FileImage {
            durable: Arc::clone(sectors.durable()),
            survivors: Vec::new(),
            len_bytes: sectors.lengths()[0],
            holes: Arc::clone(sectors.holes()),
        };
        let pending: BTreeMap<_, _> = sectors.pending().collect();
        for &(part, outcome) in choice {
            match part.sector {
                None => image.len_bytes = sectors.lengths()[outcome],
                Some(_) if outcome == 0 => {}
                Some(number) => image.survivors.push((number, pending[&number].contents[outcome])),
            }
        }
        let end = image.len_bytes.div_ceil(SECTOR_BYTES);
        image.survivors.retain(|(number, _)| *number < end);
        image
    }

    fn pages(&self) -> Pages {
        let mut pages = Pages::clone(&self.durable);
        for (number, content) in &self.survivors {
            set_sector(&mut pages, *number, content);
        }
        // The bytes behind a cut length are zero when the file gets longer again.
        let past = self.durable.present().map(|(start, _)| (start.0 + PAGE_BYTES) / SECTOR_BYTES).max().unwrap_or(0);
        (self.len_bytes.div_ceil(SECTOR_BYTES)..past)
            .for_each(|number| set_sector(&mut pages, number, &Sector::default()));
        pages
    }
}

impl CrashImage for DiskImage {
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// The pending sectors and lengths that survived.
impl fmt::Display for DiskImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left.is_some() {
            return f.write_str("the process was killed");
        }
        let survivors = self.choice.iter().map(|&(part, outcome)| (part, outcome, part.outcome_count));
        write_survivors(f, "sectors", survivors, |f, part| match part.sector {
            Some(sector) => write!(f, "{} {sector}", NAMES[part.file]),
            None => write!(f, "{} length", NAMES[part.file]),
        })
    }
}
