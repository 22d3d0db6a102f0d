//! The program as its users run it: real processes, real files, exit codes and what is said.

mod bad_input;
mod bench;
mod interrupted;
mod items;
mod state;
mod support;
mod transfer;
