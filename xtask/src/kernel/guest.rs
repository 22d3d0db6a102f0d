//! The guest that loads the module: Debian's kernel, an NVDIMM in a file, and the client's programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::module;
use crate::failure::Failure;
use crate::rustc::{cargo, run};
use crate::vm::files::{self, FirstFiles, place_of};
use crate::vm::machine;

const TOOLS: [(&str, &str); 1] = [("ndctl", "ndctl")];
const MODULES: [&str; 2] = ["nfit", "nd_pmem"];
const APPLETS: [&str; 11] =
    ["sh", "mount", "insmod", "rmmod", "poweroff", "cat", "dmesg", "grep", "sleep", "cut", "mknod"];
const EXAMPLES: [&str; 3] = ["ink", "ink_cut", "ink_hostile"];
/// Where a guest of this memory finds its NVDIMM.
const NVDIMM_AT: u64 = 4 << 30;
const MEMORY_MIB: u32 = 768;
/// Threads of a program that writes until it is cut.
pub(super) const THREAD_COUNT: usize = 2;
/// What the guest says where it cannot go on.
pub(super) const NOT_LOADED: &str = "lost: the module cannot be loaded";

/// The first process. Everything it needs is on the kernel's command line: where the module finds its region, and what is run then.
const INIT: &str = r#"#!/bin/sh
mount -t devtmpfs none /dev
mount -t proc none /proc
mount -t sysfs none /sys
echo 1 > /proc/sys/kernel/panic_on_oops
for word in $(cat /proc/cmdline); do
    case $word in region=*) region=${word#*=};; size=*) size=${word#*=};; twin=*) twin=$word;; run=*) run=${word#*=};; esac
done
if [ $region = raw ]; then
    where="phys=PHYS size=$size $twin"
else
    where=dev=/dev/pmem0
    for module in $(cat /modules/order); do insmod /modules/$module; done
    [ $region = old ] || ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem >/dev/null
fi
show() { echo "\$ $*"; "$@"; }
show insmod /hikv_ink.ko $where || echo "NOT_LOADED"
dmesg | grep hikv_ink | cut -d']' -f2
IFS=,
set -- $run
unset IFS
if [ $1 = show ]; then
    shift
    if [ $region = new ]; then
        show ink put apple red
        show ink put pear green
        show ink put plum blue
    fi
    show ink get pear
    show ink scan apple
    set -- ink_cut "$@"
fi
"$@"
echo "ended $?"
poweroff -f
"#;

/// Where the module's region lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Region {
    /// `/dev/pmem0`, which the guest makes first if it is new.
    Device { is_new: bool },
    /// The NVDIMM's physical addresses.
    Raw,
}

/// What does not change from boot to boot.
pub(super) struct Guest {
    kernel: PathBuf,
    initrd: PathBuf,
    /// What the NVDIMM is kept in.
    pub(super) nvdimm: PathBuf,
    size_bytes: u64,
}

/// One boot.
pub(super) struct Boot<'a> {
    pub(super) region: Region,
    /// A step that the module leaves out.
    pub(super) twin: Option<&'a str>,
    /// The program and its arguments.
    pub(super) run: &'a [String],
    pub(super) processor_count: u32,
    /// More of QEMU's arguments, and of the kernel's.
    pub(super) arguments: &'a [String],
    pub(super) append: &'a str,
}

/// The packages that a guest needs and this machine lacks.
pub(super) fn missing() -> Vec<&'static str> {
    files::missing(files::TOOLS.iter().chain(&TOOLS))
}

impl Guest {
    /// Made in `work`; the kernel is kept for the next time. The NVDIMM is empty.
    pub(super) fn make(work: &Path, size_bytes: u64, is_traced: bool) -> Result<Guest, Failure> {
        let missing = missing();
        if !missing.is_empty() {
            let packages = missing.join(" ");
            return Err(format!("a guest needs more: apt-get install --no-install-recommends {packages}"));
        }
        let (kernel, modules) = files::kernel(&work.with_file_name("vm").join("kernel"))?;
        let version = modules.file_name().expect("a name").to_string_lossy().into_owned();
        let built = module::build(work, Some(&version), is_traced)?;
        println!("hikv_ink.ko: {}", built.facts);
        run(cargo().args(["build", "--quiet", "--package", "hikv-ink-client", "--examples"]))?;
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let examples = this.parent().expect("a directory").join("examples");
        let mut programs: Vec<PathBuf> = EXAMPLES.iter().map(|name| examples.join(name)).collect();
        programs.extend(place_of("ndctl"));
        let init = INIT.replace("PHYS", &format!("{NVDIMM_AT:#x}")).replace("NOT_LOADED", NOT_LOADED);
        let first =
            FirstFiles { init: &init, applets: &APPLETS, modules: &MODULES, programs: &programs, files: &[built.file] };
        let (initrd, nvdimm) = (work.join("initrd.cpio"), work.join("nvdimm"));
        first.pack(&work.join("root"), &modules, &initrd)?;
        let guest = Guest { kernel, initrd, nvdimm, size_bytes };
        guest.empty()?;
        Ok(guest)
    }

    /// Puts an empty NVDIMM in.
    pub(super) fn empty(&self) -> Result<(), Failure> {
        let told = |error: std::io::Error| format!("{}: {error}", self.nvdimm.display());
        fs::File::create(&self.nvdimm).and_then(|file| file.set_len(self.size_bytes)).map_err(told)
    }

    /// Switches it on.
    pub(super) fn boot(&self, boot: &Boot<'_>) -> Result<Child, Failure> {
        let region = match boot.region {
            Region::Device { is_new: true } => "new",
            Region::Device { is_new: false } => "old",
            Region::Raw => "raw",
        };
        let memory = format!(
            "memory-backend-file,id=nvdimm,share=on,mem-path={},size={}",
            self.nvdimm.display(),
            self.size_bytes
        );
        let twin = boot.twin.map(|twin| format!("twin={twin}")).unwrap_or_default();
        let append = format!(
            "console=ttyS0 quiet panic=-1 no_timer_check {} region={region} size={} {twin} run={}",
            boot.append,
            self.size_bytes,
            boot.run.join(",")
        );
        let mut qemu: Command = machine(MEMORY_MIB, boot.processor_count);
        qemu.args(["-object", &memory, "-device", "nvdimm,memdev=nvdimm"]).args(boot.arguments);
        qemu.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.initrd).args(["-append", &append]);
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        qemu.spawn().map_err(|error| format!("{qemu:?}: {error}"))
    }
}
