//! Trees with types: names of types stay with the keys, and other types are refused.

use hikv::typed::TreeOf;
use hikv::{Error, Store};

const AGES: TreeOf<String, u8> = TreeOf::new("ages");
const NAMES: TreeOf<u32, String> = TreeOf::new("names");

fn types_of<K: hikv::typed::Key, V: hikv::typed::Value>(store: &Store, name: &'static str) -> String {
    match TreeOf::<K, V>::new(name).open(store) {
        Ok(_) => "as asked".into(),
        Err(Error::TypeMismatch { stored, .. }) => stored.into(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn types_belong_to_tree_keys() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (ages, names) = (AGES.open(&store).unwrap(), NAMES.open(&store).unwrap());
    ages.put(&"ada".into(), &36).unwrap();
    names.put(&7, &"bob".into()).unwrap();
    assert_eq!(types_of::<u32, u32>(&store, "ages"), "text → u8");
    ages.untyped().clear().unwrap();
    assert_eq!(types_of::<u32, u32>(&store, "ages"), "text → u8");
    store.swap_trees("ages", "names").unwrap();
    assert_eq!(types_of::<u32, u32>(&store, "ages"), "u32 → text");
    store.rename_tree("ages", "people").unwrap();
    assert_eq!(types_of::<u32, String>(&store, "ages"), "as asked", "a new tree has no types");
    drop((ages, names));
    store.close().unwrap();
    let store = Store::open_read_only(dir.path()).unwrap();
    let people = TreeOf::<u32, String>::new("people").open(&store).unwrap();
    assert_eq!(people.range(..).unwrap().collect::<Result<Vec<_>, _>>().unwrap(), [(7, "bob".to_owned())]);
    assert_eq!(types_of::<u8, u8>(&store, "people"), "u32 → text");
}

#[test]
fn tree_with_keys_gets_types_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let untyped = store.tree("ages").unwrap();
    untyped.put("ada", [36]).unwrap();
    let ages = AGES.open(&store).unwrap();
    assert_eq!(ages.get(&"ada".into()).unwrap(), Some(36));
    assert_eq!(types_of::<String, u16>(&store, "ages"), "text → u8");
    untyped.put("bob", "seven").unwrap();
    untyped.put([0xFF, 0xFF], [1]).unwrap();
    let found = ages.get(&"bob".into());
    assert!(
        matches!(&found, Err(Error::NotOfType { type_name, bytes }) if &**type_name == "u8" && &**bytes == "seven")
    );
    let error = ages.last().unwrap_err();
    assert_eq!(error.to_string(), r"the bytes '\xff\xff' are none of type 'text'");
    assert_eq!(ages.range("a".to_owned().."b".into()).unwrap().rev().count(), 1);
}

#[test]
fn entries_read_and_change_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.put("old", "1").unwrap();
    let seen = store.transact(|tx| {
        assert_eq!(tx.entry("old").or_insert("2")?, "1");
        assert_eq!(tx.entry("new").and_modify(|value| value.clear())?.value()?, None);
        assert_eq!(tx.entry("new").or_insert("3")?, "3");
        tx.entry("new").and_modify(|value| value.push(b'4'))?;
        assert_eq!(tx.entry("none").remove()?, None);
        tx.entry("old").remove()
    });
    assert_eq!(seen.unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!((store.get("old").unwrap(), store.get("new").unwrap().as_deref()), (None, Some(&b"34"[..])));
    // The read of an absent key is tracked.
    let tx = store.begin().unwrap();
    tx.entry("none").or_insert("mine").unwrap();
    store.put("none", "theirs").unwrap();
    assert!(matches!(tx.commit(), Err(Error::Conflict)));
}
