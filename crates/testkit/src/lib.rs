//! What hikv's tests have in common: the crash explorer, and the suite that every store conforms to.
//!
//! **The explorer** ([`explore`]) runs a [`Script`] on the crash medium. It notes, after every step, the images
//! that a loss of power might leave, lets the store's own code recover each, and compares with the [oracle](mod@oracle): what was
//! acknowledged is there, the operation in flight is there whole or not at all, and what any reader saw is still there. The
//! explorer then crashes the recovery itself, and the recovered store, and demands the same again. Readers are interposed between
//! the steps of an operation by further runs of the same script, and so is a second writer, whose acknowledgements count.
//!
//! Snapshots that a script takes are compared with what the store held then, after every operation and between its steps,
//! until released; a crash takes them away.
//!
//! A process may be killed, too, instead of losing its power ([`End::Kill`]): what recovers then sees what is not durable.
//!
//! **Canaries** ([`hunt`]): the same exploration of a deliberately broken twin must object. A checker that has never
//! caught anything proves nothing, and an exploration that looked at nothing is an objection too.
//!
//! **Conformance** ([`conformance`]): without crashes, every store answers like a map.
//!
//! **Contention** ([`contend`]): threads work on the same keys at once, and the [history](History) of each key is judged:
//! is there an order of its operations, one after the other, that explains every answer?
//!
//! An engine joins by saying how its stores are made ([`Made`], [`Crashed`]); any other store by implementing [`Operations`]
//! and, for the explorer, [`Subject`].

mod at_snapshot;
pub mod canary;
mod conformance;
mod contend;
mod crashed;
pub mod crowd;
mod engine_conforms;
mod evacuating;
mod examine;
mod expiring_writer;
mod explore;
mod extent;
mod forged;
mod history;
mod linearize;
mod lives;
pub mod oracle;
mod over;
mod paired;
mod read;
mod reservoir;
mod rival;
mod rivals;
mod scene;
mod script;
mod shape;
mod stamped;
mod subject;
mod violation;
mod visitor;
mod waits;
mod walk;

pub use conformance::{Mismatch, conformance};
pub use contend::{Contention, Disorder, contend};
pub use crashed::{Crashed, Made};
pub use engine_conforms::{engine_conforms, rules_hold};
pub use evacuating::{evacuating, writes_undone_by_moves};
pub use expiring_writer::{EXPIRING_LEN_MAX, put_expiring};
pub use explore::{Counts, End, Settings, Verdict, explore, hunt};
pub use extent::Extent;
pub use forged::forged;
pub use history::{Call, Clock, Event, History, Recorder, Write};
pub use linearize::Anomaly;
pub use lives::expiring;
pub use over::{OnDisk, Over, PAUSE, Reports, Restless, restless, small_journal};
pub use paired::Paired;
pub use script::{Change, ExpiringChange, Op, Script};
pub use shape::Shape;
pub use stamped::Stamped;
pub use subject::{Contents, Direction, Failure, Lasting, Operations, Space, Subject, Visit};
pub use violation::{Objection, Problem, Violation};
pub use visitor::Visitor;
pub use waits::wait_count;
