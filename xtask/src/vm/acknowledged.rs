//! The changes that a guest's program acknowledged, from the lines that it prints.

use crate::failure::Failure;

/// The number of acknowledged changes of each thread.
#[derive(Clone)]
pub(crate) struct Acknowledged(Vec<u64>);

/// The meaning of a line.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Report<'l> {
    /// One more change is acknowledged.
    Change,
    /// The program read the store: it has the changes that are counted now.
    Contents,
    /// The program states something about itself, in two words.
    Said(&'l str, &'l str),
    Other,
}

impl Acknowledged {
    pub(crate) fn new(thread_count: usize) -> Acknowledged {
        Acknowledged(vec![0; thread_count])
    }

    pub(crate) fn counts(&self) -> &[u64] {
        &self.0
    }

    /// Records a line and returns its meaning.
    ///
    /// # Errors
    /// If a count of the store's contents is not a number.
    pub(crate) fn record<'l>(&mut self, line: &'l str) -> Result<Report<'l>, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(match words[..] {
            ["a", thread, count] => {
                // A line torn by the cut changes no count.
                if let (Ok(thread), Ok(count)) = (thread.parse::<usize>(), count.parse()) {
                    self.0[thread] = count;
                }
                Report::Change
            }
            ["judged", ref counts @ ..] => {
                for (known, count) in self.0.iter_mut().zip(counts) {
                    *known = count.parse().map_err(|_| format!("not a count: {line}"))?;
                }
                Report::Contents
            }
            ["said", subject, statement] => Report::Said(subject, statement),
            _ if line.starts_with("a ") => Report::Change,
            _ => Report::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_change_counts() {
        let mut acknowledged = Acknowledged::new(2);
        assert_eq!(acknowledged.record("a 1 7"), Ok(Report::Change));
        assert_eq!(acknowledged.record("a 1 "), Ok(Report::Change));
        assert_eq!(acknowledged.counts(), [0, 7]);
        assert_eq!(acknowledged.record("judged 3 8"), Ok(Report::Contents));
        assert_eq!(acknowledged.counts(), [3, 8]);
        assert_eq!(acknowledged.record("said merged 4"), Ok(Report::Said("merged", "4")));
        assert_eq!(acknowledged.record("a kernel speaks of itself"), Ok(Report::Change));
        assert_eq!(acknowledged.record("booting"), Ok(Report::Other));
        assert!(acknowledged.record("judged x 8").is_err());
    }
}
