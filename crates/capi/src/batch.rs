//! Buffers of operations.

use std::time::Duration;

use hikv::{Expires, PutOptions, Store, Tree, WriteBatch};

use engine::{Expiry, Version};

use crate::code;
use crate::failure::Failure;

/// Returns the batch of a buffer, whose operations apply to `tree` until the buffer names another one.
///
/// # Errors
/// `HIKV_OPTION` names the operation that is cut off or unknown; `HIKV_NO_SUCH_TREE`.
pub(crate) fn batch_of(store: &Store, bytes: &[u8]) -> Result<WriteBatch, Failure> {
    let (mut batch, mut rest, mut number) = (WriteBatch::new(), Rest { bytes, total: bytes.len() }, 0);
    while !rest.bytes.is_empty() {
        add(store, &mut batch, &mut rest).map_err(|problem| match problem {
            Problem::Failed(failure) => failure,
            Problem::CutOff(at) => Failure::option(format!(
                "operation {number} is cut off: the buffer of {} bytes ends at {at}",
                rest.total
            )),
            Problem::Bad(what) => Failure::option(format!("operation {number} {what}")),
        })?;
        number += 1;
    }
    Ok(batch)
}

enum Problem {
    CutOff(usize),
    Bad(String),
    Failed(Failure),
}

/// The unread part of a buffer.
struct Rest<'b> {
    bytes: &'b [u8],
    total: usize,
}

impl<'b> Rest<'b> {
    fn take(&mut self, len: usize) -> Result<&'b [u8], Problem> {
        let at = self.total - self.bytes.len();
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(Problem::CutOff(at))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut number = [0; N];
        number.copy_from_slice(self.take(N)?);
        Ok(number)
    }
}

fn add(store: &Store, batch: &mut WriteBatch, rest: &mut Rest<'_>) -> Result<(), Problem> {
    let [kind] = rest.number()?;
    let key_len = u32::from_le_bytes(rest.number()?) as usize;
    let value_len = u32::from_le_bytes(rest.number()?) as usize;
    let allowed = match kind {
        code::OP_PUT | code::OP_PUT_UNTIL => value_len,
        code::OP_DELETE | code::OP_EXPECT_ABSENT | code::OP_TREE => 0,
        code::OP_EXPECT_VERSION => size_of::<[u64; 2]>(),
        unknown => return Err(Problem::Bad(format!("has the unknown kind {unknown}"))),
    };
    if value_len != allowed {
        return Err(Problem::Bad(format!("of kind {kind} has a value of {value_len} bytes, not {allowed}")));
    }
    let key = rest.take(key_len)?;
    match kind {
        code::OP_PUT => _ = batch.put(key, rest.take(value_len)?),
        code::OP_PUT_UNTIL => {
            let expires = Expires::At(Expiry::at_ms(u64::from_le_bytes(rest.number()?)));
            batch.put_with(key, rest.take(value_len)?, PutOptions::new().expires(expires));
        }
        code::OP_DELETE => _ = batch.delete(key),
        code::OP_EXPECT_ABSENT => _ = batch.expect_absent(key),
        code::OP_EXPECT_VERSION => {
            let words = [u64::from_le_bytes(rest.number()?), u64::from_le_bytes(rest.number()?)];
            batch.expect_version(key, Version::new(words));
        }
        _ => _ = batch.tree(&tree_of(store, key).map_err(Problem::Failed)?),
    }
    Ok(())
}

fn tree_of(store: &Store, name: &[u8]) -> Result<Tree, Failure> {
    let text = str::from_utf8(name).ok();
    let tree = text.map_or(Ok(None), |name| store.existing_tree(name))?;
    tree.ok_or_else(|| no_such_tree(&String::from_utf8_lossy(name)))
}

/// Returns the failure of a name without a tree.
pub(crate) fn no_such_tree(name: &str) -> Failure {
    hikv::Error::NoSuchTree { name: name.into() }.into()
}

/// Returns the time to live of a put.
pub(crate) fn ttl(ms: u64) -> PutOptions {
    PutOptions::new().ttl(Duration::from_millis(ms))
}
