//! Changes that follow from a seed, and what so many of them leave.

use std::collections::BTreeMap;

use fastrand::Rng;

/// So many that the tree splits, so few that each is replaced and deleted again and again.
const KEY_COUNT: u16 = 150;

/// So many changes in turns: in some a quarter are deletes, of any keys; in others nearly all, of one key behind the other, so that nodes become low and are
/// merged.
const PHASE_COUNT: u64 = 100;

pub(crate) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;
/// A key, and its value; none to delete it.
pub(crate) type Change = (Vec<u8>, Option<Vec<u8>>);

/// The change of this number.
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

/// What each of so many threads has in a store.
pub(crate) struct Found(Vec<Contents>);

impl Found {
    pub(crate) fn new(thread_count: usize) -> Found {
        Found(vec![Contents::new(); thread_count])
    }

    /// Others may have keys, too.
    pub(crate) fn insert(&mut self, key: Vec<u8>, value: Vec<u8>) {
        if let Some(of_thread) = key.first().and_then(|&thread| self.0.get_mut(usize::from(thread))) {
            of_thread.insert(key, value);
        }
    }

    /// How many changes of each thread are there: those that it was told are acknowledged, and at most the next.
    pub(crate) fn judged(&self, seed: u64, acknowledged: &[u64]) -> Result<Vec<u64>, String> {
        let each = (0u8..).zip(acknowledged).zip(&self.0).map(|((thread, &acknowledged), found)| {
            let objection = format!("thread {thread}: what is there is not what {acknowledged} changes leave");
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

/// A seed, and what was acknowledged of each thread.
pub(crate) fn arguments(words: &[String]) -> Result<(u64, Vec<u64>), Box<dyn std::error::Error>> {
    let [seed, acknowledged @ ..] = words else { return Err("too few arguments".into()) };
    Ok((seed.parse()?, acknowledged.iter().map(|count| count.parse()).collect::<Result<_, _>>()?))
}

/// Says what was found.
#[expect(clippy::print_stdout, reason = "a program for the terminal")]
pub(crate) fn say_judged(counts: &[u64]) {
    println!("judged {}", counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
}
