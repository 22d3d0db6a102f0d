//! `cargo xtask mutants [PACKAGE [COUNT]]`: which left-out step does which test notice?
//!
//! 1. Steps are found in the source ([`sites`]): calls that order, flush, sync, settle and the like, locks, second looks.
//! 2. A copy of the workspace is built once in which each is switched by a number ([`build`]): `MUT=n` leaves out step n.
//! 3. The tests of the package, and those that stand above it, run for each, at most three minutes in all, until one fails.
//! 4. `docs/testing/mutants.md` keeps what came out. What it has an outcome for is not run again, as long as the line is the same, so
//!    a run may be stopped at any time and goes on where it was. To run one again, take its row out.
//!
//! A suite must pass without a mutant first; what it takes then bounds what it may take with one. One that does not come to its end
//! in several times that is caught; one that is only cut off by the three minutes is not.

mod build;
mod sites;
mod table;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use build::{Program, Suite};
use sites::Site;
use table::Table;

const MUTANT_TIME_MAX: Duration = Duration::from_secs(180);
/// So many times what it takes without a mutant, and this at least, a suite has with one.
const PATIENCE: u32 = 5;
const PATIENCE_MIN: Duration = Duration::from_secs(20);

const fn lib(package: &'static str) -> Suite {
    Suite { package, target: &["--lib"], arguments: &[] }
}

const ENGINE: Suite = Suite { package: "hikv-engine", target: &["--test", "engine"], arguments: &[] };
const HEAP: Suite = Suite { package: "hikv-heap", target: &["--test", "heap"], arguments: &[] };
const LIBRARY: Suite = Suite { package: "hikv", target: &["--test", "hikv"], arguments: &[] };
const EXPLORED: Suite = Suite { package: "hikv-testkit", target: &["--test", "hikv"], arguments: &[] };
const JOURNAL: Suite = Suite { package: "hikv-testkit", target: &["--test", "journal"], arguments: &[] };
const JOURNALED: Suite = Suite { arguments: &["journaled", "killed", "backup"], ..LIBRARY };
const SERVER: Suite = Suite { package: "hikv-server", target: &["--test", "server"], arguments: &[] };

/// The crates with mutants, each with its own tests and those above it, the quickest first.
const PACKAGES: [(&str, &[Suite]); 7] = [
    ("epoch", &[lib("hikv-epoch")]),
    ("index", &[lib("hikv-index"), lib("hikv-engine"), ENGINE, EXPLORED]),
    ("heap", &[lib("hikv-heap"), HEAP, EXPLORED]),
    ("engine", &[lib("hikv-engine"), ENGINE, EXPLORED]),
    ("journal", &[lib("hikv-journal"), JOURNAL, JOURNALED]),
    ("hikv", &[LIBRARY]),
    ("server", &[SERVER]),
];

/// How a suite ended.
#[derive(PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed(String),
    OutOfTime,
}

/// Runs what has no outcome yet: `count` mutants of `package` at most, or all.
pub(crate) fn run(package: Option<&str>, count: usize) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let work = program.ancestors().nth(2).ok_or("the program lies in no target directory")?.join("mutants");
    let root = PathBuf::from(crate::rustc::answer(Command::new("git").args(["rev-parse", "--show-toplevel"]))?.trim());
    let mut all = Vec::new();
    for (name, _) in PACKAGES {
        all.extend(sites::of(&root, name)?);
    }
    let mut table = Table::read(&root.join("docs/testing/mutants.md"), &all)?;
    table.write()?;
    let wanted = |site: &Site| package.is_none_or(|package| package == site.package) && table.outcome(site).is_none();
    let todo: Vec<(usize, Site)> = (1..)
        .zip(&all)
        .filter(|(_, site)| wanted(site))
        .take(count)
        .map(|(number, site)| (number, site.clone()))
        .collect();
    let tree = build::copy(&root, &work, &all)?;
    let mut bench = Bench { tree, built: BTreeMap::new() };
    for (number, site) in todo {
        let outcome = bench.judge(number, &site)?;
        println!("{number} {}: {outcome}", site.name());
        table.enter(&site, outcome);
        table.write()?;
    }
    println!("{}", table.summary());
    Ok(())
}

/// The built suites, and what each takes without a mutant.
struct Bench {
    tree: PathBuf,
    built: BTreeMap<Suite, (Program, Duration)>,
}

impl Bench {
    fn judge(&mut self, number: usize, site: &Site) -> Result<String, Failure> {
        let (_, suites) = PACKAGES.iter().find(|(name, _)| *name == site.package).expect("its package is listed");
        let start = Instant::now();
        let mut is_cut_off = false;
        for &suite in *suites {
            let (program, took) = self.built(suite)?;
            let patience = (*took * PATIENCE).max(PATIENCE_MIN);
            let left = MUTANT_TIME_MAX.saturating_sub(start.elapsed());
            match run_suite(program, number, patience.min(left))? {
                Outcome::Failed(test) => return Ok(format!("caught by {test}")),
                Outcome::OutOfTime if patience <= left => return Ok(format!("caught: {} does not end", named(suite))),
                Outcome::OutOfTime => is_cut_off = true,
                Outcome::Passed => {}
            }
        }
        Ok(if is_cut_off { "missed, within three minutes" } else { "missed" }.to_owned())
    }

    /// Built, and passed without a mutant.
    fn built(&mut self, suite: Suite) -> Result<&(Program, Duration), Failure> {
        if !self.built.contains_key(&suite) {
            let program = build::program(&self.tree, suite)?;
            let start = Instant::now();
            let outcome = run_suite(&program, 0, Duration::from_secs(3600))?;
            if let Outcome::Failed(test) = outcome {
                return Err(format!("{test} fails without a mutant"));
            }
            println!("{}: {} s without a mutant", named(suite), start.elapsed().as_secs());
            self.built.insert(suite, (program, start.elapsed()));
        }
        Ok(&self.built[&suite])
    }
}

fn named(suite: Suite) -> String {
    format!("{} {}", suite.package, suite.target.join(" "))
}

/// Runs the tests until one fails.
fn run_suite(program: &Program, number: usize, time_max: Duration) -> Result<Outcome, Failure> {
    let mut command = Command::new(&program.file);
    command
        .current_dir(&program.dir)
        .args(program.suite.arguments)
        .env("MUT", number.to_string())
        .env("RUST_BACKTRACE", "0");
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
                    break Outcome::Failed(format!("{}: {test}", named(program.suite)));
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
    // A process that died said nothing of it.
    if outcome == Outcome::Passed && !status.success() {
        return Ok(Outcome::Failed(format!("{}, which ended with {status}", named(program.suite))));
    }
    Ok(outcome)
}

/// The sites, numbered, as `MUT` takes them.
pub(crate) fn list(root: &Path) -> Result<(), Failure> {
    let mut number = 0;
    for (name, _) in PACKAGES {
        for site in sites::of(root, name)? {
            number += 1;
            println!("{number} {:?} {}", site.kind, site.name());
        }
    }
    Ok(())
}
