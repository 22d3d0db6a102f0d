//! `hikv completions` and `hikv man`, generated from the program's options.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use pmem_os::WholeFile;

use crate::Arguments;
use crate::failure::Failure;

/// Print completions for a shell
///
/// For bash: hikv completions bash > ~/.local/share/bash-completion/completions/hikv
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write manual pages, hikv.1 and one per command, into a directory
///
/// Read them with man -l FILE, or put them into a directory such as ~/.local/share/man/man1.
#[derive(Args)]
pub(crate) struct Man {
    /// The directory; created if it does not exist
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
        let mut program = Arguments::command().disable_help_subcommand(true);
        program.build();
        self.write_pages(&program)
    }

    /// Writes the pages of a command and its subcommands.
    fn write_pages(&self, command: &Command) -> Result<(), Failure> {
        command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| self.write_pages(below))?;
        let page = clap_mangen::Man::new(command.clone());
        let path = self.out.join(page.get_filename());
        let write = || {
            let mut file = WholeFile::begin(&path)?;
            page.render(&mut file)?;
            file.finish()
        };
        write().map_err(Failure::at_path(&path))
    }
}
