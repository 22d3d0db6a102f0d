//! What a guest boots: Debian's kernel, a first file system in memory with busybox and the program, and a file system on a disk.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::disk::Image;
use crate::failure::Failure;
use crate::rustc::{answer, cargo, run};

/// What is run here, and the package of Debian that has it.
const TOOLS: [(&str, &str); 10] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("modprobe", "kmod"),
    ("dpkg", "dpkg"),
    ("apt-get", "apt"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("ndctl", "ndctl"),
];
const MODULES: [&str; 7] = ["virtio_pci", "virtio_blk", "ext4", "xfs", "btrfs", "nfit", "nd_pmem"];
/// What the guest runs beside it to make a file system on an NVDIMM, which must be told apart from a plain disk first.
const PROGRAMS: [&str; 3] = ["ndctl", "mkfs.ext4", "mkfs.xfs"];
const APPLETS: [&str; 7] = ["sh", "mount", "insmod", "poweroff", "cat", "mkdir", "mknod"];
/// As much as XFS wants.
pub(super) const DISK_BYTES: u64 = 320 << 20;

/// The first process: everything it needs is on the kernel's command line, behind its own name.
const INIT: &str = r#"#!/bin/sh
mount -t devtmpfs none /dev
mount -t proc none /proc
for module in $(cat /modules/order); do insmod /modules/$module; done
for word in $(cat /proc/cmdline); do
    case $word in fs=*) fs=${word#fs=};; run=*) run=${word#run=};; dax=*) dax=${word#dax=};; esac
done
mkdir /store
case $dax in
    new)
        mount -t sysfs none /sys
        ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem >/dev/null
        if [ $fs = xfs ]; then mkfs.xfs -q -f -m reflink=0 /dev/pmem0; else mkfs.ext4 -q -F -b 4096 /dev/pmem0; fi
        mount -t $fs -o dax /dev/pmem0 /store;;
    old) mount -t $fs -o dax /dev/pmem0 /store;;
    *) mount -t $fs /dev/vda /store;;
esac || echo "lost: the file system cannot be mounted"
IFS=,
/bin/power_cut /store/store $run
poweroff -f
"#;

/// What does not change from boot to boot.
pub(super) struct Guest {
    pub(super) kernel: PathBuf,
    pub(super) initrd: PathBuf,
    work: PathBuf,
}

impl Guest {
    /// Made in `work`, where the kernel is kept for the next time.
    pub(super) fn make(work: &Path) -> Result<Guest, Failure> {
        let missing: Vec<&str> =
            TOOLS.iter().filter(|(tool, _)| place_of(tool).is_none()).map(|&(_, package)| package).collect();
        if !missing.is_empty() {
            return Err(format!(
                "a guest needs more than is installed: apt-get install --no-install-recommends {}",
                missing.join(" ")
            ));
        }
        let (kernel, modules) = kernel(&work.join("kernel"))?;
        run(cargo().args(["build", "--quiet", "--package", "hikv", "--example", "power_cut"]))?;
        let initrd = work.join("initrd.cpio");
        first_files(&work.join("root"), &modules, &initrd)?;
        Ok(Guest { kernel, initrd, work: work.to_owned() })
    }

    /// What an NVDIMM is kept in.
    pub(super) fn nvdimm(&self) -> PathBuf {
        self.work.join("nvdimm")
    }

    /// A disk with an empty file system.
    pub(super) fn formatted(&self, fs: &str) -> Result<Image, Failure> {
        let file = self.work.join("formatted");
        fs::File::create(&file).and_then(|file| file.set_len(DISK_BYTES)).map_err(|error| error.to_string())?;
        let force = if fs == "ext4" { "-F" } else { "-f" };
        answer(Command::new(format!("mkfs.{fs}")).arg("-q").arg(force).arg(&file))?;
        let image = fs::read(&file).map(|bytes| Image::of(&bytes)).map_err(|error| error.to_string());
        _ = fs::remove_file(&file);
        image
    }
}

pub(crate) fn place_of(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    dirs.map(|dir| dir.join(tool)).find(|file| file.is_file())
}

/// Debian's present kernel, and where its modules lie; fetched and unpacked once.
fn kernel(dir: &Path) -> Result<(PathBuf, PathBuf), Failure> {
    if !dir.join("boot").is_dir() {
        fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let depends = answer(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?;
        let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
        let package = package.ok_or("no kernel is known to apt-get: run apt-get update")?;
        run(Command::new("apt-get").args(["download", "-qq", package]).current_dir(dir))?;
        for file in entries(dir)?.iter().filter(|file| file.extension().is_some_and(|end| end == "deb")) {
            run(Command::new("dpkg").arg("-x").arg(file).arg(dir))?;
            _ = fs::remove_file(file);
        }
        let modules = only(&dir.join("lib/modules"), "")?;
        run(Command::new("depmod").arg("-b").arg(dir).arg(modules.file_name().expect("a name")))?;
    }
    Ok((only(&dir.join("boot"), "vmlinuz")?, only(&dir.join("lib/modules"), "")?))
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn only(dir: &Path, beginning: &str) -> Result<PathBuf, Failure> {
    let begins = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning));
    entries(dir)?.into_iter().find(begins).ok_or_else(|| format!("{}: nothing named {beginning}…", dir.display()))
}

fn first_files(root: &Path, modules: &Path, initrd: &Path) -> Result<(), Failure> {
    let told = |error: std::io::Error| format!("{}: {error}", root.display());
    _ = fs::remove_dir_all(root);
    for dir in ["bin", "dev", "etc", "proc", "sys", "modules"] {
        fs::create_dir_all(root.join(dir)).map_err(told)?;
    }
    let busybox = answer(Command::new("sh").args(["-c", "command -v busybox"]))?;
    fs::copy(busybox.trim(), root.join("bin/busybox")).map_err(told)?;
    for applet in APPLETS {
        symlink("busybox", root.join("bin").join(applet)).map_err(told)?;
    }
    fs::write(root.join("init"), INIT).map_err(told)?;
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).map_err(told)?;
    add_modules(root, modules)?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    add_program(root, &this.parent().expect("a directory").join("examples/power_cut"))?;
    for program in PROGRAMS {
        add_program(root, &place_of(program).ok_or("it was there just now")?)?;
    }
    let pack = format!("cd '{}' && find . | cpio -o -H newc --quiet > '{}'", root.display(), initrd.display());
    run(Command::new("sh").args(["-c", &pack]))
}

/// With what each depends on, in the order of loading.
fn add_modules(root: &Path, modules: &Path) -> Result<(), Failure> {
    let (version, base) =
        (modules.file_name().expect("a name"), modules.ancestors().nth(3).expect("below lib/modules"));
    let (mut order, mut seen) = (String::new(), BTreeSet::new());
    for module in MODULES {
        let mut command = Command::new("modprobe");
        command.args(["-C", "/dev/null", "-d"]).arg(base).arg("-S").arg(version).args(["--show-depends", module]);
        for file in answer(&mut command)?.lines().filter_map(|line| line.strip_prefix("insmod ")) {
            let file = Path::new(file.trim());
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            if seen.insert(name.clone()) {
                fs::copy(file, root.join("modules").join(&name))
                    .map_err(|error| format!("{}: {error}", file.display()))?;
                order += &format!("{name}\n");
            }
        }
    }
    fs::write(root.join("modules/order"), order).map_err(|error| error.to_string())
}

/// A program with the libraries that it is linked to.
fn add_program(root: &Path, program: &Path) -> Result<(), Failure> {
    let told = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::copy(program, root.join("bin").join(program.file_name().expect("a name")))
        .map_err(|error| told(program, error))?;
    let linked = answer(Command::new("ldd").arg(program))?;
    for library in linked.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new) {
        let to = root.join(library.strip_prefix("/").expect("it is absolute"));
        fs::create_dir_all(to.parent().expect("a directory")).map_err(|error| told(&to, error))?;
        fs::copy(library, &to).map_err(|error| told(library, error))?;
    }
    Ok(())
}
