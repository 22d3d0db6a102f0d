//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::{Level, Medium, Offset};

use crate::Result;
use crate::region::{Region, Words};

/// Sets a slot's token before its item is durable.
#[cold]
pub(crate) fn write_token_first<M: Medium>(
    region: &Region<M>,
    words: &[(Offset, u64)],
    (token, word): (Offset, u64),
) -> Result<()> {
    region.put(token, word)?;
    let rest: Words = words.iter().copied().filter(|(at, _)| *at != token).collect();
    change_unlogged(region, &rest)
}

/// Changes words in place without the log.
#[cold]
pub(crate) fn change_unlogged<M: Medium>(region: &Region<M>, words: &[(Offset, u64)]) -> Result<()> {
    region.store(words);
    Ok(region.medium.wait(region.medium.commit(Level::Strongest))?)
}
