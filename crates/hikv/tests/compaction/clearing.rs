//! What `clear` leaves is given back, and a store that is read is left alone.

use hikv::{Error, MediumError, Options, Store};

use crate::{allocated_bytes, place, wait_until};

fn filled(options: &Options, place: &tempfile::TempDir) -> Store {
    let store = options.open(place.path()).unwrap();
    for number in 0..20_000u64 {
        store.put(number.to_be_bytes(), [7; 1_500]).unwrap();
    }
    store.put("large", vec![7; 5 << 20]).unwrap();
    store
}

#[test]
fn a_cleared_store_gives_its_space_back() {
    let place = place();
    let store = filled(&Options::new(), &place);
    assert!(allocated_bytes(&store) > 30 << 20);
    store.clear().unwrap();
    wait_until("space given back", || allocated_bytes(&store) < 10 << 20);
    store.put("again", "1").unwrap();
    assert_eq!(store.len().unwrap(), 1);
}

#[test]
fn without_a_threshold_space_is_given_back_by_request_alone() {
    let place = place();
    let store = filled(&Options::new().compact_above(None), &place);
    store.clear().unwrap();
    assert!(allocated_bytes(&store) > 30 << 20);
    store.compact(|_| {}).unwrap();
    assert!(allocated_bytes(&store) < 10 << 20);
}

#[test]
fn a_store_that_is_read_is_not_compacted() {
    let place = place();
    filled(&Options::new(), &place).close().unwrap();
    let store = Store::open_read_only(place.path()).unwrap();
    assert!(matches!(store.compact(|_| {}), Err(Error::Medium(MediumError::ReadOnly))));
}

#[test]
fn a_ratio_below_one_is_refused() {
    let place = place();
    for ratio in [0.9, f64::NAN, f64::INFINITY] {
        let refused = Options::new().compact_above(ratio).open(place.path()).unwrap_err();
        assert!(refused.to_string().contains(&ratio.to_string()), "{refused}");
    }
}
