//! Counts of trees stay exact while threads write, keys expire, and the first count of an opening is under way.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hikv::{Clock, Durability, EngineKind, Error, Options, Order, PutOptions, Store, Tree, WriteBatch};

const NAMES: [&str; 3] = ["a", "b", "c"];
const ENGINES: [EngineKind; 4] = [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv];
/// Enough for several parts of a count.
const KEY_COUNT: u32 = 9_000;
const OPS_PER_WRITER: u32 = 2_000;
/// Enough background steps to delete what has expired.
const STEP_COUNT: u32 = 10_000;

/// Keys of any tree; some look like stored keys.
fn key(rng: &mut Rng) -> Vec<u8> {
    let number = rng.u32(..KEY_COUNT).to_be_bytes();
    if rng.u8(..8) == 0 { [&[0xFF, 0x11][..], &number[2..]].concat() } else { number.to_vec() }
}

fn trees(store: &Store) -> Vec<Tree> {
    NAMES.iter().map(|name| store.tree(name).unwrap()).chain([Tree::clone(store)]).collect()
}

/// Does random writes of all kinds.
fn write(store: &Store, seed: u64, clock: &Clock) {
    let (mut rng, trees) = (Rng::with_seed(seed), trees(store));
    for _ in 0..OPS_PER_WRITER {
        let (tree, other, key) = (rng.choice(&trees).unwrap(), rng.choice(&trees).unwrap(), key(&mut rng));
        match rng.u8(..16) {
            0..5 => tree.put(&key, [7; 40]).unwrap(),
            5..9 => _ = tree.delete(&key).unwrap(),
            9 | 10 => {
                let ttl = Duration::from_millis(rng.u64(1..3_000));
                tree.put_with(&key, "expires", PutOptions::new().ttl(ttl)).unwrap();
            }
            11 => {
                let mut batch = WriteBatch::new();
                batch.tree(tree).put(&key, "batch").delete([key[0], 1]);
                batch.tree(other).put(&key, "batch");
                store.write(&batch).unwrap();
            }
            12 => {
                let moved = store.transact(|tx| {
                    let Some(value) = tx.tree(tree)?.take(&key)? else { return Ok::<_, Error>(()) };
                    tx.tree(other)?.put(&key, value)
                });
                moved.unwrap();
            }
            13 => {
                let items: Vec<_> = (0..rng.u8(..20)).map(|_| (self::key(&mut rng), "many")).collect();
                tree.multi_put(items).unwrap();
            }
            14 => _ = tree.insert_if_absent(&key, "absent").unwrap(),
            _ => clock.advance(Duration::from_millis(20)),
        }
    }
}

/// Asserts that counts are those of walks, once the background has deleted what has expired.
fn assert_exact(store: &Store, clock: &Clock, when: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    for tree in trees(store) {
        loop {
            clock.advance(Duration::from_secs(5));
            // Not until there is no more work: compaction rests between its steps.
            (0..STEP_COUNT).any(|_| !store.background().step().unwrap().is_more);
            let (len, walked) = (tree.len().unwrap(), tree.keys().count() as u64);
            if len == walked {
                break;
            }
            assert!(Instant::now() < deadline, "{when}: {tree:?} has {len} keys, and walks meet {walked}");
            thread::yield_now();
        }
    }
}

/// Writes while another thread asks for counts, from the first one on, and changes whole trees.
fn write_and_count(store: &Store, clock: &Clock, seed: u64) {
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(move || write(store, seed + writer, clock))).collect();
        let (trees, mut rng) = (trees(store), Rng::with_seed(seed));
        while !writers.iter().all(|writer| writer.is_finished()) {
            trees[rng.usize(..4)].len().unwrap_or_else(|error| panic!("after seed {seed}: {error}"));
            match rng.u8(..10) {
                0 => store.swap_trees("a", "b").unwrap(),
                1 => trees[rng.usize(..3)].clear().unwrap(),
                2 => _ = store.compact(|_| ()).unwrap(),
                3 if store.features().order != Order::No => {
                    let ordered = trees[rng.usize(..3)].ordered().unwrap();
                    ordered.delete_range(vec![0, 0, rng.u8(..35)]..vec![0, 0, 40]).unwrap();
                }
                _ => {}
            }
        }
    });
}

/// Copies the files of a store that is in use and that no thread writes, in the background either: what a killed
/// process leaves.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn counts_stay_exact(engine: EngineKind, place: &str) {
    let (dir, clock) = (tempfile::tempdir_in(place).unwrap(), Clock::manual(1_000_000));
    let options = Options::new().engine(engine).clock(clock.clone()).durability(Durability::Process);
    let [path, crashed] = ["store", "crashed"].map(|name| dir.path().join(name));
    let store = options.open(&path).unwrap();
    let mut rng = Rng::with_seed(9);
    for tree in trees(&store) {
        let items: Vec<_> = (0..KEY_COUNT).map(|_| (key(&mut rng), "first")).collect();
        tree.multi_put(items).unwrap();
    }
    write_and_count(&store, &clock, 1);
    assert_exact(&store, &clock, "first opening");
    store.close().unwrap();
    let store = options.clone().background(false).open(&path).unwrap();
    write_and_count(&store, &clock, 10);
    assert_exact(&store, &clock, "after a clean close");
    copy(&path, &crashed);
    let recovered = options.open(&crashed).unwrap();
    write_and_count(&recovered, &clock, 20);
    assert_exact(&recovered, &clock, "after a crash");
    recovered.drop_tree("c").unwrap();
    recovered.tree("c").unwrap().put("key", "value").unwrap();
    assert_exact(&recovered, &clock, "after a drop");
    assert_eq!(recovered.tree("c").unwrap().len().unwrap(), 1);
}

#[test]
fn counts_stay_exact_in_memory() {
    ENGINES.into_iter().for_each(|engine| counts_stay_exact(engine, "/dev/shm"));
}

#[test]
fn counts_stay_exact_on_a_journal() {
    ENGINES.into_iter().for_each(|engine| counts_stay_exact(engine, env!("CARGO_MANIFEST_DIR")));
}
