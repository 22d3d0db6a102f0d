//! What an operator has a say in: users, parameters, the log.

pub(crate) mod acl;
pub(crate) mod file_limit;
pub(crate) mod log;
pub(crate) mod log_writer;
pub(crate) mod output_limits;
pub(crate) mod replacement;
pub(crate) mod secrets;
pub(crate) mod settings;
pub(crate) mod start;
