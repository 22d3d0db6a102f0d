//! Named trees in one store: their stored keys, and the catalog of their names.
//!
//! A tree is a prefix of stored keys, of which engines know nothing ([`Space`]):
//!
//! | stored key | meaning |
//! |---|---|
//! | `FF n k`, n from 01 to 0F | key *k* of tree n: the databases of the server |
//! | `FF 10 …` | the catalog ([`Catalog`]); `FF 10` alone: the server's table of databases |
//! | `FF 11 i i k`, `FF 12 i i i i k` | key *k* of tree id (big-endian), from 16 and from 65,536 |
//! | `FF 00 k` | the nameless key *k*, which begins with `FF` and a byte up to 1F |
//! | any other | the same nameless key |
//!
//! A store has a catalog from its first named tree on. Before that, every stored key is the nameless key of the same
//! bytes ([`Space::Whole`]).

mod begin;
mod changes;
mod check;
mod counts;
mod databases;
mod mend;
mod names;
mod reclaim;
mod record;
mod space;
mod tree_id;

pub use check::check;
pub use counts::Counts;
pub use databases::{DATABASE_COUNT, DatabaseIds, database_name};
pub use mend::mend;
pub use names::{Catalog, NAME_BYTES_MAX, RESERVED, TREE_COUNT_MAX, TreeEntry, check_name, space_at};
pub use reclaim::{Reclaim, Reclaimed};
pub use record::{HEAD_KEY, is_head};
pub use space::{Space, StoredRange};
pub use tree_id::{MARK, Prefix, TreeId, is_marked};
