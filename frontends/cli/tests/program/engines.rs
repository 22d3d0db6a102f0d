//! Tests all commands on a store of an engine without key order.

use crate::support::Place;

#[test]
fn store_without_order_is_checked() {
    let place = Place::new();
    place.run("put", &["a key", "a value", "--engine", "rewo-hash"]).succeeded();
    for options in [&[][..], &["--deep"]] {
        assert_eq!(place.run("check", options).succeeded(), b"1 item, no damage\n");
    }
    place.run::<&str>("scan", &[]).failed(2, &["engine rewo-hash has no order"]);
}
