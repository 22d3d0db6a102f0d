//! LATENCY.

use crate::call::Call;
use crate::errors::Refusal;

pub(crate) fn latest(call: &mut Call<'_>) -> Result<(), Refusal> {
    let events = call.shared.latency.all();
    call.reply.array(events.len());
    for (name, event) in &events {
        let last = event.samples.back().map_or((0, 0), |sample| (sample.unix_seconds, sample.ms));
        call.reply.array(4);
        call.reply.bulk(name.as_bytes());
        for number in [last.0, last.1, event.worst_ms] {
            call.reply.integer(number as i64);
        }
    }
    Ok(())
}

pub(crate) fn history(call: &mut Call<'_>) -> Result<(), Refusal> {
    let event = call.shared.latency.event(call.argument(2)).unwrap_or_default();
    call.reply.array(event.samples.len());
    for sample in &event.samples {
        call.reply.array(2);
        call.reply.integer(sample.unix_seconds as i64);
        call.reply.integer(sample.ms as i64);
    }
    Ok(())
}

pub(crate) fn reset(call: &mut Call<'_>) -> Result<(), Refusal> {
    let names: Vec<&[u8]> = call.request.arguments().skip(1).collect();
    let count = call.shared.latency.forget(&names);
    call.reply.integer(count as i64);
    Ok(())
}

pub(crate) fn doctor(call: &mut Call<'_>) -> Result<(), Refusal> {
    let limit_ms = call.shared.settings.latency_ms_min();
    let events = call.shared.latency.all();
    let mut text = match limit_ms {
        0 => "Latency monitoring is off: set latency-monitor-threshold to a number of milliseconds.\n".to_owned(),
        _ => format!("Events of {limit_ms} ms and more: {}.\n", events.len()),
    };
    for (name, event) in &events {
        text.push_str(&format!(
            "{name}: the worst took {} ms, in {} seconds noted.\n",
            event.worst_ms,
            event.samples.len()
        ));
    }
    call.reply.text(&text);
    Ok(())
}
