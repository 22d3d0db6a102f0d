//! Lua scripts as Redis runs them.
//!
//! An [`Interpreter`] compiles scripts and runs them in Redis' sandbox: the standard libraries without files, processes
//! and debugging; `redis`, `cjson`, `cmsgpack`, `struct` and `bit`; globals that no script can change. Commands go to a
//! [`Host`]. A [`Watch`] can stop a script; memory is bounded. Nothing that one script does is visible to the next.
//!
//! Error texts and conversions are those of Redis 7.0, because scripts and clients match on them.

mod arguments;
mod bits;
mod cjson;
mod control;
mod errors;
mod host;
mod interpreter;
mod limits;
mod messages;
mod numbers;
mod random;
mod redis;
mod replies;
mod results;
mod script;
mod structs;

pub use control::{Stop, Watch};
pub use host::{CallError, Host, Level};
pub use interpreter::{Arguments, Failure, Interpreter, Outcome};
pub use script::{Hash, Script, ScriptFlags};
