//! How much is explored: a slice with every change, everything by a command of its own.
//!
//! A slice looks at a sample of the crashes of every operation, and visitors take turns: beside the run without one, each run
//! of a script on a model has the next of them. A hunt looks at a slice first, and at all if the twin is not caught there.

use std::env;
use std::sync::LazyLock;

use crate::explore::Settings;
use crate::visitor::Visitor;

/// `whole` asks for everything. `cargo xtask explore` sets it.
const VARIABLE: &str = "HIKV_EXPLORE";

/// A slice's bounds on what [`Settings`] ask for.
const IMAGES_PER_STEP_MAX: usize = 3;
const RIVAL_IMAGES_PER_STEP_MAX: usize = 1;
const IMAGES_PER_OP_MAX: usize = 4;
const NESTED_IMAGES_MAX: usize = 1;

/// Of so many things that all of it looks at, a slice looks at one at least.
const ONE_OF: u64 = 50;

/// How much is explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// A fair sample of the crashes of every run.
    Slice,
    /// As many as the settings say.
    Whole,
}

impl Extent {
    /// What the environment asks for: a slice, if it says nothing.
    ///
    /// # Panics
    /// If it asks for anything else.
    #[must_use]
    pub fn chosen() -> Extent {
        static CHOSEN: LazyLock<Extent> = LazyLock::new(|| match env::var(VARIABLE).as_deref() {
            Ok("whole") => Extent::Whole,
            Ok("slice") | Err(env::VarError::NotPresent) => Extent::Slice,
            other => panic!("{VARIABLE} is 'slice' or 'whole', not {other:?}"),
        });
        *CHOSEN
    }

    /// What is left of `settings`.
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

    /// The visitors of the `turn`th run of a script on a model.
    pub(crate) fn visitors(self, visitors: &[Visitor], turn: usize) -> Vec<Visitor> {
        let Some((first, others)) = visitors.split_first().filter(|_| self == Extent::Slice) else {
            return visitors.to_vec();
        };
        let next = (!others.is_empty()).then(|| others[turn % others.len()]);
        [*first].into_iter().chain(next).collect()
    }

    /// How many things must have been looked at, where all of it looks at `count` at least.
    pub(crate) fn least(self, count: u64) -> u64 {
        if self == Extent::Whole { count } else { count / ONE_OF }
    }
}
