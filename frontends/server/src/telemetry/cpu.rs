//! Processor time of the process' threads, by role.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// The role of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// An event loop.
    Serving,
    /// The store's background threads: order of keys, space, expiry.
    Backend,
    /// The journal's checkpoints and syncs.
    Journal,
    Other,
}

impl Role {
    pub(crate) const COUNT: usize = 4;
    pub(crate) const ALL: [Role; Role::COUNT] = [Role::Serving, Role::Backend, Role::Journal, Role::Other];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Serving => "serving",
            Role::Backend => "backend",
            Role::Journal => "journal",
            Role::Other => "other",
        }
    }

    fn of(thread: i32, name: &str, serving: &[i32]) -> Role {
        match name {
            _ if serving.contains(&thread) => Role::Serving,
            "hikv-worker" => Role::Backend,
            "hikv-checkpoint" | "hikv-sync" => Role::Journal,
            _ => Role::Other,
        }
    }
}

/// Returns the time by role; zeros if the kernel does not provide it. `serving` are the event loops' thread IDs.
pub(crate) fn times(serving: &[i32]) -> [Duration; Role::COUNT] {
    let mut times = [Duration::ZERO; Role::COUNT];
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let thread = task.file_name().to_str().and_then(|number| number.parse().ok()).unwrap_or_default();
        times[Role::of(thread, name.trim_end(), serving) as usize] += time_of(&task.path());
    }
    times
}

/// Returns zero for a thread that has ended.
fn time_of(task: &Path) -> Duration {
    let figures = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let run_ns = figures.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(run_ns.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_roles_are_distinguished() {
        assert_eq!(Role::of(7, "hikv-worker", &[7]), Role::Serving);
        assert_eq!(Role::of(8, "hikv-worker", &[7]), Role::Backend);
        assert_eq!(Role::of(8, "hikv-sync", &[7]), Role::Journal);
        assert_eq!(Role::of(8, "hikv-http", &[7]), Role::Other);
    }

    #[test]
    fn thread_that_works_takes_time() {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let before = times(&[own])[Role::Serving as usize];
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        // The process may have waited for a processor most of that time.
        assert!(times(&[own])[Role::Serving as usize] > before);
    }
}
