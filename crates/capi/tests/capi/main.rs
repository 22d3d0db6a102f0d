//! The C library as C and C++ programs see it.

mod abi;
mod header;
mod library;
mod programs;
