//! Asynchronous writing of log lines to standard error, which may be a pipe without a reader.
//!
//! An event loop that logs must not block on the reader of the log. So lines are sent to a writer thread. When too many
//! lines wait, further ones are dropped, and the next line that is accepted states how many.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Maximum number of waiting lines: more than arrive while a reader pauses briefly, except in a flood.
const LINE_COUNT_MAX: usize = 4096;

/// Maximum time that shutdown waits for lines whose reader may have stopped.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Follows the number of dropped lines.
const LEFT_OUT: &str = " log lines dropped here: the reader of standard error was too slow";

enum Task {
    Line(Vec<u8>),
    /// Answered after all lines before it are written.
    Flush(SyncSender<()>),
}

/// Sends lines to the writer thread. All clones use the same thread.
#[derive(Clone)]
pub(crate) struct LineSender {
    tasks: SyncSender<Task>,
    dropped: Arc<AtomicU64>,
}

impl LineSender {
    /// Creates a thread that writes lines to `out`. If no thread can be created, each thread writes its own lines.
    pub(crate) fn to(out: impl Write + Send + 'static) -> io::Result<LineSender> {
        let (tasks, received) = sync_channel(LINE_COUNT_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        thread::Builder::new().name("hikv-log".into()).spawn(move || write_all(out, &received, &counted))?;
        Ok(LineSender { tasks, dropped })
    }

    fn send(&self, line: &[u8]) {
        if self.tasks.try_send(Task::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines are written, or the reader seems to have stopped.
    pub(crate) fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.tasks.try_send(Task::Flush(done)).is_ok() {
            // Lines not written by then are lost.
            let _ = written.recv_timeout(FLUSH_MAX);
        }
    }
}

fn write_all(mut out: impl Write, tasks: &Receiver<Task>, dropped: &AtomicU64) {
    for task in tasks {
        match task {
            // An unwritable log does not stop the server.
            Task::Line(line) => drop(out.write_all(&line)),
            Task::Flush(done) => drop(done.try_send(())),
        }
        let count = dropped.swap(0, Ordering::Relaxed);
        if count > 0 {
            let _ = writeln!(out, "{count}{LEFT_OUT}");
        }
    }
}

/// Each event is one write.
impl Write for LineSender {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.send(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LineSender {
    type Writer = LineSender;

    fn make_writer(&'a self) -> LineSender {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn unread_pipe_blocks_no_writer() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let sender = LineSender::to(writer).expect("a thread");
        let count = 3 * LINE_COUNT_MAX;
        for number in 0..count {
            sender.send(format!("{number} {}\n", "x".repeat(100)).as_bytes());
        }
        // The pipe closes after the waiting lines are written.
        drop(sender);
        let lines: Vec<String> = BufReader::new(reader).lines().map(|line| line.expect("text")).collect();
        assert!(lines[0].starts_with("0 x"));
        let left_out = |line: &String| line.strip_suffix(LEFT_OUT)?.trim().parse::<usize>().ok();
        let left_out_count: usize = lines.iter().filter_map(left_out).sum();
        let notice_count = lines.iter().filter_map(left_out).count();
        assert!(left_out_count > 0, "a pipe holds less than these lines");
        assert_eq!(lines.len() - notice_count + left_out_count, count);
    }
}
