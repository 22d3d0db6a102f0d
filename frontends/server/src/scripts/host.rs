//! The commands of a script.

use acl::Reason;
use command_table::{self as table, Entry, Kind, Unknown, flag};
use lua_scripts::{CallError, Failure, Host, Level, Stop};
use resp::{Protocol, Reply, Request};

use super::Progress;
use crate::errors::{FixedError, Refusal};
use crate::execution::background::weight;
use crate::execution::call::Call;
use crate::execution::needs::makes_collections;
use crate::keyspace::items::Pending;
use crate::observers::announcements::Announcements;

/// Executes the commands of a script as commands of its client, with the changes of a transaction.
pub(crate) struct ScriptHost<'c, 'a> {
    pub(crate) call: &'c mut Call<'a>,
    pub(crate) pending: &'c Pending,
    pub(crate) announcements: &'c Announcements,
    /// The script must not write.
    pub(crate) is_read_only: bool,
    /// The script may need more memory than permitted.
    pub(crate) allows_oom: bool,
    /// The script runs on an event loop, and is started again in the background if it takes long.
    pub(crate) may_restart: bool,
    /// The script has written.
    pub(crate) has_written: bool,
    pub(crate) progress: Option<&'c Progress>,
}

fn refused(text: &str) -> CallError {
    CallError::Refused(text.as_bytes().into())
}

impl ScriptHost<'_, '_> {
    /// Returns the command, if the script may execute it now.
    fn admit(&mut self, request: &Request<'_>) -> Result<Entry, CallError> {
        let entry = table::find(request).map_err(|unknown| match unknown {
            Unknown::Command | Unknown::Subcommand(_) => refused("ERR Unknown Redis command called from script"),
            Unknown::ArgumentCount(_) => refused("ERR Wrong number of args calling Redis command from script"),
        })?;
        if entry.command.has(flag::NOSCRIPT) {
            return Err(refused("ERR This Redis command is not allowed from script"));
        }
        let denied = self.call.session.login.user().and_then(|user| user.check(entry, request).err());
        if let Some(denied) = denied {
            let user = self.call.session.login.name().to_owned();
            self.call.client().log_denied(denied.reason, denied.object, user);
            return Err(refused(match denied.reason {
                Reason::Key => {
                    "ERR The user executing the script can't access at least one of the keys mentioned in the command \
                     arguments"
                }
                Reason::Channel => {
                    "ERR The user executing the script can't publish to the channel mentioned in the command"
                }
                Reason::Command | Reason::Auth => {
                    "ERR The user executing the script can't run this command or subcommand"
                }
            }));
        }
        if self.is_read_only && entry.command.has_visible_effects() {
            return Err(refused("ERR Write commands are not allowed from read-only scripts."));
        }
        // Once a script has written, it is not interrupted for lack of memory.
        if entry.command.has(flag::DENYOOM)
            && !self.allows_oom
            && !self.has_written
            && self.call.client().is_out_of_memory()
        {
            return Err(CallError::Refused(Refusal::from(FixedError::OutOfMemory).text()));
        }
        Ok(entry)
    }

    /// Counts a command that was refused before its execution.
    fn note_refused(&mut self, request: &Request<'_>, error: &CallError) {
        let (shared, entry) = (self.call.shared, table::by_name(request.name()));
        if let Some(entry) = entry {
            shared.counters_of(self.call.session).commands.note_rejected(entry.number);
        }
        if let CallError::Refused(text) = error {
            self.call.event_counts.add_error(entry.map_or(Kind::Other, Entry::kind));
            shared.telemetry.errors.note(text);
        }
    }
}

impl Refusal {
    /// Returns whether it is the error of a script's command, which was counted when the command failed.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self, Refusal::Script(Failure { is_counted: true, .. }))
    }
}

impl Host for ScriptHost<'_, '_> {
    fn call(&mut self, request: Request<'_>, protocol: Protocol, output: &mut Vec<u8>) -> Result<(), CallError> {
        let entry = match self.admit(&request) {
            Ok(entry) => entry,
            Err(error) => {
                self.note_refused(&request, &error);
                return Err(error);
            }
        };
        if makes_collections(entry, &request) && !self.call.session.is_executing && self.call.shared.lacks_collections()
        {
            self.call.session.wants_collections = true;
            return Err(CallError::Stopped(Stop::Abandoned));
        }
        if self.may_restart && weight::is_long(entry, &request, self.call.session.db, self.call.shared) {
            return Err(CallError::Stopped(Stop::Abandoned));
        }
        if entry.command.has_visible_effects() {
            self.has_written = true;
            if self.progress.is_some_and(|progress| !progress.write()) {
                return Err(CallError::Stopped(Stop::Killed));
            }
        }
        let start = output.len();
        let mut step = Call {
            shared: self.call.shared,
            session: &mut *self.call.session,
            entry,
            request,
            reply: Reply::new(output, protocol),
            event_counts: &mut *self.call.event_counts,
            pending: Some(self.pending),
            announcements: Some(self.announcements),
        };
        if let Err(refusal) = step.run() {
            let text = step.client().note_failed(entry, &refusal);
            step.reply.truncate(start);
            step.reply.error(&text);
        }
        Ok(())
    }

    fn is_permitted(&mut self, request: Request<'_>) -> Option<bool> {
        let entry = table::find(&request).ok()?;
        Some(self.call.session.login.user().is_some_and(|user| user.check(entry, &request).is_ok()))
    }

    fn log(&mut self, level: Level, message: &[u8]) {
        self.call.shared.administration.log.of_script(level, &String::from_utf8_lossy(message));
    }
}
