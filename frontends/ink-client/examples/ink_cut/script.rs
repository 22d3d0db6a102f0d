//! Changes that are determined by a seed, and the contents that result from them.

use std::collections::BTreeMap;

use fastrand::Rng;

/// Enough keys that the tree splits, and few enough that each is replaced and deleted repeatedly.
const KEY_COUNT: u16 = 150;

/// The length of a phase, in changes. In every other phase a quarter of the changes are deletes of random keys; in
/// the phases between, nearly all are deletes of consecutive keys, so that nodes become sparse and are merged.
const PHASE_COUNT: u64 = 100;

pub(crate) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;
/// A key and its value; no value deletes the key.
pub(crate) type Change = (Vec<u8>, Option<Vec<u8>>);

/// Returns the change with this number.
pub(crate) fn change(seed: u64, thread: u8, number: u64) -> Change {
    let mut random = Rng::with_seed(seed ^ u64::from(thread) << 56 ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let is_deleting = number / PHASE_COUNT % 2 == 1;
    let any = random.u16(..KEY_COUNT);
    let nth = if is_deleting { (number % u64::from(KEY_COUNT)) as u16 } else { any };
    let key = [&[thread], &nth.to_be_bytes()[..]].concat();
    let value = (random.u8(..16) >= if is_deleting { 14 } else { 4 }).then(|| {
        let len_bytes = if random.u8(..20) == 0 { random.usize(..9_000) } else { random.usize(..300) };
        number.to_le_bytes().iter().copied().cycle().take(8 + len_bytes).collect()
    });
    (key, value)
}

/// The contents of each thread's keys in a store.
pub(crate) struct Found(Vec<Contents>);

impl Found {
    pub(crate) fn new(thread_count: usize) -> Found {
        Found(vec![Contents::new(); thread_count])
    }

    /// Adds an item. Keys of other programs are ignored.
    pub(crate) fn insert(&mut self, key: Vec<u8>, value: Vec<u8>) {
        if let Some(of_thread) = key.first().and_then(|&thread| self.0.get_mut(usize::from(thread))) {
            of_thread.insert(key, value);
        }
    }

    /// Returns the number of changes of each thread that the contents show: all acknowledged ones, and at most the
    /// next.
    pub(crate) fn judged(&self, seed: u64, acknowledged: &[u64]) -> Result<Vec<u64>, String> {
        let each = (0u8..).zip(acknowledged).zip(&self.0).map(|((thread, &acknowledged), found)| {
            let objection = format!("thread {thread}: the contents are not those after {acknowledged} changes");
            judged(seed, thread, acknowledged, found).ok_or(objection)
        });
        each.collect()
    }
}

fn judged(seed: u64, thread: u8, acknowledged: u64, found: &Contents) -> Option<u64> {
    let (mut contents, mut fitting) = (Contents::new(), None);
    for count in 0..=acknowledged + 1 {
        if count >= acknowledged && contents == *found {
            fitting = Some(count);
        }
        match change(seed, thread, count) {
            (key, Some(value)) => _ = contents.insert(key, value),
            (key, None) => _ = contents.remove(&key),
        }
    }
    fitting
}

/// Parses a seed and the number of acknowledged changes of each thread.
pub(crate) fn arguments(words: &[String]) -> Result<(u64, Vec<u64>), Box<dyn std::error::Error>> {
    let [seed, acknowledged @ ..] = words else { return Err("too few arguments".into()) };
    Ok((seed.parse()?, acknowledged.iter().map(|count| count.parse()).collect::<Result<_, _>>()?))
}

/// Prints the numbers of changes found.
#[expect(clippy::print_stdout, reason = "a program for the terminal")]
pub(crate) fn say_judged(counts: &[u64]) {
    println!("judged {}", counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
}
