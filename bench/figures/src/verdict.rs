//! Verdicts on claims. A claim is a ratio of two times: 1 means that neither system is ahead.

use crate::paper::Claim;

/// Rounds and machines differ by about this factor.
const TOLERANCE: f64 = 1.15;
/// Medians of one run differ by about this factor: a smaller difference is none.
const NOISE: f64 = 1.03;

/// The relation of a measurement to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All of the measured range is within the printed one, give or take the tolerance.
    Agrees,
    /// A part of it is, and the rest has the same sign.
    AgreesInPart,
    /// The same system is ahead, by another factor.
    SameSign,
    /// The other system is ahead at one end of the range.
    ContradictsInPart,
    /// The other system is ahead.
    Contradicts,
    NotMeasured,
}

impl Verdict {
    pub(crate) const ALL: [Verdict; 6] = [
        Verdict::Agrees,
        Verdict::AgreesInPart,
        Verdict::SameSign,
        Verdict::ContradictsInPart,
        Verdict::Contradicts,
        Verdict::NotMeasured,
    ];

    pub(crate) fn of(claim: &Claim, found: Option<(f64, f64)>) -> Verdict {
        let Some((least, most)) = found else { return Verdict::NotMeasured };
        let printed = Printed::of(claim);
        let mean = (least * most).sqrt();
        if printed.contains(least) && printed.contains(most) {
            Verdict::Agrees
        } else if printed.is_opposite(mean) {
            Verdict::Contradicts
        } else if printed.is_opposite(least) || printed.is_opposite(most) {
            Verdict::ContradictsInPart
        } else if most >= printed.least && least <= printed.most {
            Verdict::AgreesInPart
        } else {
            Verdict::SameSign
        }
    }

    pub(crate) fn needs_cause(self) -> bool {
        matches!(self, Verdict::Contradicts | Verdict::ContradictsInPart)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::AgreesInPart => "agrees in part",
            Verdict::SameSign => "same sign",
            Verdict::ContradictsInPart => "contradicts in part",
            Verdict::Contradicts => "contradicts",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// A printed range, widened by the tolerance: by half of the claimed difference, within [`NOISE`] and [`TOLERANCE`], so
/// that 'no difference' never agrees with a claimed one.
struct Printed {
    least: f64,
    most: f64,
    /// The middle of the range; of a claim without a number, the bound.
    middle: f64,
}

impl Printed {
    fn of(claim: &Claim) -> Printed {
        let middle = if claim.most.is_infinite() { claim.least } else { (claim.least * claim.most).sqrt() };
        let is_even = (1.0 / NOISE..=NOISE).contains(&middle);
        let tolerance = match () {
            () if claim.most.is_infinite() => NOISE,
            () if is_even => TOLERANCE,
            () => (middle.ln().abs() / 2.0).exp().clamp(NOISE, TOLERANCE),
        };
        Printed { least: claim.least / tolerance, most: claim.most * tolerance, middle }
    }

    fn contains(&self, ratio: f64) -> bool {
        (self.least..=self.most).contains(&ratio)
    }

    /// Returns true if another system is ahead than in the paper, or none.
    fn is_opposite(&self, ratio: f64) -> bool {
        let is_ahead = match () {
            () if self.middle > NOISE => ratio > NOISE,
            () if self.middle < 1.0 / NOISE => ratio < 1.0 / NOISE,
            () => false,
        };
        !self.contains(ratio) && !is_ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::{Of, Ratio};

    const NONE: Of = Of { workloads: &[], systems: &[], at: &[] };

    #[test]
    fn verdict_follows_range_and_sign() {
        let claim = |least, most| Claim { text: "", least, most, ratio: Ratio { over: NONE, under: NONE } };
        let verdict = |(least, most): (f64, f64), found| Verdict::of(&claim(least, most), Some(found));
        assert_eq!(verdict((2.0, 2.0), (1.8, 1.9)), Verdict::Agrees);
        assert_eq!(verdict((2.0, 2.0), (1.1, 1.2)), Verdict::SameSign);
        assert_eq!(verdict((2.0, 2.0), (5.0, 6.0)), Verdict::SameSign);
        assert_eq!(verdict((2.0, 3.0), (1.2, 2.5)), Verdict::AgreesInPart);
        assert_eq!(verdict((2.0, 3.0), (0.8, 2.5)), Verdict::ContradictsInPart);
        assert_eq!(verdict((2.0, 3.0), (0.95, 1.2)), Verdict::ContradictsInPart);
        assert_eq!(verdict((1.05, 1.05), (1.04, 1.04)), Verdict::Agrees);
        assert_eq!(verdict((1.05, 1.05), (0.98, 1.0)), Verdict::Contradicts);
        assert_eq!(verdict((2.0, 2.0), (0.5, 0.9)), Verdict::Contradicts);
        assert_eq!(verdict((0.5, 0.5), (1.2, 1.3)), Verdict::Contradicts);
        assert_eq!(verdict((0.5, 0.5), (0.7, 1.3)), Verdict::ContradictsInPart);
        assert_eq!(verdict((1.0, 1.0), (0.9, 1.1)), Verdict::Agrees);
        assert_eq!(verdict((1.0, 1.0), (1.0, 2.0)), Verdict::Contradicts);
        assert_eq!(verdict((0.96, 1.03), (0.4, 0.5)), Verdict::Contradicts);
        assert_eq!(verdict((0.96, 1.03), (2.0, 3.0)), Verdict::Contradicts);
        assert_eq!(verdict((1.0, 1.0), (0.95, 1.25)), Verdict::ContradictsInPart);
        assert_eq!(verdict((1.0, f64::INFINITY), (7.0, 9.0)), Verdict::Agrees);
        assert_eq!(verdict((1.0, f64::INFINITY), (0.5, 3.0)), Verdict::ContradictsInPart);
        assert_eq!(verdict((1.0, f64::INFINITY), (0.5, 0.6)), Verdict::Contradicts);
        assert_eq!(Verdict::of(&claim(1.0, 2.0), None), Verdict::NotMeasured);
    }
}
