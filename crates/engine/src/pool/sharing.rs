//! The ways in which threads share serving and applying, with their names for users: `beside`, `adaptive`, `12-4`.

use std::fmt;
use std::str::FromStr;

use super::{Plan, Reading, Split};

/// The way in which calling threads and the store's own threads share the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// Calling threads only serve; the store has its own threads that apply.
    Beside,
    /// All threads form one pool.
    Pool(Plan),
}

/// The adaptive plan, with the default reading of the equations.
impl Default for Sharing {
    fn default() -> Sharing {
        Sharing::Pool(Plan::Adaptive(Reading::default()))
    }
}

impl Sharing {
    /// Returns the pool's plan, if there is a pool.
    #[must_use]
    pub fn plan(self) -> Option<Plan> {
        match self {
            Sharing::Beside => None,
            Sharing::Pool(plan) => Some(plan),
        }
    }

    /// Returns the split, if it is fixed.
    #[must_use]
    pub fn fixed(self) -> Option<Split> {
        match self {
            Sharing::Pool(Plan::Fixed(split)) => Some(split),
            _ => None,
        }
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sharing::Beside => f.write_str("beside"),
            Sharing::Pool(Plan::Adaptive(Reading::WritesLumped)) => f.write_str("adaptive"),
            Sharing::Pool(Plan::Adaptive(Reading::UpdatesLeftOut)) => f.write_str("adaptive-without-updates"),
            Sharing::Pool(Plan::Fixed(Split { serving, backend })) => write!(f, "{serving}-{backend}"),
        }
    }
}

/// The most threads of a fixed split.
const THREAD_COUNT_MAX: usize = 128;

impl FromStr for Sharing {
    type Err = String;

    fn from_str(text: &str) -> Result<Sharing, String> {
        let refused = || {
            format!("'{text}' is no split; use adaptive, adaptive-without-updates, beside, or two numbers such as 12-4")
        };
        Ok(match text {
            "beside" => Sharing::Beside,
            "adaptive" => Sharing::default(),
            "adaptive-without-updates" => Sharing::Pool(Plan::Adaptive(Reading::UpdatesLeftOut)),
            _ => {
                let (serving, backend) = text.split_once('-').ok_or_else(refused)?;
                let number = |text: &str| text.parse::<u16>().map(usize::from).map_err(|_| refused());
                let split = Split { serving: number(serving)?, backend: number(backend)? };
                if split.serving == 0 {
                    return Err(format!("'{text}' has no serving thread; use at least 1"));
                }
                if split.serving + split.backend > THREAD_COUNT_MAX {
                    return Err(format!("'{text}' is too many threads; the limit is {THREAD_COUNT_MAX}"));
                }
                Sharing::Pool(Plan::Fixed(split))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_plan_is_shown() {
        for text in ["beside", "adaptive", "adaptive-without-updates", "12-4", "1-0", "64-64"] {
            assert_eq!(text.parse::<Sharing>().map(|sharing| sharing.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "8", "8-", "-8", "8-8-8", "0-4", "70000-1", "128-1", "Adaptive"] {
            assert!(text.parse::<Sharing>().is_err(), "{text}");
        }
    }
}
