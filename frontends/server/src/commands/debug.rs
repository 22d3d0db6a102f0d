//! DEBUG: the subcommands that test suites need.

use std::io::{self, Read};
use std::thread;
use std::time::{Duration, Instant};

use resp::Protocol;

use super::{memory, object};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![debug];

/// The value that Redis returns.
#[allow(clippy::approx_constant, reason = "clients compare it")]
const REDIS_PI: f64 = 3.141;

/// Interval at which a sleeping thread checks whether the server stops.
const NAP: Duration = Duration::from_millis(20);

/// Refused unless `enable-debug-command` allows it, as in Redis: its effects are for tests.
fn debug(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_allowed = match call.shared.administration.settings.named("enable-debug-command").as_str() {
        "yes" => true,
        "local" => !call.session.record.addr.is_elsewhere(),
        _ => false,
    };
    if !is_allowed {
        return Err(FixedError::DebugNotAllowed.into());
    }
    let name = call.argument(1).to_ascii_lowercase();
    match (name.as_slice(), call.request.len()) {
        (b"sleep", 3) => sleep(call),
        (b"protocol", 3) => protocol(call),
        (b"panic", 2) => panic!("DEBUG PANIC"),
        (b"panic", 3) => panic_in_write(call),
        (b"object", 3) => object(call),
        (b"error", 3) => {
            // Verbatim, without an added error code.
            call.reply.error(call.argument(2));
            Ok(())
        }
        // The store has no state that a reload would change, and expired keys are absent in any case.
        (b"reload", _) | (b"loadaof", 2) | (b"set-active-expire" | b"jmap", 3) | (b"jmap", 2) => {
            call.ok();
            Ok(())
        }
        _ => Err(Refusal::unknown_subcommand("debug", call.argument(1))),
    }
}

/// The fields of Redis. Values have no separate address here.
fn object(call: &mut Call<'_>) -> Result<(), Refusal> {
    let of_string = call.store().get_with(call.key(2), |value| (object::encoding_of(value), value.len()))?;
    let (encoding, len_bytes) = match (of_string, call.found(2)?) {
        (Some(shown), _) => shown,
        (None, None) => return Err(FixedError::NoSuchKey.into()),
        (None, Some(found)) => {
            let len_bytes = found.sample_bytes(memory::SAMPLE_COUNT)? * found.len() as usize;
            (object::encoding_of_collection(call, &found)?, len_bytes)
        }
    };
    call.reply.simple(&format!(
        "Value at:0x0 refcount:1 encoding:{encoding} serializedlength:{len_bytes} lru:0 lru_seconds_idle:0"
    ));
    Ok(())
}

fn sleep(call: &mut Call<'_>) -> Result<(), Refusal> {
    let seconds = str::from_utf8(call.argument(2)).ok().and_then(|text| text.parse::<f64>().ok());
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or(Refusal::Syntax)?;
    let began = Instant::now();
    while began.elapsed() < time && !call.shared.stop.is_stopped() {
        thread::sleep(NAP.min(time.saturating_sub(began.elapsed())));
    }
    call.ok();
    Ok(())
}

/// Panics while the store writes a value for the key, before its first byte.
fn panic_in_write(call: &mut Call<'_>) -> Result<(), Refusal> {
    struct Panics;
    impl Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("DEBUG PANIC during a write")
        }
    }
    Ok(call.shared.keyspace.store.put_from(call.key(2), 1, Panics)?)
}

/// Returns an example of a reply type.
fn protocol(call: &mut Call<'_>) -> Result<(), Refusal> {
    let reply = &mut call.reply;
    match call.request.argument(2).to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(REDIS_PI),
        b"null" => reply.null_bulk(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if reply.protocol() == Protocol::Resp3 {
                reply.attribute(1);
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" => {
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
        }
        b"verbatim" => reply.text("This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err(Refusal::Message(
                "Wrong protocol type name. Please use one of the following: \
                 string|integer|double|null|array|set|map|attrib|push|verbatim|true|false"
                    .into(),
            ));
        }
    }
    Ok(())
}
