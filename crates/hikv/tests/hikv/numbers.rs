//! Values that are counted up: which texts are numbers, and the errors for others.

use hikv::{Error, Store};

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    (dir, store)
}

#[test]
fn number_has_one_text() {
    let (_dir, store) = store();
    for number in [0, 7, -7, i64::MAX, i64::MIN] {
        store.put("n", number.to_string()).unwrap();
        assert_eq!(store.increment("n", 0).unwrap(), number);
    }
    for text in ["", "-", "-0", "+1", "01", " 1", "1 ", "1a", "9223372036854775808"] {
        store.put("n", text).unwrap();
        let refused = store.increment("n", 0);
        assert!(matches!(refused, Err(Error::NotANumber { .. })), "{text:?}: {refused:?}");
        assert_eq!(store.get("n").unwrap().as_deref(), Some(text.as_bytes()));
    }
}

#[test]
fn errors_name_what_was_there() {
    let (_dir, store) = store();
    let refused = |value: &[u8]| {
        store.put("n", value).unwrap();
        store.increment("n", 1).unwrap_err().to_string()
    };
    let error = refused(b"tw\no");
    assert!(error.contains("'tw\\no'"), "{error}");
    let error = refused(&[b'9'; 1000]);
    assert!(error.contains("999…") && error.len() < 200, "{error}");
    let error = refused(b"9223372036854775807");
    assert!(error.contains("9223372036854775807"), "{error}");
}
