//! The process and the machine.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Lines, lines};
use crate::errors::Refusal;
use crate::shared::Shared;

/// Fields of `/proc/self/stat`, counted after the name.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const CHILDRENS_USER_TICKS: usize = 13;
const CHILDRENS_SYSTEM_TICKS: usize = 14;

pub(super) fn cpu(_: &Shared) -> Result<Lines, Refusal> {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name may contain spaces and parentheses.
    let fields: Vec<&str> = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let seconds = |field: usize| {
        let ticks: u64 = fields.get(field).and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
        format!("{:.6}", ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    };
    Ok(lines([
        ("used_cpu_sys", seconds(SYSTEM_TICKS)),
        ("used_cpu_user", seconds(USER_TICKS)),
        ("used_cpu_sys_children", seconds(CHILDRENS_SYSTEM_TICKS)),
        ("used_cpu_user_children", seconds(CHILDRENS_USER_TICKS)),
    ]))
}

/// Returns the operating system, formatted like Redis.
pub(super) fn system() -> String {
    let name = rustix::system::uname();
    [name.sysname(), name.release(), name.machine()].map(|part| part.to_string_lossy()).join(" ")
}

pub(super) fn unix_us() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()
}
