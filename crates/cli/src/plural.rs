//! Counts of things, as people write them.

/// The ending of what there are so many of.
pub(crate) fn s(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
