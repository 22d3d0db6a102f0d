//! Tests a server whose disk becomes full, then has space again.

use std::fs;

use rustix::process::Signal;

use crate::removed::{answered, shown, watched};
use crate::support::Place;

#[test]
fn full_disks_are_seen_and_forgotten() {
    Place::on_tmpfs(96, |place| {
        let others = place.write("others", vec![0; 24 << 20]);
        let serving = watched(place, &[]);
        let value = "v".repeat(1 << 20);
        let mut count = 0;
        let refusal = loop {
            match answered(&serving, &format!("SET key-{count} {value}")) {
                answer if answer == "+OK" => count += 1,
                refusal => break refusal,
            }
        };
        assert!(refusal.contains("no space left"), "{refusal}");
        for path in ["/health", "/health/serving"] {
            let health = shown(&serving, path);
            assert!(health.contains(" 503 ") && health.contains("\"status\":\"full\""), "{health}");
            assert!(health.contains("\"waiting\":[\"writes\"]"), "{health}");
        }
        let metrics = shown(&serving, "/metrics");
        for line in ["hikv_accepts_requests 0", "hikv_healthy 0", "hikv_disk_free_bytes "] {
            assert!(metrics.contains(line), "'{line}' is missing: {metrics}");
        }
        fs::remove_file(others).unwrap();
        while !shown(&serving, "/health").contains("\"status\":\"serving\"") {}
        assert_eq!(answered(&serving, &format!("SET key-{count} {value}")), "+OK");
        assert!(shown(&serving, "/metrics").contains("hikv_accepts_requests 1"));
        serving.signal(Signal::TERM);
        let ended = serving.ended();
        for line in ["out of space", "space is available again"] {
            assert!(ended.messages().contains(line), "'{line}' is missing: {}", ended.messages());
        }
    });
}
