//! Plural forms for counts in messages.

/// Returns the plural ending for `count` things.
pub(crate) fn s(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
