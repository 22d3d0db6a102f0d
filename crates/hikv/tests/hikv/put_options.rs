//! Options of a put: in every engine, a condition, an expiry and a durability have the same meaning as in a batch.

use std::time::Duration;

use hikv::{Clock, Durability, EngineKind, Error, Expires, Options, PutOptions, Store, Ttl, WriteBatch};
use tempfile::tempdir;

fn each_engine(test: impl Fn(EngineKind, &Store, &Clock)) {
    for &engine in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy") {
        let (dir, clock) = (tempdir().unwrap(), Clock::manual(1_000_000));
        let options = Options::new().engine(engine).clock(clock.clone()).durability(Durability::Process);
        test(engine, &options.open(dir.path().join("store")).unwrap(), &clock);
    }
}

fn is_refused(result: Result<(), Error>) -> bool {
    matches!(result, Err(Error::ConditionFailed { condition: 0 }))
}

#[test]
fn put_expects_an_absent_key() {
    each_engine(|engine, store, clock| {
        let lease = PutOptions::new().expect_absent().ttl(Duration::from_secs(60));
        store.put_with("lease", "ada", lease).unwrap();
        assert!(is_refused(store.put_with("lease", "bob", lease)), "{engine}");
        assert_eq!(store.get("lease").unwrap().as_deref(), Some(&b"ada"[..]), "{engine}");
        assert_eq!(store.ttl("lease").unwrap(), Some(Ttl::Left(Duration::from_secs(60))), "{engine}");
        clock.advance(Duration::from_secs(60));
        store.put_with("lease", "bob", lease).unwrap();
        assert_eq!(store.get("lease").unwrap().as_deref(), Some(&b"bob"[..]), "{engine}");
    });
}

#[test]
fn put_expects_a_version() {
    each_engine(|engine, store, _| {
        store.put("door", "open").unwrap();
        let seen = store.get_item("door").unwrap().unwrap().version;
        let expecting = PutOptions::new().expect_version(seen);
        store.put_with("door", "shut", expecting.ttl(Duration::from_secs(9))).unwrap();
        assert!(is_refused(store.put_with("door", "locked", expecting)), "{engine}");
        assert_eq!(store.get("door").unwrap().as_deref(), Some(&b"shut"[..]), "{engine}");
        assert_eq!(store.ttl("door").unwrap(), Some(Ttl::Left(Duration::from_secs(9))), "{engine}");
        store.delete("door").unwrap();
        assert!(is_refused(store.put_with("door", "locked", expecting)), "{engine}: absent");
    });
}

#[test]
fn batch_takes_the_same_options() {
    each_engine(|engine, store, clock| {
        let lease = PutOptions::new().expect_absent().ttl(Duration::from_secs(60));
        let mut batch = WriteBatch::new();
        batch.put_with("lease", "ada", lease).put("by:ada", "lease");
        clock.advance(Duration::from_secs(1_000));
        store.write(&batch).unwrap();
        assert_eq!(store.ttl("lease").unwrap(), Some(Ttl::Left(Duration::from_secs(60))), "{engine}: from the write");
        assert!(is_refused(store.write(&batch)), "{engine}");
        assert!(store.expire("lease", Expires::Never).unwrap());
        assert_eq!(store.ttl("lease").unwrap(), Some(Ttl::Unlimited), "{engine}");
    });
}

#[test]
fn refused_options_change_nothing() {
    each_engine(|engine, store, _| {
        let absent = PutOptions::new().expect_absent();
        let streamed = store.put_from_with("key", 5, &b"value"[..], absent);
        assert!(matches!(streamed, Err(Error::Unsupported { .. })), "{engine}: {streamed:?}");
        if hikv::FrontEnd::of(store).durability_max() < Durability::Power {
            let put = store.put_with("key", "value", PutOptions::new().durability(Durability::Power));
            assert!(matches!(put, Err(Error::Durability { wanted: Durability::Power, .. })), "{engine}: {put:?}");
        }
        assert_eq!(store.len().unwrap(), 0, "{engine}");
    });
}
