//! `--split`: which of the calling threads serve, and which apply.

use std::str::FromStr;

use hikv::pool::{Plan, Reading, Split};

/// The option's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SplitOption {
    /// All serve; the store has threads of its own.
    Beside,
    /// They are a pool.
    Pool(Plan),
}

impl Default for SplitOption {
    fn default() -> SplitOption {
        SplitOption::Pool(Plan::Adaptive(Reading::default()))
    }
}

impl SplitOption {
    pub(super) fn plan(self) -> Option<Plan> {
        match self {
            SplitOption::Beside => None,
            SplitOption::Pool(plan) => Some(plan),
        }
    }

    /// Threads of a fixed split.
    pub(super) fn thread_count(self) -> Option<u64> {
        match self {
            SplitOption::Pool(Plan::Fixed(Split { serving, backend })) => Some((serving + backend) as u64),
            _ => None,
        }
    }
}

impl FromStr for SplitOption {
    type Err = String;

    fn from_str(text: &str) -> Result<SplitOption, String> {
        let refused =
            || format!("'{text}' is no split: adaptive, adaptive-without-updates, beside, or two numbers such as 12-4");
        Ok(match text {
            "beside" => SplitOption::Beside,
            "adaptive" => SplitOption::default(),
            "adaptive-without-updates" => SplitOption::Pool(Plan::Adaptive(Reading::UpdatesLeftOut)),
            _ => {
                let (serving, backend) = text.split_once('-').ok_or_else(refused)?;
                let number = |text: &str| text.parse::<u16>().map(usize::from).map_err(|_| refused());
                let split = Split { serving: number(serving)?, backend: number(backend)? };
                if split.serving == 0 {
                    return Err("a thread has to serve".to_owned());
                }
                SplitOption::Pool(Plan::Fixed(split))
            }
        })
    }
}
