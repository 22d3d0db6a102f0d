//! Puts of several keys in one call.

use pmem::MediumError;

use super::rig::{Contents, Rig};
use engine::Error;
use engine::prelude::*;

fn key(number: u32) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn put(rig: &Rig, items: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
    let slices: Vec<(&[u8], &[u8])> = items.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    rig.store.multi_put(&slices)
}

#[test]
fn multi_put_equals_sequential_puts() {
    let (rig, mut contents) = (Rig::new(), Contents::new());
    for round in 0..200u32 {
        // Some keys occur twice in a group, some are replaced, and there are enough of them for splits.
        let items: Vec<_> =
            (0..40).map(|i| (key((round * 31 + i * i) % 3000), vec![i as u8; 10 + round as usize])).collect();
        put(&rig, &items).unwrap();
        contents.extend(items);
    }
    assert!(rig.store.stats().figure("split_count").unwrap() > 0.0);
    assert!(rig.contents() == contents);
    rig.free_garbage();
    assert_eq!((rig.store.len().unwrap(), rig.damage()), (contents.len() as u64, vec![]));
    let used = rig.store.stats().live_bytes;
    let rig = rig.reopened();
    assert!(rig.contents() == contents && rig.store.len().unwrap() == contents.len() as u64);
    assert_eq!(rig.store.stats().live_bytes, used, "every replaced item was freed");
}

#[test]
fn full_region_takes_what_it_can() {
    let (rig, mut count) = (Rig::of_fixed_size(), 0);
    let error = loop {
        let items: Vec<_> = (count..count + 16).map(|number| (key(number), vec![7; 4_000])).collect();
        match put(&rig, &items) {
            Ok(()) => count += 16,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Medium(MediumError::Full { .. })), "{error}");
    let items = rig.store.len().unwrap();
    assert!((u64::from(count)..u64::from(count) + 16).contains(&items));
    assert_eq!(rig.damage(), Vec::<String>::new());
    let contents = rig.contents();
    assert!(contents.values().all(|value| value == &[7; 4_000]) && contents.len() as u64 == items);
    assert!(rig.reopened().contents() == contents);
}

#[test]
fn too_long_key_stops_multi_put_first() {
    let rig = Rig::new();
    let result = put(&rig, &[(key(1), vec![1]), (vec![0; 70_000], vec![2])]);
    assert!(matches!(result, Err(Error::KeyTooLong { len_bytes: 70_000 })));
    assert_eq!(rig.store.len().unwrap(), 0);
}
