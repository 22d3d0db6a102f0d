//! `cargo xtask mutants [quick] [FOLDER|FILE [COUNT]]`: omits steps and finds the test that detects each omission.
//!
//! 1. Finds steps in the source ([`sites`]): calls that order, flush, sync, settle and the like, locks, and repeated
//!    checks.
//! 2. Builds a copy of the workspace once, in which a number selects a step ([`build`]): `MUT=n` omits step n.
//! 3. Runs the tests of the package and of packages above it for each step, for at most three minutes in total, until
//!    one fails. `quick` runs only the tests that take seconds; a later run with all tests covers the rest.
//! 4. Writes the outcomes to `docs/testing/mutants.md`. A step with an outcome there does not run again while the
//!    line stays the same, in the same file or in another file of the crate. So a run may be interrupted at any time
//!    and continues later. To repeat a step, remove its row. Do not edit sources while a run begins, because the
//!    sources are copied then.
//!
//! A failed test must fail again on its own. A suite must first pass without a mutant; the measured duration then
//! limits the runs with mutants. A suite that exceeds that limit several times over has caught the mutant; a suite
//! that was only cut off by the three minutes has not.

mod build;
mod judges;
mod sites;
mod table;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use build::Program;
use judges::{HUNTS, Suite};
use sites::Site;
use table::Table;

const MUTANT_TIME_MAX: Duration = Duration::from_secs(180);
/// A suite with a mutant may take this many times its normal duration, and at least [`PATIENCE_MIN`].
const PATIENCE: u32 = 5;
const PATIENCE_MIN: Duration = Duration::from_secs(30);
/// The outcome of a mutant that the slow tests have not judged yet.
const MISSED_BY_QUICK: &str = "not run by the slow tests";

/// The end of a suite.
#[derive(PartialEq, Eq)]
enum Outcome {
    Passed,
    /// The named test failed, or the process died.
    Failed(Option<String>),
    OutOfTime,
}

/// Judges mutants without an outcome: at most `count` of a folder or a file, or all; with the quick tests only, or
/// with all.
pub(crate) fn run(is_quick: bool, which: Option<&str>, count: usize) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = program.ancestors().nth(2).ok_or("the program lies in no target directory")?;
    let root = crate::tree::root()?;
    let mut all = Vec::new();
    for package in judges::packages() {
        all.extend(sites::of(&root, package)?);
    }
    let mut table = Table::read(&root.join("docs/testing/mutants.md"), &all)?;
    table.write()?;
    let is_open = |site: &Site| match table.outcome(site) {
        None => true,
        Some(outcome) => outcome == MISSED_BY_QUICK && !is_quick,
    };
    let wanted = |site: &&Site| which.is_none_or(|which| site.is_of(which)) && is_open(site);
    let todo: Vec<Site> = all.iter().filter(wanted).take(count).cloned().collect();
    let tree = build::copy(&root, &target.join("mutants"), &all)?;
    let mut bench = Bench { tree, built: BTreeMap::new() };
    for site in todo {
        let is_seen = table.outcome(&site).is_some();
        let outcome = bench.judge(&site, !is_seen, !is_quick)?;
        println!("{}: {outcome}", site.name());
        table.enter(&site, outcome);
        table.write()?;
    }
    println!("{}", table.summary());
    Ok(())
}

/// The built suites, each with its duration without a mutant.
struct Bench {
    tree: PathBuf,
    built: BTreeMap<Suite, (Program, Duration)>,
}

impl Bench {
    fn judge(&mut self, site: &Site, quick: bool, slow: bool) -> Result<String, Failure> {
        let number = site.number();
        let judges = judges::of(&site.file);
        let quick = judges.quick.iter().filter(|_| quick);
        let mut is_cut_off = false;
        let mut spent = Duration::ZERO;
        for &suite in quick.chain(judges.slow.iter().filter(|_| slow)) {
            let (program, took) = self.built(suite)?;
            let patience = (*took * PATIENCE).max(PATIENCE_MIN);
            let left = MUTANT_TIME_MAX.saturating_sub(spent);
            let start = Instant::now();
            let outcome = outcome_of(program, number, patience.min(left))?;
            spent += start.elapsed();
            match outcome {
                Outcome::Failed(Some(test)) => return Ok(format!("caught by {}: {test}", named(suite))),
                Outcome::Failed(None) => return Ok(format!("caught: {} dies", named(suite))),
                Outcome::OutOfTime if patience <= left => return Ok(format!("caught: {} does not end", named(suite))),
                Outcome::OutOfTime => is_cut_off = true,
                Outcome::Passed => {}
            }
        }
        let missed = if is_cut_off { "missed, within three minutes" } else { "missed" };
        Ok(if slow { missed } else { MISSED_BY_QUICK }.to_owned())
    }

    /// Returns a suite that was built and passed without a mutant.
    fn built(&mut self, suite: Suite) -> Result<&(Program, Duration), Failure> {
        if !self.built.contains_key(&suite) {
            let program = build::program(&self.tree, suite)?;
            let start = Instant::now();
            let outcome = run_suite(&program, 0, &arguments(suite, &[]), Duration::from_secs(3600))?;
            if let Outcome::Failed(test) = outcome {
                return Err(format!("{}: {} fails without a mutant", named(suite), test.unwrap_or_default()));
            }
            println!("{}: {} s without a mutant", named(suite), start.elapsed().as_secs());
            self.built.insert(suite, (program, start.elapsed()));
        }
        Ok(&self.built[&suite])
    }
}

/// Runs a suite with a mutant. Tests may also fail because the machine is under load, so a failed test must fail
/// again on its own; otherwise the suite continues without it.
fn outcome_of(program: &Program, number: u64, time_max: Duration) -> Result<Outcome, Failure> {
    let (start, mut excused) = (Instant::now(), Vec::<String>::new());
    let left = || time_max.saturating_sub(start.elapsed());
    loop {
        let outcome = run_suite(program, number, &arguments(program.suite, &excused), left())?;
        let Outcome::Failed(Some(test)) = outcome else { return Ok(outcome) };
        match run_suite(program, number, &["--exact", &test], left())? {
            Outcome::Passed => excused.push(test),
            again => return Ok(again),
        }
    }
}

fn arguments(suite: Suite, skipped: &[String]) -> Vec<&str> {
    let skipped = std::iter::once(HUNTS).chain(skipped.iter().map(String::as_str));
    suite.arguments.iter().copied().chain(skipped.flat_map(|test| ["--skip", test])).collect()
}

fn named(suite: Suite) -> String {
    [&[suite.package], suite.target, suite.arguments].concat().join(" ")
}

/// Runs the tests until one fails.
fn run_suite(program: &Program, number: u64, arguments: &[&str], time_max: Duration) -> Result<Outcome, Failure> {
    let mut command = Command::new(&program.file);
    command
        .current_dir(&program.dir)
        .args(arguments)
        .env("MUT", number.to_string())
        .env("RUST_BACKTRACE", "0")
        .env("HIKV_TEST_EXTENT", "slice");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let start = Instant::now();
    let outcome = loop {
        match lines.recv_timeout(time_max.saturating_sub(start.elapsed())) {
            Ok(line) => {
                let failed = line.strip_prefix("test ").and_then(|test| test.strip_suffix(" ... FAILED"));
                if let Some(test) = failed {
                    break Outcome::Failed(Some(test.to_owned()));
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => break Outcome::OutOfTime,
            Err(mpsc::RecvTimeoutError::Disconnected) => break Outcome::Passed,
        }
    };
    if outcome != Outcome::Passed {
        _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("{command:?}: {error}"))?;
    // A process that died reported no failed test.
    if outcome == Outcome::Passed && !status.success() {
        return Ok(Outcome::Failed(None));
    }
    Ok(outcome)
}

/// Prints the sites, with their numbers for `MUT`.
pub(crate) fn list(root: &Path) -> Result<(), Failure> {
    for package in judges::packages() {
        for site in sites::of(root, package)? {
            println!("{} {:?} {}", site.number(), site.kind, site.name());
        }
    }
    Ok(())
}
