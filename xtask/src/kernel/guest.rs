//! The guest that loads the module: Debian's kernel, an NVDIMM in a file, and the client's programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::module::Built;
use super::{kasan, module};
use crate::failure::Failure;
use crate::rustc::{cargo, run};
use crate::vm::files::{self, FirstFiles, place_of};
use crate::vm::time::Time;
use crate::vm::{lines_of, machine};

const TOOLS: [(&str, &str); 2] = [("ndctl", "ndctl"), ("mkfs.ext4", "e2fsprogs")];
const MODULES: [&str; 5] = ["nfit", "nd_pmem", "ext4", "virtio_pci", "virtio_pmem"];
const APPLETS: [&str; 12] =
    ["sh", "mount", "insmod", "rmmod", "poweroff", "cat", "dmesg", "grep", "sleep", "cut", "mknod", "mkdir"];
const EXAMPLES: [&str; 3] = ["ink", "ink_cut", "ink_hostile"];
/// The program that checks images on the host.
const JUDGE: &str = "ink_judge";
pub(super) const SPEED: &str = "ink_speed";
const MERGES: &str = "ink_merges";
/// Physical address of the NVDIMM in a guest with this much memory.
const NVDIMM_AT: u64 = 4 << 30;
/// Offset in the NVDIMM of memory reported as failed: after the area that a namespace reserves for itself.
const FAILS_AT: u64 = 16 << 20;
const MEMORY_MIB: u32 = 768;
/// Longer than any part of a wave of hostile processes, without the emulator's waits for a processor.
const SILENCE_MAX: Duration = Duration::from_secs(900);
/// Threads of a program that writes until the cut.
pub(super) const THREAD_COUNT: usize = 2;
/// Messages of a guest that cannot continue.
const NOT_LOADED: &str = "lost: the module cannot be loaded";
const NOT_MOUNTED: &str = "lost: the file system cannot be mounted";

/// The first process. All its parameters are on the kernel's command line: the module's region, and the program to
/// run.
const INIT: &str = r#"#!/bin/sh
mount -t devtmpfs none /dev
mount -t proc none /proc
mount -t sysfs none /sys
echo 1 > /proc/sys/kernel/panic_on_oops
for word in $(cat /proc/cmdline); do
    case $word in region=*) region=${word#*=};; size=*) size=${word#*=};; variant=*|order=*) more="$more $word";; run=*) run=${word#*=};; esac
done
if [ $region = raw ]; then
    where="phys=PHYS size=$size$more"
else
    where=dev=/dev/pmem0
    for module in $(cat /modules/order); do insmod /modules/$module; done
    case $region in
        old|failing|write-back) ;;
        *) ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem >/dev/null;;
    esac
fi
show() { echo "\$ $*"; "$@"; }
case $region in
    failing)
        show insmod /hikv_ink.ko $where || echo "NOT_LOADED"
        show ink get pear
        echo FAILS > /sys/devices/system/memory/hard_offline_page
        show ink get pear
        dmesg | grep hikv_ink | cut -d']' -f2
        echo "ended 0"
        poweroff -f;;
    write-back)
        until [ -e /dev/pmem0 ]; do sleep 1; done
        show insmod /hikv_ink.ko $where && echo "lost: the module takes a device whose writes are not durable"
        dmesg | grep hikv_ink | cut -d']' -f2
        echo "ended 0"
        poweroff -f;;
    ext4*)
        mkfs.ext4 -q -F -b 4096 /dev/pmem0
        mkdir /store
        mount -t ext4 -o dax=${region#ext4-} /dev/pmem0 /store || echo "NOT_MOUNTED";;
    *)
        show insmod /hikv_ink.ko $where || echo "NOT_LOADED"
        dmesg | grep hikv_ink | cut -d']' -f2;;
esac
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

/// The location of the module's region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Region {
    /// `/dev/pmem0`; the guest creates it first if it is new.
    Device { is_new: bool },
    /// The NVDIMM's physical addresses.
    Raw,
    /// None: the NVDIMM has a file system, for the library.
    Ext4 { has_dax: bool },
    /// `/dev/pmem0` as it was left; the kernel is made to believe that some of its memory has failed.
    Failing,
    /// A virtio-pmem device as `/dev/pmem0`: its host has a write cache, so writes that the guest believes durable
    /// are not.
    WriteBack,
}

/// The parts that stay the same from boot to boot.
pub(super) struct Guest {
    kernel: PathBuf,
    initrd: PathBuf,
    /// The file of the NVDIMM.
    pub(super) nvdimm: PathBuf,
    size_bytes: u64,
}

/// The module that a guest loads, and its kernel.
#[derive(Clone, Copy, Default)]
pub(super) struct Kind {
    /// The module has markers for the cache model, and broken variants.
    pub(super) is_traced: bool,
    /// The kernel is the one of [`kasan`], and the module is built for it.
    pub(super) is_kasan: bool,
}

impl Kind {
    /// Suffix of the names of files made for this kind.
    pub(super) fn suffix(self) -> &'static str {
        match (self.is_kasan, self.is_traced) {
            (false, false) => "",
            (false, true) => "-traced",
            (true, false) => "-kasan",
            (true, true) => "-kasan-traced",
        }
    }
}

/// One boot.
pub(super) struct Boot<'a> {
    pub(super) region: Region,
    /// The broken variant of the module: a step that it omits.
    pub(super) variant: Option<&'a str>,
    /// The program and its arguments.
    pub(super) run: &'a [String],
    pub(super) processor_count: u32,
    /// Further arguments of QEMU, and of the kernel.
    pub(super) arguments: &'a [String],
    pub(super) append: &'a str,
}

/// Lists the packages that a guest needs and this machine lacks.
pub(super) fn missing() -> Vec<&'static str> {
    files::missing(files::TOOLS.iter().chain(&TOOLS))
}

/// Returns the kernel, the directory of its modules, and the built module.
fn kernel_and_module(work: &Path, kind: Kind) -> Result<(PathBuf, PathBuf, Built), Failure> {
    if kind.is_kasan {
        let kernel = kasan::kernel(work)?;
        let built = module::build_for(work, &kernel, kind)?;
        return Ok((kernel.join(kasan::IMAGE), kernel, built));
    }
    let (kernel, modules) = files::kernel(&work.with_file_name("vm").join("kernel"))?;
    let version = modules.file_name().expect("a name").to_string_lossy().into_owned();
    let built = module::build(work, Some(&version), kind)?;
    Ok((kernel, modules, built))
}

/// Builds the example programs `names`.
fn examples(names: &[&str], arguments: &[&str], profile: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--package", "hikv-ink-client"]).args(arguments);
    run(build.args(names.iter().flat_map(|name| ["--example", name])))?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let dir = this.ancestors().nth(2).ok_or("the program lies in no target directory")?.join(profile).join("examples");
    Ok(names.iter().map(|name| dir.join(name)).collect())
}

/// Builds the programs that most guests run.
pub(super) fn programs() -> Result<Vec<PathBuf>, Failure> {
    examples(&EXAMPLES, &[], "debug")
}

/// Builds the program that checks images on the host.
pub(super) fn judge() -> Result<PathBuf, Failure> {
    Ok(examples(&[JUDGE], &[], "debug")?.remove(0))
}

/// Builds the program that deletes most keys.
pub(super) fn merges() -> Result<Vec<PathBuf>, Failure> {
    examples(&[MERGES], &[], "debug")
}

/// Builds the program that measures, with optimisation.
pub(super) fn speed() -> Result<Vec<PathBuf>, Failure> {
    examples(&[SPEED], &["--release"], "release")
}

impl Guest {
    /// Makes a guest with an empty NVDIMM in `work`; the kernel is kept for later runs.
    pub(super) fn make(work: &Path, size_bytes: u64, kind: Kind, examples: &[PathBuf]) -> Result<Guest, Failure> {
        let missing = missing();
        if !missing.is_empty() {
            let packages = missing.join(" ");
            return Err(format!(
                "packages for the guest are missing: apt-get install --no-install-recommends {packages}"
            ));
        }
        let (kernel, modules, built) = kernel_and_module(work, kind)?;
        println!("hikv_ink.ko: {}", built.facts);
        let programs = [examples, &TOOLS.iter().filter_map(|(tool, _)| place_of(tool)).collect::<Vec<_>>()].concat();
        let init = INIT.replace("PHYS", &format!("{NVDIMM_AT:#x}"));
        let init = init.replace("FAILS", &format!("{:#x}", NVDIMM_AT + FAILS_AT));
        let init = init.replace("NOT_LOADED", NOT_LOADED).replace("NOT_MOUNTED", NOT_MOUNTED);
        // The KASAN kernel has all drivers built in.
        let wanted = if kind.is_kasan { &[] } else { &MODULES[..] };
        let first =
            FirstFiles { init: &init, applets: &APPLETS, modules: wanted, programs: &programs, files: &[built.file] };
        // One guest of each kind may run at a time.
        let of_kind = |name: &str| work.join(format!("{name}{}", kind.suffix()));
        let (initrd, nvdimm) = (of_kind("initrd"), of_kind("nvdimm"));
        first.pack(&of_kind("root"), &modules, &initrd)?;
        let guest = Guest { kernel, initrd, nvdimm, size_bytes };
        guest.empty()?;
        Ok(guest)
    }

    /// Inserts an empty NVDIMM.
    pub(super) fn empty(&self) -> Result<(), Failure> {
        let with_path = |error: std::io::Error| format!("{}: {error}", self.nvdimm.display());
        fs::File::create(&self.nvdimm).and_then(|file| file.set_len(self.size_bytes)).map_err(with_path)
    }

    /// Boots the guest.
    pub(super) fn boot(&self, boot: &Boot<'_>) -> Result<Child, Failure> {
        let region = match boot.region {
            Region::Device { is_new: true } => "new",
            Region::Device { is_new: false } => "old",
            Region::Raw => "raw",
            Region::Ext4 { has_dax: true } => "ext4-always",
            Region::Ext4 { has_dax: false } => "ext4-never",
            Region::Failing => "failing",
            Region::WriteBack => "write-back",
        };
        let kind = if boot.region == Region::WriteBack { "virtio-pmem-pci" } else { "nvdimm" };
        let memory = format!(
            "memory-backend-file,id=nvdimm,share=on,mem-path={},size={}",
            self.nvdimm.display(),
            self.size_bytes
        );
        let variant = boot.variant.map(|variant| format!("variant={variant}")).unwrap_or_default();
        let append = format!(
            "console=ttyS0 quiet panic=-1 no_timer_check {} region={region} size={} {variant} run={}",
            boot.append,
            self.size_bytes,
            boot.run.join(",")
        );
        let mut qemu: Command = machine(MEMORY_MIB, boot.processor_count);
        qemu.args(["-object", &memory, "-device", &format!("{kind},memdev=nvdimm")]).args(boot.arguments);
        qemu.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.initrd).args(["-append", &append]);
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        qemu.spawn().map_err(|error| format!("{qemu:?}: {error}"))
    }

    /// Lets the guest run until its program ends, prints each line, and returns the program's objection, if any.
    pub(super) fn attend(&self, boot: &Boot<'_>, each: &mut dyn FnMut(&str)) -> Result<Option<String>, Failure> {
        let mut qemu = self.boot(boot)?;
        let mut ended = Err("the guest printed nothing".to_owned());
        let lines = lines_of(&mut qemu);
        let time = Time::of(&qemu);
        while let Ok(line) = time.next_line(&lines, SILENCE_MAX) {
            println!("  | {line}");
            each(&line);
            if [NOT_LOADED, NOT_MOUNTED].contains(&&*line) {
                ended = Err(line);
                break;
            }
            if line.starts_with("lost") || line.contains("Kernel panic") || line.starts_with("ended") {
                ended = Ok((line != "ended 0").then_some(line));
                break;
            }
            ended = Err(format!("the guest printed nothing more after '{line}'"));
        }
        println!("  | {}", time.describe());
        _ = qemu.kill();
        _ = qemu.wait();
        ended
    }
}
