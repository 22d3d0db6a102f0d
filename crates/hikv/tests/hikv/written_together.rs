//! A batch writes exactly its operations, one by one.

use std::time::{Duration, SystemTime};

use hikv::{PutOptions, Store, Ttl, WriteBatch};

#[test]
fn operations_run_in_added_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.multi_put([("gone", "1"), ("other", "2"), ("key", "3")]).unwrap();
    let hour = SystemTime::now() + Duration::from_secs(3600);
    let mut batch = WriteBatch::new();
    batch.put("", "").delete("").put("key", "").delete("other").put("", "value").delete("gone");
    batch.put_with("late", "", PutOptions::new().expires(hour));
    assert_eq!(batch.len(), 7);
    store.write(&batch).unwrap();
    let keys = ["", "key", "other", "gone", "late"];
    let values = [Some(&b"value"[..]), Some(b""), None, None, Some(b"")];
    let found = store.multi_get(keys).unwrap();
    assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), values);
    assert!(matches!(store.ttl("late").unwrap(), Some(Ttl::Left(_))));
    batch.clear();
    assert_eq!(batch.len(), 0);
    store.put("", "kept").unwrap();
    store.write(&batch).unwrap();
    assert_eq!(store.get("").unwrap().as_deref(), Some(&b"kept"[..]));
}
