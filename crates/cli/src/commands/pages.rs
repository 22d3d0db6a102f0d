//! `hikv completions` and `hikv man`: what shells and `man` know of the program, made from its own options.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Arguments;
use crate::failure::Failure;

/// Write completions for a shell to standard output
///
/// For bash: hikv completions bash > ~/.local/share/bash-completion/completions/hikv
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write manual pages, hikv.1 and one for each command, into a directory
///
/// They are read with man -l FILE, or from a directory such as ~/.local/share/man/man1.
#[derive(Args)]
pub(crate) struct Man {
    /// The directory, which is made if it is not there
    #[arg(value_name = "OUT")]
    out: PathBuf,
}

impl Completions {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "hikv", &mut script);
        io::stdout().write_all(&script).map_err(Failure::output("standard output"))
    }
}

impl Man {
    pub(super) fn run(self) -> Result<(), Failure> {
        fs::create_dir_all(&self.out).map_err(Failure::at_path(&self.out))?;
        clap_mangen::generate_to(Arguments::command(), &self.out).map_err(Failure::at_path(&self.out))
    }
}
