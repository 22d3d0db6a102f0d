//! The host's side of DH-HMAC-CHAP authentication of a queue.

use nvme::Fabrics;
use nvme::dhchap::{Challenge, Failure, Hash, Negotiate, Reply, Secret, Success, Transaction};

use crate::{Error, Host, Queue};

/// Buffer size for a message of the controller.
const BUFFER_BYTES: usize = 4096;

/// The secrets that a host proves to have, and that it requires of the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Secrets {
    /// The host's secret.
    pub host: Secret,
    /// The controller's secret; not required if `None`. A controller that does not prove it is refused.
    pub controller: Option<Secret>,
}

/// Authenticates the host to the controller.
pub(crate) fn authenticate(queue: &mut Queue, host: &Host, subsystem: &str) -> Result<(), Error> {
    let Some(secrets) = &host.secrets else { return Err(nvme::Status::AUTHENTICATION_REQUIRED.into()) };
    let id = 1;
    send(queue, &Negotiate { id, hashes: Hash::ALL.to_vec() }.encode())?;
    let message = receive(queue)?;
    let asked = Challenge::decode(&message).filter(|asked| asked.id == id).ok_or_else(|| refusal(&message))?;
    let by = Transaction { hash: asked.hash, id, sequence: asked.sequence, host: &host.name, subsystem };
    let response = secrets.host.host_response(&asked.value, &by);
    let challenge = secrets.controller.as_ref().map(|_| (asked.sequence.wrapping_add(1) | 1, challenge(asked.hash)));
    send(queue, &Reply { id, response, challenge: challenge.clone() }.encode())?;
    let message = receive(queue)?;
    let success = Success::decode(&message).ok_or_else(|| refusal(&message))?;
    if let (Some(secret), Some((sequence, value))) = (&secrets.controller, challenge) {
        if !success.answers(&secret.controller_response(&value, &Transaction { sequence, ..by })) {
            let _ = send(queue, &Failure { id, is_of_host: true, why: 1 }.encode());
            return Err(Error::Authentication("the controller does not prove its secret"));
        }
        send(queue, &Success::Host { id }.encode())?;
    }
    Ok(())
}

/// Returns random bytes: two UUIDs of version 4 have 122 random bits each.
fn challenge(hash: Hash) -> Vec<u8> {
    let numbers = std::iter::repeat_with(|| uuid::Uuid::new_v4().into_bytes()).take(hash.len_bytes().div_ceil(16));
    numbers.flatten().take(hash.len_bytes()).collect()
}

fn refusal(message: &[u8]) -> Error {
    match Failure::decode(message) {
        Some(Failure { why: 1, .. }) => Error::Authentication("the device rejected the secret"),
        _ => Error::Authentication("the device requires an unsupported authentication method"),
    }
}

fn send(queue: &mut Queue, message: &[u8]) -> Result<(), Error> {
    let command = Fabrics::AuthSend { len_bytes: message.len() as u32 }.command(0);
    let id = queue.submit(command, message, 0);
    queue.complete_one(id)?.done()?;
    Ok(())
}

fn receive(queue: &mut Queue) -> Result<Vec<u8>, Error> {
    let command = Fabrics::AuthReceive { len_bytes: BUFFER_BYTES as u32 }.command(0);
    let id = queue.submit(command, &[], BUFFER_BYTES);
    Ok(queue.complete_one(id)?.done()?.data)
}
