//! The extent of a test run: a sample by default, a slice in `.ci/run`, or everything with `cargo xtask explore`.
//!
//! A slice examines some of the crashes of every operation, and visitors take turns: each script on each model runs
//! without a visitor, and once more with the next visitor in the list. A sample examines fewer crashes, and each script
//! runs without a visitor on the first model, and with the next visitor on the others. A hunt begins with a slice, and
//! explores everything if that does not catch the broken variant. Tests without the explorer choose their own numbers
//! with [`Extent::pick`].

use std::env;
use std::sync::LazyLock;

use crate::explore::Settings;
use crate::visitor::Visitor;

/// The environment variable. `.ci/run` sets it to `slice`, `cargo xtask explore` to `whole`.
const VARIABLE: &str = "HIKV_TEST_EXTENT";

/// The extent of a test run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// A few crashes of every operation, so that all tests of the workspace take minutes.
    Sample,
    /// A uniform sample of the crashes of every run, with more visitors and more rounds.
    Slice,
    /// As many as the settings allow.
    Whole,
}

/// Upper bounds for the limits in [`Settings`].
struct Bounds {
    images_per_step_max: usize,
    rival_images_per_step_max: usize,
    images_per_op_max: usize,
    nested_images_max: usize,
}

impl Extent {
    /// Returns the extent that the environment requests; a sample if it requests none.
    ///
    /// # Panics
    /// If the variable holds any other value.
    #[must_use]
    pub fn chosen() -> Extent {
        static CHOSEN: LazyLock<Extent> = LazyLock::new(|| match env::var(VARIABLE).as_deref() {
            Ok("whole") => Extent::Whole,
            Ok("slice") => Extent::Slice,
            Ok("sample") | Err(env::VarError::NotPresent) => Extent::Sample,
            other => panic!("{VARIABLE} must be 'sample', 'slice' or 'whole', not {other:?}"),
        });
        *CHOSEN
    }

    /// Returns `sample` if the environment requests a sample, and `more` if it requests more.
    #[must_use]
    pub fn pick<T>(sample: T, more: T) -> T {
        if Extent::chosen() == Extent::Sample { sample } else { more }
    }

    fn bounds(self) -> Option<Bounds> {
        let (images_per_step_max, images_per_op_max) = match self {
            Extent::Sample => (2, 2),
            Extent::Slice => (3, 4),
            Extent::Whole => return None,
        };
        Some(Bounds { images_per_step_max, rival_images_per_step_max: 1, images_per_op_max, nested_images_max: 1 })
    }

    /// Returns `settings` with the limits of this extent.
    pub(crate) fn of(self, settings: &Settings) -> Settings {
        let settings = settings.clone();
        let Some(bounds) = self.bounds() else { return settings };
        Settings {
            images_per_step_max: settings.images_per_step_max.min(bounds.images_per_step_max),
            rival_images_per_step_max: settings.rival_images_per_step_max.min(bounds.rival_images_per_step_max),
            images_per_op_max: settings.images_per_op_max.min(bounds.images_per_op_max),
            nested_images_max: settings.nested_images_max.min(bounds.nested_images_max),
            ..settings
        }
    }

    /// Returns the visitors of the `turn`th combination of a script and one of `model_count` models.
    pub(crate) fn visitors(self, visitors: &[Visitor], turn: usize, model_count: usize) -> Vec<Visitor> {
        match visitors {
            [first, others @ ..] if self != Extent::Whole && !others.is_empty() => {
                let both = [*first, others[turn % others.len()]];
                let is_shared = self == Extent::Sample && model_count > 1;
                if is_shared { vec![both[usize::from(!turn.is_multiple_of(model_count))]] } else { both.to_vec() }
            }
            _ => visitors.to_vec(),
        }
    }

    /// Returns the minimum for this extent, if a full exploration examines at least `count` things. It is 0 only if
    /// `count` is.
    pub(crate) fn least(self, count: u64) -> u64 {
        count.div_ceil(match self {
            Extent::Sample => 200,
            Extent::Slice => 50,
            Extent::Whole => 1,
        })
    }
}
