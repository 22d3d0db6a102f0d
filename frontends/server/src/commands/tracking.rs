//! CLIENT TRACKING, TRACKINGINFO, GETREDIR and CACHING: clients that cache keys.

use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::clients::{Mode, Tracks};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["client|": [caching, getredir, tracking, trackinginfo]];

fn tracking(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = Options::of(call)?;
    let word = call.argument(2);
    if word.eq_ignore_ascii_case(b"on") {
        enable(call, &options)?;
    } else if word.eq_ignore_ascii_case(b"off") {
        call.shared.observers.tracking.disable(call.session.id);
        call.session.tracks = None;
    } else {
        return Err(Refusal::Syntax);
    }
    call.session.show(Instant::now());
    call.ok();
    Ok(())
}

fn enable(call: &mut Call<'_>, options: &Options<'_>) -> Result<(), Refusal> {
    let before = call.session.tracks;
    let mode = options.mode(before)?;
    let has_caching = before.is_some_and(|tracks| tracks.has_caching);
    let tracks = Tracks { mode, skips_own: options.skips_own, redirect: options.redirect, has_caching };
    call.shared.observers.tracking.enable(&call.session.record, tracks, &options.prefixes).map_err(|overlap| {
        let [prefix, other] = [&overlap.prefix, &overlap.other].map(|prefix| String::from_utf8_lossy(prefix));
        let which = if overlap.is_with_existing { "an existing" } else { "another provided" };
        Refusal::Message(format!(
            "Prefix '{prefix}' overlaps with {which} prefix '{other}'. Prefixes for a single client must not overlap."
        ))
    })?;
    call.session.tracks = Some(tracks);
    Ok(())
}

/// The options of `CLIENT TRACKING`.
#[derive(Default)]
struct Options<'a> {
    broadcasts: bool,
    opts_in: bool,
    opts_out: bool,
    skips_own: bool,
    redirect: Option<u64>,
    prefixes: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn of(call: &Call<'a>) -> Result<Options<'a>, Refusal> {
        let mut options = Options::default();
        let mut arguments = call.request.arguments().skip(2);
        while let Some(name) = arguments.next() {
            match name.to_ascii_lowercase().as_slice() {
                b"bcast" => options.broadcasts = true,
                b"optin" => options.opts_in = true,
                b"optout" => options.opts_out = true,
                b"noloop" => options.skips_own = true,
                b"prefix" => options.prefixes.push(arguments.next().ok_or(Refusal::Syntax)?),
                b"redirect" => {
                    let number = arguments.next().ok_or(Refusal::Syntax)?;
                    if options.redirect.is_some() {
                        return Err(FixedError::SecondRedirect.into());
                    }
                    options.redirect = Some(receiver(call, number)?);
                }
                _ => return Err(Refusal::Syntax),
            }
        }
        Ok(options)
    }

    /// Returns the mode of the options; `before` is the client's previous tracking.
    fn mode(&self, before: Option<Tracks>) -> Result<Mode, Refusal> {
        let was = |mode| before.is_some_and(|tracks| tracks.mode == mode);
        let refusals = [
            (!self.broadcasts && !self.prefixes.is_empty(), FixedError::PrefixWithoutBroadcast),
            (before.is_some() && was(Mode::Broadcast) != self.broadcasts, FixedError::BroadcastSwitched),
            (self.broadcasts && (self.opts_in || self.opts_out), FixedError::OptionsOfBroadcast),
            (self.opts_in && self.opts_out, FixedError::OptInAndOut),
            (self.opts_in && was(Mode::OptOut) || self.opts_out && was(Mode::OptIn), FixedError::OptSwitched),
        ];
        if let Some((_, sentence)) = refusals.iter().find(|(holds, _)| *holds) {
            return Err((*sentence).into());
        }
        Ok(match (self.broadcasts, self.opts_in, self.opts_out) {
            (true, ..) => Mode::Broadcast,
            (_, true, _) => Mode::OptIn,
            (_, _, true) => Mode::OptOut,
            _ => Mode::Reads,
        })
    }
}

/// Parses the ID of a connected client.
fn receiver(call: &Call<'_>, number: &[u8]) -> Result<u64, Refusal> {
    let number = resp::parse_integer(number).ok_or(Refusal::NotAnInteger)?;
    let known = u64::try_from(number).ok().filter(|id| call.shared.clients.place_of(*id).is_some());
    known.ok_or_else(|| FixedError::NoSuchReceiver.into())
}

/// Returns the receiver's ID; 0 if it is the client itself, and -1 without tracking.
fn redirect(tracks: Option<Tracks>) -> i64 {
    tracks.map_or(-1, |tracks| tracks.redirect.unwrap_or(0) as i64)
}

fn getredir(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.integer(redirect(call.session.tracks));
    Ok(())
}

fn trackinginfo(call: &mut Call<'_>) -> Result<(), Refusal> {
    let tracks = call.session.tracks;
    let is = |mode| tracks.is_some_and(|tracks| tracks.mode == mode);
    let has_caching = tracks.is_some_and(|tracks| tracks.has_caching);
    let is_broken = call.session.record.is_redirect_broken.load(Ordering::Relaxed);
    let flags = [
        (tracks.is_some(), "on"),
        (tracks.is_none(), "off"),
        (is(Mode::Broadcast), "bcast"),
        (is(Mode::OptIn), "optin"),
        (is(Mode::OptIn) && has_caching, "caching-yes"),
        (is(Mode::OptOut), "optout"),
        (is(Mode::OptOut) && has_caching, "caching-no"),
        (tracks.is_some_and(|tracks| tracks.skips_own), "noloop"),
        (is_broken, "broken_redirect"),
    ];
    let flags: Vec<&str> = flags.iter().filter(|(holds, _)| *holds).map(|(_, flag)| *flag).collect();
    let prefixes = call.shared.observers.tracking.prefixes(call.session.id);
    call.reply.map(3);
    call.reply.bulk(b"flags");
    call.reply.set(flags.len());
    flags.iter().for_each(|flag| call.reply.bulk(flag.as_bytes()));
    call.reply.bulk(b"redirect");
    call.reply.integer(redirect(tracks));
    call.reply.bulk(b"prefixes");
    call.reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| call.reply.bulk(prefix));
    Ok(())
}

/// Accepted only in the mode that the option is for.
fn caching(call: &mut Call<'_>) -> Result<(), Refusal> {
    let word = call.argument(2);
    let Some(tracks) = &mut call.session.tracks else { return Err(FixedError::NoCachingMode.into()) };
    let (mode, sentence) = if word.eq_ignore_ascii_case(b"yes") {
        (Mode::OptIn, FixedError::CachingYes)
    } else if word.eq_ignore_ascii_case(b"no") {
        (Mode::OptOut, FixedError::CachingNo)
    } else {
        return Err(Refusal::Syntax);
    };
    if tracks.mode != mode {
        return Err(sentence.into());
    }
    tracks.has_caching = true;
    call.ok();
    Ok(())
}
