//! Names the holder of a lock. A guess for the reader of an error message; no decision depends on it.
//!
//! A writer leaves its process id and command line in the lock file. They are trusted only while a process with
//! that id has that command line, because ids are reused and the file may be shared between machines or containers.
//! Otherwise, and for readers, which leave nothing, the kernel's list of open files (`/proc/*/fdinfo`) is searched.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process;

/// The mode of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holding {
    /// Exclusive.
    Writing,
    /// Shared with other readers.
    Reading,
}

/// Longer command lines are cut, so that the name fits into an error message.
const COMMAND_CHARS_MAX: usize = 120;

/// Enough for a process id and a command line of characters of up to four bytes.
const RECORD_BYTES_MAX: usize = 32 + 4 * COMMAND_CHARS_MAX;

/// Writes this process' id and command line into the lock file that it has locked. Without the text (for example on
/// a full file system) the lock also holds.
pub(crate) fn record(file: &File) {
    erase(file);
    let pid = process::id();
    if let Some(command) = command_of(pid).filter(|_| is_for_text(file)) {
        let _ = file.write_all_at(format!("{pid} {command}\n").as_bytes(), 0);
    }
}

/// Removes the text. Text that stays is not trusted for long, so failure is harmless.
pub(crate) fn erase(file: &File) {
    if is_for_text(file) {
        let _ = file.set_len(0);
    }
}

/// Returns true if the file's bytes may be replaced: it has no other name, and is not longer than a text of this
/// module. Any other file at a lock file's path belongs to a user.
fn is_for_text(file: &File) -> bool {
    let is_ours = |status: Metadata| status.is_file() && status.nlink() == 1 && status.len() <= RECORD_BYTES_MAX as u64;
    file.metadata().is_ok_and(is_ours)
}

/// Describes the holder of the lock on `file`; the text follows 'in use by'.
pub(crate) fn describe(file: &File, holding: Holding, has_text: bool) -> String {
    let recorded = || if has_text { recorded(file) } else { None };
    match holding {
        Holding::Writing => recorded().or_else(|| searched(file, holding)).unwrap_or("another process".to_owned()),
        Holding::Reading => match searched(file, holding) {
            Some(readers) => format!("{readers}, for reading"),
            None => "another process, for reading".to_owned(),
        },
    }
}

/// Returns the process that the lock file names, if it still exists.
fn recorded(file: &File) -> Option<String> {
    let mut bytes = [0; RECORD_BYTES_MAX];
    let len = file.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..len]).ok()?;
    let (pid, command) = text.strip_suffix('\n')?.split_once(' ')?;
    let pid = pid.parse().ok()?;
    (command_of(pid)? == command).then(|| name(pid))
}

/// Returns the processes that have the file open and hold the lock through it, as far as this process may see them.
fn searched(file: &File, holding: Holding) -> Option<String> {
    let status = file.metadata().ok()?;
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holders: Vec<u32> = pids.filter(|&pid| holds(pid, &status, holding).unwrap_or(false)).collect();
    match holders[..] {
        [] => None,
        [pid] => Some(name(pid)),
        [pid, _] => Some(format!("{} and another", name(pid))),
        [pid, ..] => Some(format!("{} and {} others", name(pid), holders.len() - 1)),
    }
}

fn holds(pid: u32, locked: &Metadata, holding: Holding) -> io::Result<bool> {
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        let same = |open: Metadata| (open.dev(), open.ino()) == (locked.dev(), locked.ino());
        if fs::metadata(entry.path()).is_ok_and(same) {
            let info = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(entry.file_name());
            if fs::read_to_string(info).is_ok_and(|text| has_lock(&text, holding)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns true if an open file's description lists such a lock: `lock:  1: OFDLCK ADVISORY  WRITE -1 08:02:131 0
/// EOF`.
fn has_lock(fdinfo: &str, holding: Holding) -> bool {
    let kind = match holding {
        Holding::Writing => "WRITE",
        Holding::Reading => "READ",
    };
    let locks = fdinfo.lines().filter_map(|line| line.strip_prefix("lock:"));
    locks
        .map(str::split_whitespace)
        .any(|mut words| words.any(|word| word == "OFDLCK") && words.any(|word| word == kind))
}

/// Formats `process 1234 (hikv serve ./data)`.
fn name(pid: u32) -> String {
    if pid == process::id() {
        return "this process itself".to_owned();
    }
    match command_of(pid) {
        Some(command) => format!("process {pid} ({command})"),
        None => format!("process {pid}"),
    }
}

/// Returns the command line of a living process: the program without its directory, and its arguments.
fn command_of(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (program, arguments) =
        text.trim_end_matches('\0').split_once('\0').unwrap_or((text.trim_end_matches('\0'), ""));
    let program = program.rsplit('/').next().unwrap_or(program);
    let command = shown(&format!("{program}\0{arguments}"));
    (!command.is_empty()).then_some(command)
}

/// Formats one short line: spaces between the words, `?` for control characters, cut with an ellipsis.
fn shown(words: &str) -> String {
    let line = words.trim_end_matches('\0').replace('\0', " ").replace(char::is_control, "?");
    match line.char_indices().nth(COMMAND_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_become_one_short_line() {
        assert_eq!(shown("hikv\0serve\0./da\nta\0"), "hikv serve ./da?ta");
        assert_eq!(shown("\0"), "");
        let long = shown(&"ä".repeat(300));
        assert_eq!(long.chars().count(), COMMAND_CHARS_MAX + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn locks_are_distinguished_by_kind() {
        let info = "pos:\t0\nflags:\t0100002\nlock:\t1: OFDLCK ADVISORY  WRITE -1 08:02:131 0 EOF\n";
        assert!(has_lock(info, Holding::Writing));
        assert!(!has_lock(info, Holding::Reading));
        assert!(!has_lock("lock:\t1: POSIX  ADVISORY  WRITE 12 08:02:131 0 EOF\n", Holding::Writing));
        assert!(!has_lock("pos:\t0\n", Holding::Reading));
    }

    #[test]
    fn text_about_missing_process_is_ignored() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["1 no such command\n", "4194305 hikv\n", "x y\n", "12", "", "\u{0}\u{0}", "1\n"] {
            file.as_file().set_len(0).unwrap();
            file.as_file().write_all_at(text.as_bytes(), 0).unwrap();
            assert_eq!(recorded(file.as_file()), None, "{text:?}");
        }
        record(file.as_file());
        assert_eq!(recorded(file.as_file()).as_deref(), Some("this process itself"));
        erase(file.as_file());
        assert_eq!(recorded(file.as_file()), None);
    }
}
