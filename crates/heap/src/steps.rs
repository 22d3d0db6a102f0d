//! Sizes in steps: 1 to 32 by one, then eight steps per doubling.
//!
//! Size classes count grains of 16 bytes this way, free runs count units. Rounding up to a step wastes at most one
//! part in nine.

/// Steps per doubling, as a power of two.
const FINENESS_BITS: u32 = 3;
/// Up to this size, every size is a separate step.
const LINEAR_SIZES: u32 = 32;

/// Returns the largest step that is at most `size`.
///
/// # Panics
/// In builds with overflow checks if `size` is 0.
#[inline]
pub(crate) const fn step_at_most(size: u32) -> usize {
    if size <= LINEAR_SIZES {
        return size as usize - 1;
    }
    let exponent = size.ilog2();
    let within = size >> (exponent - FINENESS_BITS) & ((1 << FINENESS_BITS) - 1);
    (LINEAR_SIZES - 1 + ((exponent - LINEAR_SIZES.ilog2()) << FINENESS_BITS) + within) as usize
}

/// Returns the smallest step that is at least `size`.
#[inline]
pub(crate) const fn step_at_least(size: u32) -> usize {
    if size <= 1 { 0 } else { step_at_most(size - 1) + 1 }
}

/// Returns the size of a step.
pub(crate) const fn step_size(step: usize) -> u32 {
    if step < LINEAR_SIZES as usize {
        return step as u32 + 1;
    }
    let above = step as u32 - (LINEAR_SIZES - 1);
    let exponent = LINEAR_SIZES.ilog2() + (above >> FINENESS_BITS);
    let eighths = (1 << FINENESS_BITS) + (above & ((1 << FINENESS_BITS) - 1));
    eighths << (exponent - FINENESS_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and slow")]
    fn steps_bracket_every_size() {
        for size in 1..1 << 20 {
            let (below, above) = (step_at_most(size), step_at_least(size));
            assert!(step_size(below) <= size && size < step_size(below + 1), "size {size}");
            assert!(step_size(above) >= size && (above == 0 || step_size(above - 1) < size), "size {size}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and slow")]
    fn rounding_up_wastes_at_most_a_ninth() {
        for size in 32..1u32 << 20 {
            let rounded = step_size(step_at_least(size));
            assert!((rounded - size) * 9 <= rounded, "size {size} becomes {rounded}");
        }
    }
}
