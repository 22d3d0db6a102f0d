//! The shared parts of hikv's tests: the crash explorer, and the conformance suite that every store must pass.
//!
//! # How a crash test works
//!
//! A crash test asks one question at every moment of a store's life: if the power failed *now*, would the store still
//! be correct after it is opened again? The parts:
//!
//! - **Script** ([`Script`]): the operations of a test, such as format, put, delete, reopen. It is a fixed list or is
//!   generated from a seed; the same script makes the same steps every time.
//! - **Model** ([`pmem_sim::Model`]): the rules by which the simulated storage loses data. `Line` is memory behind a
//!   cache: any subset of the unfenced cache lines survives. `Span` is a log: flushed bytes survive as a prefix in log
//!   order. `Disk` is files: sectors that were not synced are lost, torn or reordered.
//! - **Step**: one action of the store on that storage: a word stored, a span flushed, a fence, a commit.
//! - **Image**: the contents that the storage may have after a crash at one step.
//! - **Oracle** ([`mod@oracle`]): decides which contents are legal in an image. Acknowledged operations are present;
//!   the operation in flight is present completely or not at all; a value that a reader has seen is still there.
//! - **Visitor** ([`Visitor`]): a concurrent reader or writer that runs between two steps of an operation.
//! - **Canary** ([`pmem::Canary`]): names one deliberate bug. The store with this bug is a *broken variant*, and the
//!   explorer must catch it.
//!
//! # The explorer
//!
//! [`explore`] runs every script on every model with every visitor. After each step it collects possible crash images.
//! When the operation has ended, the store's own recovery code opens each image and the result is compared with the
//! oracle. Then the explorer crashes the recovery as well, and the recovered store, and makes the same demands again.
//!
//! A concurrent reader runs in a separate run of the same script, and so does a second writer, whose acknowledged
//! writes must survive as well. Snapshots that a script takes are compared with the contents at that time, between the
//! steps and after every operation, until they are released; they end with a crash.
//!
//! With [`End::Kill`] the process is killed instead of losing power: recovery then also finds data that is not yet
//! durable.
//!
//! # The other tests
//!
//! - [`hunt`] runs the same exploration on a broken variant and requires that it objects. A checker that has never
//!   caught a bug proves nothing. For the same reason an exploration that found no image to examine is an error.
//! - [`conformance`] needs no crashes: every store must answer like a map.
//! - [`contend`] lets threads work on the same keys and judges the [history](History) of each key: is there a
//!   sequential order of its operations that explains every answer?
//! - [`judge_transactions`] judges a history of transactions over several keys in the same way.
//!
//! An engine joins by describing how its stores are made ([`Made`], [`Crashed`]). Any other store implements
//! [`Operations`] and, for the explorer, [`Subject`].

mod at_snapshot;
pub mod canary;
mod conformance;
mod contend;
mod crashed;
pub mod crowd;
mod engine_conforms;
mod evacuating;
mod evicting;
mod examine;
mod expiry;
mod explore;
mod extent;
mod forged;
mod history;
mod just_in_time;
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
mod serialize;
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
pub use engine_conforms::{answers_like_a_map, engine_conforms, rules_hold};
pub use evacuating::{broken_compactions_are_caught, compaction_undoes_no_write, compactions_survive, evacuating};
pub use evicting::{evictions_change_no_answer, evictions_survive};
pub use expiry::{expired_keys_stay_few, keys_expire_and_are_reaped};
pub use explore::{Counts, End, Settings, Verdict, catches, explore, hunt, survives};
pub use extent::Extent;
pub use forged::forged;
pub use history::{Call, Clock, Event, History, Recorder, Write};
pub use linearize::Anomaly;
pub use lives::expiring;
pub use over::{BackgroundWork, FEW_PAGES, OnDisk, Over, PAUSE, Reports, Restless, restless, small_journal};
pub use paired::Paired;
pub use script::{Change, ExpiringChange, Op, Script};
pub use serialize::{NotSerializable, TX_KEY_COUNT, TX_OP_COUNT_MAX, TxEvent, TxOp, judge_transactions};
pub use shape::Shape;
pub use stamped::Stamped;
pub use subject::{Contents, Direction, Failure, Lasting, Operations, Space, Subject, Visit};
pub use violation::{Objection, Problem, Violation};
pub use visitor::Visitor;
pub use waits::wait_count;
