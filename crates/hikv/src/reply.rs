//! Return values of callbacks.

use std::convert::Infallible;
use std::ops::ControlFlow;

/// The return value of a callback: `()` to continue, or a [`ControlFlow`], which can stop the operation and give a
/// value to its caller.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use std::ops::ControlFlow;
///
/// store.multi_put([("one", "eins"), ("two", "zwei")])?;
/// let mut bytes = 0;
/// store.for_each(|key, value| bytes += key.len() + value.len())?;
/// assert_eq!(bytes, 14);
///
/// let of_zwei = store.for_each(|key, value| match value {
///     b"zwei" => ControlFlow::Break(key.to_vec()),
///     _ => ControlFlow::Continue(()),
/// })?;
/// assert_eq!(of_zwei.as_deref(), Some(&b"two"[..]));
/// # Ok(())
/// # }
/// ```
pub trait CallbackReply {
    /// The value with which the callback stops the operation.
    type Break;

    /// Returns the value that stops the operation, or `Continue`.
    fn flow(self) -> ControlFlow<Self::Break>;
}

impl CallbackReply for () {
    type Break = Infallible;

    #[inline(always)]
    fn flow(self) -> ControlFlow<Infallible> {
        ControlFlow::Continue(())
    }
}

impl<B> CallbackReply for ControlFlow<B> {
    type Break = B;

    #[inline(always)]
    fn flow(self) -> ControlFlow<B> {
        self
    }
}

/// Keeps the value of a `Break` in `stopped`.
#[inline(always)]
pub(crate) fn keep<R: CallbackReply>(reply: R, stopped: &mut Option<R::Break>) -> ControlFlow<()> {
    match reply.flow() {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(value) => {
            *stopped = Some(value);
            ControlFlow::Break(())
        }
    }
}
