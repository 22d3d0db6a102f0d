//! The extent of an exploration: a slice in every test run, or everything with `cargo xtask explore`.
//!
//! A slice examines a sample of the crashes of every operation, and visitors take turns: each script on each model runs
//! without a visitor, and once more with the next visitor in the list. A hunt explores a slice first, and everything if
//! the slice does not catch the broken variant.

use std::env;
use std::sync::LazyLock;

use crate::explore::Settings;
use crate::visitor::Visitor;

/// The environment variable; `whole` explores everything. `cargo xtask explore` sets it.
const VARIABLE: &str = "HIKV_EXPLORE";

/// A slice's upper bounds for the limits in [`Settings`].
const IMAGES_PER_STEP_MAX: usize = 3;
const RIVAL_IMAGES_PER_STEP_MAX: usize = 1;
const IMAGES_PER_OP_MAX: usize = 4;
const NESTED_IMAGES_MAX: usize = 1;

/// A slice must examine at least one in this many of the things that a full exploration examines.
const ONE_OF: u64 = 50;

/// The extent of an exploration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// A uniform sample of the crashes of every run.
    Slice,
    /// As many as the settings allow.
    Whole,
}

impl Extent {
    /// Returns the extent that the environment requests; a slice if it requests none.
    ///
    /// # Panics
    /// If the variable holds any other value.
    #[must_use]
    pub fn chosen() -> Extent {
        static CHOSEN: LazyLock<Extent> = LazyLock::new(|| match env::var(VARIABLE).as_deref() {
            Ok("whole") => Extent::Whole,
            Ok("slice") | Err(env::VarError::NotPresent) => Extent::Slice,
            other => panic!("{VARIABLE} must be 'slice' or 'whole', not {other:?}"),
        });
        *CHOSEN
    }

    /// Returns `settings` with the limits of this extent.
    pub(crate) fn of(self, settings: &Settings) -> Settings {
        let settings = settings.clone();
        if self == Extent::Whole {
            return settings;
        }
        Settings {
            images_per_step_max: settings.images_per_step_max.min(IMAGES_PER_STEP_MAX),
            rival_images_per_step_max: settings.rival_images_per_step_max.min(RIVAL_IMAGES_PER_STEP_MAX),
            images_per_op_max: settings.images_per_op_max.min(IMAGES_PER_OP_MAX),
            nested_images_max: settings.nested_images_max.min(NESTED_IMAGES_MAX),
            ..settings
        }
    }

    /// Returns the visitors of the `turn`th combination of a script and a model.
    pub(crate) fn visitors(self, visitors: &[Visitor], turn: usize) -> Vec<Visitor> {
        let Some((first, others)) = visitors.split_first().filter(|_| self == Extent::Slice) else {
            return visitors.to_vec();
        };
        let next = (!others.is_empty()).then(|| others[turn % others.len()]);
        [*first].into_iter().chain(next).collect()
    }

    /// Returns the minimum for this extent, if a full exploration examines at least `count` things.
    pub(crate) fn least(self, count: u64) -> u64 {
        if self == Extent::Whole { count } else { count / ONE_OF }
    }
}
