//! Reading a large value piece by piece.

use std::io::{self, Read};

use engine::Witness;

use crate::Tree;

/// A value that is read piece by piece.
///
/// A small value is copied when the reader is created. For a large value, nothing is locked between two reads, so a
/// writer may replace it: the next read then fails instead of mixing two values. If reads compare checksums
/// ([`crate::Tuning::verify_reads`]), the entire value is verified once, when the reader is created.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use std::io::Read;
///
/// store.put_from("film", 1 << 20, std::io::repeat(7))?;
/// let mut reader = store.reader("film")?.expect("it was just put");
/// let mut start = [0; 4];
/// reader.read_exact(&mut start)?;
/// assert_eq!((reader.len_bytes(), start), (1 << 20, [7; 4]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ValueReader {
    tree: Tree,
    /// The key as it is stored.
    stored: Vec<u8>,
    witness: Witness,
    len_bytes: u64,
    read_bytes: u64,
    /// A copy of a value that compaction may move: its witness would change with its place.
    held: Option<Vec<u8>>,
}

impl ValueReader {
    /// Returns a reader of a value of `len_bytes` of which `witness` was returned; `held` is a copy of a small value.
    pub(crate) fn new(
        tree: Tree,
        stored: &[u8],
        witness: Witness,
        len_bytes: u64,
        held: Option<Vec<u8>>,
    ) -> ValueReader {
        ValueReader { tree, stored: stored.to_vec(), witness, len_bytes, read_bytes: 0, held }
    }

    /// Returns the value's length in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

impl Read for ValueReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(value) = &self.held {
            let count = (&value[self.read_bytes as usize..]).read(into)?;
            self.read_bytes += count as u64;
            return Ok(count);
        }
        let mut copied = None;
        let mut copy = |witness: Witness, _, value: &[u8]| {
            if witness == self.witness {
                let rest = &value[self.read_bytes as usize..];
                let count = rest.len().min(into.len());
                into[..count].copy_from_slice(&rest[..count]);
                copied = Some(count);
            }
        };
        self.tree
            .inner()
            .engine()
            .and_then(|engine| engine.get_part(&self.stored, &mut copy))
            .map_err(io::Error::other)?;
        let count = copied
            .ok_or_else(|| io::Error::other("the value was replaced or expired while it was read: read it again"))?;
        self.read_bytes += count as u64;
        Ok(count)
    }
}
