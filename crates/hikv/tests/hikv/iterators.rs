//! Iterators in no order, items with version and expiry, and values that a callback returns, for every engine.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use hikv::{Clock, Durability, EngineKind, Error, Expiry, Options, PutOptions, Store};
use tempfile::tempdir;

/// Few of these fit into the memory that an iterator copies ahead.
const LONG_BYTES: usize = 20_000;

fn each_engine(test: impl Fn(EngineKind, &Store, &Clock)) {
    for &engine in EngineKind::ALL {
        let (dir, clock) = (tempdir().unwrap(), Clock::manual(1_000));
        let options = Options::new().engine(engine).background(false).durability(Durability::Buffered);
        test(engine, &options.clock(clock.clone()).open(dir.path()).unwrap(), &clock);
    }
}

fn items() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let value = |number: u32| vec![number as u8; if number.is_multiple_of(10) { LONG_BYTES } else { 5 }];
    (0..500_u32).map(|number| (number.to_be_bytes().to_vec(), value(number))).collect()
}

#[test]
fn iterators_return_each_item_once() {
    each_engine(|engine, store, _| {
        let items = items();
        store.multi_put(&items).unwrap();
        let returned: Vec<_> = store.iter().collect::<Result<_, _>>().unwrap();
        assert_eq!(returned.len(), items.len(), "{engine}");
        assert_eq!(returned.into_iter().collect::<BTreeMap<_, _>>(), items, "{engine}");
        let mut keys: Vec<_> = store.keys().collect::<Result<_, _>>().unwrap();
        keys.sort();
        assert!(keys.iter().eq(items.keys()), "{engine}");
    });
}

#[test]
fn iterator_omits_deleted_long_values() {
    each_engine(|engine, store, _| {
        let items = items();
        store.multi_put(&items).unwrap();
        let mut iter = store.iter();
        let first = iter.next().unwrap().unwrap();
        items.keys().for_each(|key| _ = store.delete(key).unwrap());
        let rest: Vec<_> = iter.collect::<Result<_, _>>().unwrap();
        let ahead_bytes: usize = rest.iter().map(|(_, value)| value.len()).sum();
        assert!(ahead_bytes <= 64 * 1024, "{engine}: {ahead_bytes} bytes were copied ahead");
        assert!(rest.iter().chain([&first]).all(|(key, value)| items.get(key) == Some(value)), "{engine}");
    });
}

#[test]
fn item_fields_are_of_one_moment() {
    each_engine(|engine, store, clock| {
        assert!(store.get_item("key").unwrap().is_none(), "{engine}");
        store.put("key", "value").unwrap();
        let plain = store.get_item("key").unwrap().unwrap();
        assert_eq!((plain.value, plain.expiry), ("value".as_bytes().into(), Expiry::NEVER), "{engine}");
        if !store.features().expiry {
            return;
        }
        let options = PutOptions::new().ttl(Duration::from_secs(5));
        store.put_with("key", "value", options.expect_version(plain.version)).unwrap();
        let lasting = store.get_item("key").unwrap().unwrap();
        assert_ne!(lasting.version, plain.version, "{engine}");
        assert_eq!(lasting.expiry, Expiry::at_ms(6_000), "{engine}");
        let seen = store.in_place().get_part_item("key", |item| (item.version(), item.expiry())).unwrap();
        assert_eq!(seen, Some((lasting.version, lasting.expiry)), "{engine}");
        clock.advance(Duration::from_secs(5));
        assert!(store.get_item("key").unwrap().is_none(), "{engine}: it has expired");
    });
}

#[test]
fn callbacks_return_the_value_of_break() {
    each_engine(|engine, store, _| {
        store.multi_put([("one", "eins"), ("two", "zwei")]).unwrap();
        let find = |wanted: &'static str| {
            move |key: &[u8], value: &[u8]| match value == wanted.as_bytes() {
                true => ControlFlow::Break(key.to_vec()),
                false => ControlFlow::Continue(()),
            }
        };
        assert_eq!(store.for_each(find("zwei")).unwrap(), Some(b"two".to_vec()), "{engine}");
        assert_eq!(store.for_each(find("drei")).unwrap(), None, "{engine}");
        match store.ordered() {
            Ok(ordered) => {
                assert_eq!(ordered.scan("", find("zwei")).unwrap(), Some(b"two".to_vec()), "{engine}");
                assert_eq!(ordered.scan_back("twp", find("drei")).unwrap(), None, "{engine}");
                let items = store.prefix("t").unwrap().collect::<Result<Vec<_>, _>>().unwrap();
                assert_eq!(items, [(b"two".to_vec(), b"zwei".to_vec())], "{engine}");
            }
            Err(error) => {
                assert!(matches!(error, Error::Unsupported { .. }), "{engine}: {error}");
                assert_eq!(store.range("a"..).unwrap_err().to_string(), error.to_string(), "{engine}");
            }
        }
    });
}

#[test]
fn range_without_order_names_the_option() {
    let dir = tempdir().unwrap();
    let store = Options::new().ordered(false).durability(Durability::Buffered).open(dir.path()).unwrap();
    let error = store.prefix("t").unwrap_err();
    assert!(matches!(error, Error::NoOrder), "{error}");
    assert!(error.to_string().contains("Options::ordered"), "{error}");
}
