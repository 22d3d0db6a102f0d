//! Answers and the memory behind them: the kernel must write only to the answer's buffer.

use fastrand::Rng;
use ink_client::Ink;
use ink_client::abi::{ITEM_HEAD_BYTES, Op, Request, Stat};

use crate::cases::allow;
use crate::orderly::key_of;

const BUFFER_BYTES: usize = 8192;
/// The buffer's contents before a request.
const MARK: u8 = 0xa5;

/// Checks that an answer is as long as it claims, and that nothing is written behind it, or at all if there is no
/// answer.
pub(crate) fn nothing_behind(ink: &Ink, random: &mut Rng) -> Result<(), String> {
    let byte = random.u8(..);
    let key = key_of(byte);
    _ = ink.put(&key, &vec![byte; random.usize(..600)]);
    for op in [Op::Read, Op::Scan, Op::Stat] {
        let mut buffer = vec![MARK; BUFFER_BYTES];
        let len = [BUFFER_BYTES, ITEM_HEAD_BYTES, size_of::<Stat>(), random.usize(..600)][random.usize(..4)];
        let mut request = Request { result: 0, ..Request::of_buffer(&key, &mut buffer[..len], 0) };
        // SAFETY: the key and the buffer belong to this function, with these lengths.
        let done = unsafe { ink.ask(op, &mut request) };
        let written = if done.is_ok() { request.result } else { 0 };
        allow("an answer", done.err().and_then(|error| error.raw_os_error()).unwrap_or(0))?;
        let behind = buffer.get(written as usize..).ok_or("an answer that is longer than its room")?;
        if behind.iter().any(|&byte| byte != MARK) {
            return Err(format!("{op:?}: something was written behind an answer of {written} bytes"));
        }
    }
    Ok(())
}
