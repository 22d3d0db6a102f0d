//! The format of stores that this build reads and writes.

use heap::{
    FEATURE_BATCHES, FEATURE_EXPIRY, FEATURE_IMAGE, FEATURE_JOURNAL, FEATURE_KEYS_IN_NODES, FEATURE_TAGGED_VALUES,
    FEATURE_TREES, FEATURES_KNOWN, FORMAT_MAJOR, FORMAT_MINOR,
};

/// The format of stores (`docs/format/versions.md`).
pub struct Format;

const FEATURES: [(u32, &str); 7] = [
    (FEATURE_IMAGE, "image"),
    (FEATURE_EXPIRY, "expiry"),
    (FEATURE_BATCHES, "batches"),
    (FEATURE_JOURNAL, "journal"),
    (FEATURE_KEYS_IN_NODES, "node-keys"),
    (FEATURE_TAGGED_VALUES, "value-tags"),
    (FEATURE_TREES, "trees"),
];

const _: () = {
    let (mut flags, mut i) = (0, 0);
    while i < FEATURES.len() {
        flags |= FEATURES[i].0;
        i += 1;
    }
    assert!(flags == FEATURES_KNOWN);
};

impl Format {
    /// The major and minor version.
    pub const VERSION: (u16, u16) = (FORMAT_MAJOR, FORMAT_MINOR);

    /// Returns the names of the known feature flags.
    ///
    /// ```
    /// assert!(hikv::Format::features().any(|name| name == "journal"));
    /// ```
    pub fn features() -> impl Iterator<Item = &'static str> {
        FEATURES.iter().map(|(_, name)| *name)
    }
}
