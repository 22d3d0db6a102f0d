//! Addresses inside a region, and the arithmetic of lines.

/// Number of bytes that the cache writes back together, on every machine hikv runs on.
pub const LINE_BYTES: u64 = 64;

/// A byte address relative to the start of a region. Only offsets are ever stored in a medium, never pointers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Offset(pub u64);

impl Offset {
    /// The offset that refers to nothing. Offset 0 holds the superblock, which no index entry refers to.
    pub const NULL: Offset = Offset(0);

    /// Returns the offset `bytes` further on.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Offset {
        Offset(self.0 + bytes)
    }

    /// Checks the alignment.
    ///
    /// # Panics
    /// Unless the offset is a multiple of `bytes`, a power of two.
    #[inline(always)]
    pub fn expect_aligned(self, bytes: u64) {
        if self.0 & (bytes - 1) != 0 {
            misaligned(self, bytes);
        }
    }

    /// Returns true for [`Offset::NULL`].
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Returns the start of the line that holds this byte.
    #[must_use]
    pub const fn line(self) -> Offset {
        Offset(self.0 & !(LINE_BYTES - 1))
    }

    /// Returns the span of `len_bytes` that starts here.
    #[must_use]
    pub const fn span(self, len_bytes: u64) -> Span {
        Span { start: self, len_bytes }
    }
}

/// Separate, with arguments by value, so that its caller keeps nothing in memory for it.
#[cold]
#[inline(never)]
fn misaligned(at: Offset, bytes: u64) -> ! {
    panic!("offset {:#x} is not aligned to {bytes} bytes", at.0)
}

/// A run of bytes in a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first byte.
    pub start: Offset,
    /// The number of bytes; zero is an empty span, which touches no line.
    pub len_bytes: u64,
}

impl Span {
    /// Returns true if the span is in a region of `region_bytes` bytes.
    #[inline(always)]
    #[must_use]
    pub const fn lies_within(self, region_bytes: u64) -> bool {
        self.len_bytes <= region_bytes && self.start.0 <= region_bytes - self.len_bytes
    }

    /// Returns the offset after the last byte, or `None` if the sum does not fit into 64 bits (a damaged offset).
    #[must_use]
    pub const fn end(self) -> Option<u64> {
        self.start.0.checked_add(self.len_bytes)
    }
}

/// Returns the starts of the lines that `span` touches, in ascending order.
///
/// This is the only function that turns bytes into lines: hand-written flush loops often get the end wrong (it must
/// be computed from the *unaligned* start).
///
/// ```
/// # use pmem::{lines, Offset};
/// let starts: [u64; 2] = [0, 64];
/// assert!(lines(Offset(60).span(8)).map(|line| line.0).eq(starts));
/// assert_eq!(lines(Offset(60).span(0)).count(), 0);
/// ```
pub fn lines(span: Span) -> impl Iterator<Item = Offset> {
    let first = span.start.line().0;
    let past = if span.len_bytes == 0 { first } else { span.start.0 + span.len_bytes };
    (first..past).step_by(LINE_BYTES as usize).map(Offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every start in two lines and every length up to four lines: the lines are exactly those that hold a byte of
    /// the span.
    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and slow")]
    fn lines_are_exactly_those_touched() {
        for start in 0..2 * LINE_BYTES {
            for len_bytes in 0..=4 * LINE_BYTES {
                let touched = |line: u64| (start..start + len_bytes).any(|byte| byte / LINE_BYTES == line);
                let expected = (0..8).filter(|&line| touched(line)).map(|line| line * LINE_BYTES);
                let got = lines(Offset(start).span(len_bytes)).map(|line| line.0);
                assert!(got.eq(expected), "start {start}, length {len_bytes}");
            }
        }
    }
}
