//! Discarded space of the base, much of it in blocks that have not been read yet: lives of a region, each of them ended
//! by a crash, a kill or a close. Every discarded byte is unchanged or zero, and adjacent pages are intact. Nothing is
//! written where space may be missing: the simulated disk would panic.

use std::sync::Arc;

use fastrand::Rng;
use journal::{JournalOptions, Journaled};
use parking_lot::Mutex;
use pmem::{Bytes, Level, Offset, Persist, Space, Span};
use pmem_sim::{Crashable, DiskImage, Fault, Model, SimDisk, SimFile};
use testkit::Extent;

const PAGE_BYTES: u64 = 4096;
const PAGE_COUNT: usize = 8;
const LIFE_COUNT: usize = 4;
const OP_COUNT_MAX: usize = 14;
const SEED_COUNT: u64 = 100;
/// Crash images examined after one step.
const IMAGES_PER_STEP: usize = 3;

/// Blocks of four pages, so that a page has one or two neighbours in its block, and a log that a few pages fill.
fn options() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        log_bytes_max: 12 * PAGE_BYTES,
        segment_bytes: 4 * PAGE_BYTES,
        block_bytes: 4 * PAGE_BYTES,
        background: false,
        ..JournalOptions::default()
    }
}

fn open(disk: &SimDisk) -> Journaled<SimFile> {
    Journaled::open(disk.files(), options(), &|_| {}).expect("a disk without faults")
}

fn span(page: usize) -> Span {
    Offset(page as u64 * PAGE_BYTES).span(PAGE_BYTES)
}

/// The expected contents of a page.
#[derive(Clone)]
struct Page {
    /// Every byte equals that byte of one of these.
    contents: Vec<Vec<u8>>,
    /// True while the page is discarded. No caller stores to it before allocating it again.
    is_given_back: bool,
}

type Pages = [Page; PAGE_COUNT];

/// Checks every page. From then on a page in use must keep the contents found.
fn settle(pages: &mut Pages, journal: &Journaled<SimFile>, when: &str) {
    for (number, page) in pages.iter_mut().enumerate() {
        // SAFETY: only one thread uses the region, and it stores nothing while it reads.
        let found = unsafe { journal.bytes(span(number)) }.expect("the disk can be read");
        let is_legal = |i: usize| page.contents.iter().any(|content| content[i] == found[i]);
        let wrong = (0..found.len()).find(|&i| !is_legal(i));
        assert_eq!(wrong, None, "in page {number} {when}: {}", if page.is_given_back { "discarded" } else { "in use" });
        if !page.is_given_back {
            page.contents = vec![found.to_vec()];
        }
    }
}

/// A possible crash and the expected pages after it.
type Crash = (DiskImage, Pages);

struct Life {
    disk: SimDisk,
    pages: Pages,
}

impl Life {
    /// Returns a region with all pages in use; some pages' contents are only in the log.
    fn first(rng: &mut Rng) -> Life {
        let disk = SimDisk::new(0, Model::Disk);
        let region_bytes = PAGE_COUNT as u64 * PAGE_BYTES;
        drop(Journaled::create(disk.files(), region_bytes, [1; 16], options()).expect("a disk without faults"));
        let zeros = || Page { contents: vec![vec![0; PAGE_BYTES as usize]], is_given_back: false };
        let life = Life { disk, pages: std::array::from_fn(|_| zeros()) };
        let (journal, shared) = (open(&life.disk), Mutex::new((life.pages, Vec::new())));
        (0..PAGE_COUNT).for_each(|page| fill(&journal, page, &shared, rng));
        kill(&life.disk, journal);
        Life { disk: life.disk, pages: shared.into_inner().0 }
    }

    /// Opens the region, discards and allocates pages, writes, and ends the life.
    fn live(self, rng: &mut Rng) -> (Life, usize) {
        let Life { disk, pages } = self;
        let shared = Arc::new(Mutex::new((pages, Vec::new())));
        observe(&disk, &shared, rng.fork());
        let journal = open(&disk);
        for _ in 0..rng.usize(0..OP_COUNT_MAX) {
            act(&journal, &shared, rng);
        }
        let end = rng.u8(0..3);
        if end == 0 {
            drop(journal)
        } else {
            kill(&disk, journal)
        }
        disk.unobserve();
        let (pages, mut crashes): (Pages, Vec<Crash>) = std::mem::replace(
            &mut *shared.lock(),
            (std::array::from_fn(|_| Page { contents: Vec::new(), is_given_back: false }), Vec::new()),
        );
        crashes.iter().for_each(examine);
        let count = crashes.len();
        if end == 2 && count > 0 {
            let (image, pages) = crashes.swap_remove(rng.usize(0..count));
            return (Life { disk: SimDisk::from_image(&image, Model::Disk), pages }, count);
        }
        (Life { disk, pages }, count)
    }
}

type Shared = Mutex<(Pages, Vec<Crash>)>;

fn observe(disk: &SimDisk, shared: &Arc<Shared>, mut rng: Rng) {
    let shared = Arc::clone(shared);
    disk.observe(Box::new(move |disk, _| {
        let images = disk.images(IMAGES_PER_STEP, rng.u64(..));
        let mut shared = shared.lock();
        let pages = shared.0.clone();
        shared.1.extend(images.into_iter().map(|image| (image, pages.clone())));
    }));
}

fn act(journal: &Journaled<SimFile>, shared: &Shared, rng: &mut Rng) {
    let page = rng.usize(0..PAGE_COUNT);
    let is_given_back = shared.lock().0[page].is_given_back;
    match rng.u8(0..10) {
        0..5 if !is_given_back => give_back(journal, page, shared, rng),
        0..5 => take_again(journal, page, shared, rng),
        5..7 if !is_given_back => fill(journal, page, shared, rng),
        7 => settle(&mut shared.lock().0, journal, "while it is open"),
        _ => journal.checkpoint().expect("a disk without faults"),
    }
}

/// Discards a span of which only one page is complete; the partial pages around it stay.
fn give_back(journal: &Journaled<SimFile>, page: usize, shared: &Shared, rng: &mut Rng) {
    {
        let page = &mut shared.lock().0[page];
        page.contents.push(vec![0; PAGE_BYTES as usize]);
        page.is_given_back = true;
    }
    let Span { start: Offset(start), len_bytes } = span(page);
    let before_bytes = if page > 0 { rng.u64(0..PAGE_BYTES) } else { 0 };
    let behind_bytes = if page + 1 < PAGE_COUNT { rng.u64(0..PAGE_BYTES) } else { 0 };
    let around = Offset(start - before_bytes).span(before_bytes + len_bytes + behind_bytes);
    // SAFETY: only one thread uses the region, and it allocates the page again before it stores to it.
    let freed_bytes = unsafe { journal.discard(around) };
    assert_eq!(freed_bytes, PAGE_BYTES);
}

fn take_again(journal: &Journaled<SimFile>, page: usize, shared: &Shared, rng: &mut Rng) {
    journal.allocate(span(page)).expect("a disk with space");
    shared.lock().0[page].is_given_back = false;
    fill(journal, page, shared, rng);
}

/// Fills the page with a new value and waits until it is durable.
fn fill(journal: &Journaled<SimFile>, page: usize, shared: &Shared, rng: &mut Rng) {
    let new = vec![rng.u8(1..); PAGE_BYTES as usize];
    shared.lock().0[page].contents.push(new.clone());
    // SAFETY: only one thread uses the region, and it holds no reference into it.
    unsafe { journal.stream(span(page).start, &[&new]) };
    journal.wait(journal.commit(Level::Strongest)).expect("a disk without faults");
    shared.lock().0[page].contents = vec![new];
}

fn kill(disk: &SimDisk, journal: Journaled<SimFile>) {
    disk.unobserve();
    disk.fail(Some(Fault::Dead(0)));
    drop(journal);
    disk.fail(None);
}

/// Checks the pages after a crash, and again after everything replayed was written to the base.
fn examine((image, pages): &Crash) {
    let (disk, mut pages) = (SimDisk::from_image(image, Model::Disk), pages.clone());
    let journal = open(&disk);
    settle(&mut pages, &journal, "after a crash");
    drop(journal);
    settle(&mut pages, &open(&disk), "after a crash and a close");
}

#[test]
fn discarding_unread_blocks_keeps_adjacent_blocks() {
    let mut image_count = 0;
    let seed_count = SEED_COUNT / Extent::pick(4, 1);
    for seed in 0..seed_count {
        let mut rng = Rng::with_seed(seed);
        let mut life = Life::first(&mut rng);
        for _ in 0..LIFE_COUNT {
            let (next, count) = life.live(&mut rng);
            image_count += count;
            life = next;
        }
    }
    assert!(image_count as u64 > 100 * seed_count, "{image_count} images");
}
