//! CONFIG.

use crate::administration::file_limit;
use crate::administration::settings::{self, Effect, PARAMETERS};
use crate::connections::transport::ClientCertificate;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use resp::glob;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["config|": [get, resetstat, rewrite, set]];

/// Passwords are never returned, because they are not stored.
fn get(call: &mut Call<'_>) -> Result<(), Refusal> {
    let patterns: Vec<Vec<u8>> = call.request.arguments().skip(1).map(<[u8]>::to_ascii_lowercase).collect();
    let is_wanted = |name: &str| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
    let wanted: Vec<usize> = (0..PARAMETERS.len()).filter(|index| is_wanted(PARAMETERS[*index].name)).collect();
    call.reply.map(wanted.len());
    for index in wanted {
        call.reply.bulk(PARAMETERS[index].name.as_bytes());
        call.reply.bulk(call.shared.administration.settings.value(index).as_bytes());
    }
    Ok(())
}

/// Sets all of the parameters, or none.
fn set(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut changes: Vec<(usize, String)> = Vec::new();
    if !call.request.len().is_multiple_of(2) {
        return Err(Refusal::Syntax);
    }
    for at in (2..call.request.len()).step_by(2) {
        let (name, value) = (call.argument(at), call.argument(at + 1));
        let shown = String::from_utf8_lossy(name).into_owned();
        let index = settings::by_name(name).ok_or_else(|| {
            Refusal::Message(format!("Unknown option or number of arguments for CONFIG SET - '{shown}'"))
        })?;
        let refused = |what: &str| {
            Refusal::Message(format!("CONFIG SET failed (possibly related to argument '{shown}') - {what}"))
        };
        if matches!(PARAMETERS[index].effect, Effect::Fixed | Effect::Constant) {
            return Err(refused("can't set immutable config"));
        }
        if changes.iter().any(|(known, _)| *known == index) {
            return Err(refused("duplicate parameter"));
        }
        changes.push((index, PARAMETERS[index].kind.canonical(value).map_err(|what| refused(&what))?));
    }
    raise_file_limit(call, &changes)?;
    change_certificates(call, &changes)?;
    for (index, value) in changes {
        if PARAMETERS[index].effect == Effect::Password {
            call.shared.administration.acl.require_password(value.as_bytes());
        }
        call.shared.administration.settings.put(index, value);
    }
    call.shared.keyspace.memory.forget();
    let key_count_max = call.shared.administration.settings.tracked_key_count_max();
    call.shared.observers.tracking.shrink(call.shared.message_access(), key_count_max);
    // Timeouts may have become shorter.
    call.shared.mailboxes.wake_all();
    call.ok();
    Ok(())
}

/// Raises the limit on open files if `maxclients` is to be changed.
fn raise_file_limit(call: &Call<'_>, changes: &[(usize, String)]) -> Result<(), Refusal> {
    let asked = changes.iter().find(|(index, _)| PARAMETERS[*index].effect == Effect::Clients);
    let Some(clients) = asked.and_then(|(_, value)| value.parse().ok()) else { return Ok(()) };
    let fitting = file_limit::raise_for(clients, call.shared.telemetry.loops.len());
    if fitting < clients {
        return Err(Refusal::Message(format!(
            "CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to handle the \
             specified number of clients, try with {fitting}"
        )));
    }
    Ok(())
}

/// Uses other certificates for new connections, or reloads the files.
fn change_certificates(call: &Call<'_>, changes: &[(usize, String)]) -> Result<(), Refusal> {
    let mut changed = changes.iter().filter(|(index, _)| PARAMETERS[*index].effect == Effect::Tls).peekable();
    let Some((first, _)) = changed.peek() else { return Ok(()) };
    let refused = |what: String| {
        let name = PARAMETERS[*first].name;
        Refusal::Message(format!("CONFIG SET failed (possibly related to argument '{name}') - {what}"))
    };
    let Some(certificates) = &call.shared.administration.certificates else {
        return Err(refused("the server was started without a TLS port".into()));
    };
    let mut files = certificates.files();
    for (index, value) in changed {
        match PARAMETERS[*index].name {
            "tls-cert-file" => files.certificate = value.into(),
            "tls-key-file" => files.key = value.into(),
            "tls-ca-cert-file" => files.client_ca = (!value.is_empty()).then(|| value.into()),
            _ => files.client_certificate = ClientCertificate::by_name(value).unwrap_or_default(),
        }
    }
    certificates.change(files).map_err(|error| refused(format!("Unable to update TLS configuration: {error}")))
}

fn resetstat(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.shared.telemetry.reset(&call.shared.keyspace.store);
    call.ok();
    Ok(())
}

fn rewrite(call: &mut Call<'_>) -> Result<(), Refusal> {
    let file = call.shared.administration.config_file.as_ref().ok_or(FixedError::NoConfigFile)?;
    if let Err(error) = file.rewrite(&call.shared.administration.settings, &call.shared.administration.acl) {
        tracing::warn!(%error, "CONFIG REWRITE failed");
        return Err(Refusal::Message(format!("Rewriting config file: {error}")));
    }
    tracing::info!(file = %file.path().display(), "CONFIG REWRITE executed with success.");
    call.ok();
    Ok(())
}
