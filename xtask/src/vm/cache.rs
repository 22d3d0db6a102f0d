//! The model of the processor's cache before an NVDIMM, a plugin of the emulator (`kernel/ink/plugin`), as a guest is given it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::rustc::run;
use crate::tree::root;

/// Where the model lies, and what is durable of the NVDIMM.
pub(crate) struct Cache {
    plugin: PathBuf,
    durable: PathBuf,
}

/// Whose stores go through the cache. Those of the other are not looked at, or durable at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Kernel,
    Processes,
}

/// The cut comes before that one, counted from the boot.
#[derive(Clone, Copy)]
pub(crate) enum Cut<'a> {
    Stores(u64),
    /// So many cuts, each after so many fences at most: the last is one, the others leave images in these files, a point and a number behind.
    Images {
        count: u64,
        fences_max: u64,
        file: &'a Path,
    },
}

impl Cache {
    /// Made in `work`.
    pub(crate) fn build(work: &Path) -> Result<Cache, Failure> {
        let (plugin, source) = (work.join("cache.so"), root()?.join("kernel/ink/plugin/cache.c"));
        let mut compile = Command::new("gcc");
        compile.args(["-O2", "-Wall", "-Wno-unused-parameter", "-shared", "-fPIC", "-o"]);
        run(compile.arg(&plugin).arg(source))?;
        Ok(Cache { plugin, durable: work.join("durable") })
    }

    /// Nothing is durable, of so many bytes.
    pub(crate) fn empty(&self, len_bytes: u64) -> Result<(), Failure> {
        let told = |error: std::io::Error| format!("{}: {error}", self.durable.display());
        File::create(&self.durable).and_then(|file| file.set_len(len_bytes)).map_err(told)
    }

    /// What is durable is what `nvdimm` has.
    pub(crate) fn take(&self, nvdimm: &Path) -> Result<(), Failure> {
        copy(nvdimm, &self.durable)
    }

    /// What is durable is put into `nvdimm`. The emulator's arguments that put the model before it.
    pub(crate) fn before(
        &self,
        by: By,
        nvdimm: &Path,
        seed: u64,
        evicted_one_in: u64,
        cut: Cut<'_>,
    ) -> Result<[String; 2], Failure> {
        copy(&self.durable, nvdimm)?;
        let len_bytes = nvdimm.metadata().map_err(|error| format!("{}: {error}", nvdimm.display()))?.len();
        let by = if by == By::Kernel { "kernel" } else { "processes" };
        let cut = match cut {
            Cut::Stores(count) => format!("stores={count}"),
            Cut::Images { count, fences_max, file } => {
                format!("fences={fences_max},images={count},image={}", file.display())
            }
        };
        let [plugin, live, durable] = [&self.plugin, nvdimm, &self.durable].map(|file: &Path| file.display());
        let told =
            format!("by={by},size={len_bytes},live={live},durable={durable},seed={seed},evict={evicted_one_in},{cut}");
        Ok(["-plugin".to_owned(), format!("{plugin},{told}")])
    }
}

/// Without the holes.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    run(Command::new("cp").arg("--sparse=always").arg(from).arg(to))
}
