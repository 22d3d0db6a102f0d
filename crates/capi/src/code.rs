//! The results, flags and kinds of `hikv.h`.

use std::ffi::c_int;

pub(crate) const OK: c_int = 0;
pub(crate) const ABSENT: c_int = 1;
pub(crate) const END: c_int = 1;
pub(crate) const PENDING: c_int = 1;
pub(crate) const SHORT: c_int = 2;
pub(crate) const EXISTS: c_int = 3;

pub(crate) const ERROR: c_int = -1;
pub(crate) const MISSING: c_int = -2;
pub(crate) const LOCKED: c_int = -3;
pub(crate) const UNUSABLE: c_int = -4;
pub(crate) const DURABILITY: c_int = -5;
pub(crate) const OPTION: c_int = -6;
pub(crate) const IO: c_int = -7;
pub(crate) const FULL: c_int = -8;
pub(crate) const KEY_SIZE: c_int = -9;
pub(crate) const VALUE_SIZE: c_int = -10;
pub(crate) const BATCH_SIZE: c_int = -11;
pub(crate) const UNMET: c_int = -12;
pub(crate) const UNSUPPORTED: c_int = -13;
pub(crate) const FORKED: c_int = -14;
pub(crate) const READ_ONLY: c_int = -15;
pub(crate) const DAMAGED: c_int = -16;
pub(crate) const BUSY: c_int = -17;
pub(crate) const INSIDE_CALLBACK: c_int = -18;
pub(crate) const FORMAT: c_int = -19;
pub(crate) const PANIC: c_int = -20;
pub(crate) const CONFLICT: c_int = -21;
pub(crate) const CONTENDED: c_int = -22;
pub(crate) const NO_SUCH_TREE: c_int = -23;
pub(crate) const TREE_EXISTS: c_int = -24;
pub(crate) const NOT_A_NUMBER: c_int = -25;

pub(crate) const CREATE: u32 = 1;
pub(crate) const OPEN_READ_ONLY: u32 = 2;
pub(crate) const UNORDERED: u32 = 4;
pub(crate) const HUGE_PAGES: u32 = 8;
pub(crate) const NO_BACKGROUND: u32 = 16;

pub(crate) const HIGHEST: c_int = 0;
pub(crate) const PROCESS: c_int = 1;
pub(crate) const BUFFERED: c_int = 2;
pub(crate) const POWER: c_int = 3;

pub(crate) const OP_PUT: u8 = 1;
pub(crate) const OP_DELETE: u8 = 2;
pub(crate) const OP_PUT_UNTIL: u8 = 3;
pub(crate) const OP_EXPECT_ABSENT: u8 = 16;
pub(crate) const OP_EXPECT_VERSION: u8 = 17;
pub(crate) const OP_TREE: u8 = 32;

pub(crate) const UNBOUNDED: c_int = 0;
pub(crate) const INCLUDED: c_int = 1;
pub(crate) const EXCLUDED: c_int = 2;
pub(crate) const PREFIX: c_int = 3;

pub(crate) const BACK: u32 = 1;
pub(crate) const KEYS: u32 = 2;

pub(crate) const EXCLUSIVE_FIRST: u32 = 1;
pub(crate) const NEVER_EXCLUSIVE: u32 = 2;
