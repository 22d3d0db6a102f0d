//! The controller's side of DH-HMAC-CHAP authentication of a queue.
//!
//! | phase | may be sent | may be received |
//! |---|---|---|
//! | `Begin` | Negotiate | |
//! | `Challenge` | | Challenge, which leads to `Asked` |
//! | `Asked` | Reply | |
//! | `Answer` | | Success1 or Failure1, which lead to the end or to `Final` |
//! | `Final` | Success2, Failure2 | |
//!
//! Any other message fails the authentication permanently: the host has to reconnect. Until it has succeeded, only
//! authentication commands are executed.

use nvme::Status;
use nvme::dhchap::{Challenge, Failure, Hash, Negotiate, Reply, Secret, Success, Transaction};

/// The secrets that hosts must have, and the one that the controller proves to have.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// The hosts' secret.
    pub host: Secret,
    /// The controller's secret, for hosts that require mutual authentication.
    pub controller: Option<Secret>,
}

const FAILED: u8 = 1;
const HASH_UNUSABLE: u8 = 4;
const INCORRECT_PAYLOAD: u8 = 6;
const INCORRECT_MESSAGE: u8 = 7;

enum Phase {
    Begin,
    Challenge(Challenge),
    Asked(Challenge),
    /// The message, and the state after it: done, done once the host confirms, or failed.
    Answer(Vec<u8>, Then),
    /// The transaction's number.
    Final(u16),
    Done,
    Failed,
}

#[derive(Clone, Copy)]
enum Then {
    Done,
    Final(u16),
    Failed,
}

/// The state of a queue's authentication.
pub(crate) struct Auth {
    phase: Phase,
    host: String,
}

impl Auth {
    pub(crate) fn new(host: String) -> Auth {
        Auth { phase: Phase::Begin, host }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    /// Fails: the host is authenticated, but its queue cannot be created.
    pub(crate) fn fail(&mut self) {
        self.phase = Phase::Failed;
    }

    /// Processes a message of the host.
    pub(crate) fn take(&mut self, secrets: &Secrets, subsystem: &str, message: &[u8]) -> Result<(), Status> {
        let phase = std::mem::replace(&mut self.phase, Phase::Failed);
        self.phase = match phase {
            Phase::Begin => match Negotiate::decode(message) {
                Some(negotiate) => challenge(&negotiate)?,
                None => fails(0, INCORRECT_PAYLOAD),
            },
            Phase::Asked(challenge) => match Reply::decode(message, challenge.hash.len_bytes()) {
                Some(reply) if reply.id == challenge.id => self.judge(secrets, subsystem, &challenge, &reply),
                _ => fails(challenge.id, INCORRECT_PAYLOAD),
            },
            Phase::Final(asked) => match Success::decode(message) {
                Some(Success::Host { id }) if id == asked => Phase::Done,
                _ => Phase::Failed,
            },
            Phase::Challenge(challenge) => fails(challenge.id, INCORRECT_MESSAGE),
            other @ (Phase::Answer(..) | Phase::Done | Phase::Failed) => {
                self.phase = other;
                return Err(Status::COMMAND_SEQUENCE_ERROR);
            }
        };
        Ok(())
    }

    fn judge(&self, secrets: &Secrets, subsystem: &str, asked: &Challenge, reply: &Reply) -> Phase {
        let by = Transaction { hash: asked.hash, id: asked.id, sequence: asked.sequence, host: &self.host, subsystem };
        if !reply.answers(&secrets.host.host_response(&asked.value, &by)) {
            return fails(asked.id, FAILED);
        }
        let (then, response) = match (&reply.challenge, &secrets.controller) {
            (None, _) => (Then::Done, None),
            // It cannot prove a secret that it does not have.
            (Some(_), None) => return fails(asked.id, FAILED),
            (Some((sequence, value)), Some(secret)) => (
                Then::Final(asked.id),
                Some(secret.controller_response(value, &Transaction { sequence: *sequence, ..by })),
            ),
        };
        let success = Success::Controller { id: asked.id, hash_bytes: asked.hash.len_bytes(), response };
        Phase::Answer(success.encode(), then)
    }

    /// Returns the message that the host requests.
    pub(crate) fn next_message(&mut self) -> Result<Vec<u8>, Status> {
        let phase = std::mem::replace(&mut self.phase, Phase::Failed);
        let (message, phase) = match phase {
            Phase::Challenge(challenge) => (challenge.encode(), Phase::Asked(challenge)),
            Phase::Answer(message, Then::Done) => (message, Phase::Done),
            Phase::Answer(message, Then::Final(id)) => (message, Phase::Final(id)),
            Phase::Answer(message, Then::Failed) => (message, Phase::Failed),
            other => {
                self.phase = other;
                return Err(Status::COMMAND_SEQUENCE_ERROR);
            }
        };
        self.phase = phase;
        Ok(message)
    }
}

fn fails(id: u16, why: u8) -> Phase {
    Phase::Answer(Failure { id, is_of_host: false, why }.encode(), Then::Failed)
}

/// Creates a random challenge, with the strongest hash that the host supports.
fn challenge(negotiate: &Negotiate) -> Result<Phase, Status> {
    let Some(hash) = Hash::ALL.into_iter().find(|hash| negotiate.hashes.contains(hash)) else {
        return Ok(fails(negotiate.id, HASH_UNUSABLE));
    };
    let mut value = vec![0; hash.len_bytes()];
    getrandom::fill(&mut value).map_err(|_| Status::INTERNAL_ERROR)?;
    let sequence = getrandom::u32().map_err(|_| Status::INTERNAL_ERROR)? | 1;
    Ok(Phase::Challenge(Challenge { id: negotiate.id, hash, sequence, value }))
}
