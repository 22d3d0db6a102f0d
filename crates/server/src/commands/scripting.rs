//! FUNCTION FLUSH and SCRIPT FLUSH: there are no scripts to be flushed, and that is done at once.

use crate::call::Call;
use crate::errors::Refusal;

pub(crate) fn function_flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    flush(call, "FUNCTION FLUSH only supports SYNC|ASYNC option")
}

pub(crate) fn script_flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    flush(call, "SCRIPT FLUSH only support SYNC|ASYNC option")
}

fn flush(call: &mut Call<'_>, refusal: &str) -> Result<(), Refusal> {
    let known = |option: &[u8]| option.eq_ignore_ascii_case(b"async") || option.eq_ignore_ascii_case(b"sync");
    if call.request.len() > 3 || !call.request.arguments().skip(1).all(known) {
        return Err(Refusal::Names(refusal.into()));
    }
    call.ok();
    Ok(())
}
