//! Lines on their way to standard error, which may be a pipe that nobody reads.
//!
//! An event loop that writes a line must not wait for the log's reader. So lines are handed to a thread, which waits in its place;
//! when too many wait, more are dropped, and how many they were is the next line that gets through.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait: more than anything but a storm brings while a reader is away for a moment.
const LINE_COUNT_MAX: usize = 4096;

/// How long the end waits for lines that a reader may never take.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Follows the number of lines that were dropped.
const LEFT_OUT: &str = " lines of the log were left out here: nobody read them";

enum Task {
    Line(Vec<u8>),
    /// Is answered when all lines before it are written.
    Flush(SyncSender<()>),
}

/// Hands lines over. Clones hand them to the same thread.
#[derive(Clone)]
pub(crate) struct LineSender {
    tasks: SyncSender<Task>,
    dropped: Arc<AtomicU64>,
}

impl LineSender {
    /// A thread that writes lines to `out`; without one each thread writes its own.
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

    /// Waits until all lines are written, or nobody seems to take them.
    pub(crate) fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.tasks.try_send(Task::Flush(done)).is_ok() {
            // What is not written by then will not be.
            let _ = written.recv_timeout(FLUSH_MAX);
        }
    }
}

fn write_all(mut out: impl Write, tasks: &Receiver<Task>, dropped: &AtomicU64) {
    for task in tasks {
        match task {
            // A log that cannot be written is no reason to stop.
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
    fn pipe_that_nobody_reads_keeps_nobody_waiting() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let sender = LineSender::to(writer).expect("a thread");
        let count = 3 * LINE_COUNT_MAX;
        for number in 0..count {
            sender.send(format!("{number} {}\n", "x".repeat(100)).as_bytes());
        }
        // The pipe closes once what waits is written.
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
