//! FUNCTION FLUSH and SCRIPT FLUSH: there are no scripts to be flushed, and that is done at once.

use crate::call::Call;
use crate::errors::Refusal;

pub(crate) fn function_flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    flush(call)
}

pub(crate) fn script_flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    flush(call)
}

fn flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    let known = |option: &[u8]| option.eq_ignore_ascii_case(b"async") || option.eq_ignore_ascii_case(b"sync");
    if call.request.len() > 3 || !call.request.arguments().skip(1).all(known) {
        return Err(Refusal::Syntax);
    }
    call.ok();
    Ok(())
}
