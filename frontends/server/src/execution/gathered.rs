//! Limits of the elements that a command reads, and of those that it gathers for its reply.
//!
//! `background::weight` estimates by the number of elements. Elements may be long, so a command on an event loop counts
//! their bytes as well. If they become too many, the loop starts the command again in the background. So it must not
//! have had an effect before it has gathered everything.

use super::background::weight;
use super::call::{Call, REPLY_BYTES_MAX};
use crate::errors::Refusal;

/// The elements that a command has read, and those of them that belong to its reply.
pub(crate) struct Gathered {
    reply_bytes: usize,
    read_bytes: u64,
    read_bytes_max: u64,
}

impl Gathered {
    /// Begins with nothing.
    pub(crate) fn of(call: &Call<'_>) -> Gathered {
        let may_move = call.pending.is_none() && call.session.may_use_background && !call.session.awaits_job;
        let read_bytes_max = if may_move { weight::LONG_BYTES_MIN } else { u64::MAX };
        Gathered { reply_bytes: 0, read_bytes: 0, read_bytes_max }
    }

    /// Counts an element that was read.
    ///
    /// # Errors
    /// [`Refusal::TooLongForLoop`] if the command must be started again in the background.
    pub(crate) fn read(&mut self, len_bytes: usize) -> Result<(), Refusal> {
        self.read_bytes += len_bytes as u64 + weight::ELEMENT_BYTES;
        if self.read_bytes > self.read_bytes_max { Err(Refusal::TooLongForLoop) } else { Ok(()) }
    }

    /// Counts an element of the reply, which was read before.
    ///
    /// # Errors
    /// [`Refusal::ReplyLength`] if they are too many.
    pub(crate) fn add(&mut self, len_bytes: usize) -> Result<(), Refusal> {
        self.reply_bytes += len_bytes;
        if self.reply_bytes <= REPLY_BYTES_MAX {
            return Ok(());
        }
        Err(Refusal::ReplyLength { len_bytes_max: REPLY_BYTES_MAX, accepts_limit: false })
    }

    /// Does both.
    pub(crate) fn read_and_add(&mut self, len_bytes: usize) -> Result<(), Refusal> {
        self.read(len_bytes)?;
        self.add(len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use resp::Requests;

    use crate::connections::output::Output;
    use crate::execution::client::Client;
    use crate::telemetry::EventCounts;
    use crate::testing;

    /// A few long elements count as many short ones.
    #[test]
    fn long_element_commands_restart_in_background() {
        const VALUE_COUNT: usize = 5;
        let (server, _dir) = testing::server();
        let (shared, mut session) = (server.shared(), testing::session(server.shared()));
        shared.begin_collections().expect("the tree is made");
        let mut execute = |words: &[&str], may_use_background: bool, awaits_job: bool| {
            let (mut requests, mut output) = (Requests::default(), Output::default());
            requests.push_words(words);
            let request = requests.get(0, &[]);
            (session.may_use_background, session.awaits_job) = (may_use_background, awaits_job);
            let event_counts = &mut EventCounts::default();
            let entry = command_table::find(&request).expect("a command");
            Client { shared, session: &mut session, event_counts }.answer(entry, request, &mut output);
            (std::mem::take(&mut session.needs_background), output.end())
        };
        let (value, member) = ("x".repeat(2 << 20), "m".repeat(60_000));
        for number in 0..VALUE_COUNT {
            execute(&["HSET", "h", &number.to_string(), &value], false, false);
            execute(&["RPUSH", "l", &value], false, false);
        }
        for number in 0..150 {
            execute(&["SADD", "s", &format!("{number}{member}")], false, false);
            execute(&["ZADD", "z", "1", &format!("{number}{member}")], false, false);
        }
        for words in [&["COPY", "h", "g"][..], &["SUNIONSTORE", "g", "s"], &["ZRANGESTORE", "g", "z", "0", "-1"]] {
            assert_eq!(execute(words, true, false), (true, 0), "{words:?}");
            assert_eq!(execute(&["EXISTS", "g"], false, false), (false, ":0\r\n".len()));
        }
        for words in [&["LPOS", "l", "x"][..], &["LREM", "l", "0", "x"], &["LINSERT", "l", "BEFORE", "x", "y"]] {
            assert_eq!(execute(words, true, false), (true, 0), "{words:?}");
        }
        for words in [
            &["HGETALL", "h"][..],
            &["HMGET", "h", "0", "0", "0", "0", "0"],
            &["HRANDFIELD", "h", "-5", "WITHVALUES"],
            &["LRANGE", "l", "0", "-1"],
            &["LPOP", "l", "5"],
            &["SMEMBERS", "s"],
            &["SUNION", "s", "none"],
            &["SINTER", "s", "s"],
            &["SDIFF", "s", "none"],
            &["SPOP", "s", "150"],
            &["ZRANGE", "z", "0", "-1"],
            &["ZUNION", "1", "z"],
            &["ZPOPMIN", "z", "150"],
        ] {
            assert_eq!(execute(words, true, false), (true, 0), "{words:?}");
            let (needs_background, len_bytes) = execute(words, true, true);
            assert!(!needs_background && len_bytes > 8 << 20, "{words:?}: {len_bytes}");
        }
        assert!(!execute(&["HGET", "h", "0"], true, false).0);
    }
}
