//! Device-DAX: the properties of a `/dev/dax*` character device in sysfs.

use std::fs;
use std::path::Path;

use crate::persistence;

/// A device-DAX character device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DeviceDax {
    /// The device's size.
    pub(crate) len_bytes: u64,
    /// The alignment of mappings.
    pub(crate) align_bytes: u64,
    /// True if its region reports that fenced stores survive a power loss.
    pub(crate) survives_power_loss: bool,
}

impl DeviceDax {
    /// Returns the device with this number, or `None` if sysfs lists no such DAX device.
    pub(crate) fn of_device_number(number: u64) -> Option<DeviceDax> {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        DeviceDax::in_sysfs(&fs::canonicalize(format!("/sys/dev/char/{major}:{minor}")).ok()?)
    }

    /// Returns the device whose directory in sysfs is `directory`, a path without symbolic links.
    fn in_sysfs(directory: &Path) -> Option<DeviceDax> {
        let len_bytes = number_in(&directory.join("size"))?;
        let align_bytes = number_in(&directory.join("align")).unwrap_or(ALIGN_BYTES).max(1);
        Some(DeviceDax {
            len_bytes: len_bytes - len_bytes % align_bytes,
            align_bytes,
            survives_power_loss: persistence::of_directory(directory),
        })
    }
}

/// The kernel's default alignment of a device, for kernels that do not report it.
const ALIGN_BYTES: u64 = 2 << 20;

fn number_in(file: &Path) -> Option<u64> {
    persistence::text_in(file)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Creates the directories that the kernel shows for a namespace in device-DAX mode.
    fn sysfs(domain: Option<&str>, size: &str) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let region = root.path().join("ndbus0/region0");
        let device = region.join("dax0.0/dax/dax0.0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("size"), size).unwrap();
        fs::write(device.join("align"), "2097152\n").unwrap();
        if let Some(domain) = domain {
            fs::write(region.join("persistence_domain"), domain).unwrap();
        }
        (root, device)
    }

    #[test]
    fn size_is_cut_to_the_alignment() {
        let (_root, device) = sysfs(None, "5000000\n");
        let found = DeviceDax::in_sysfs(&device).unwrap();
        assert_eq!((found.len_bytes, found.align_bytes), (4 << 20, 2 << 20));
    }

    #[test]
    fn only_reported_persistence_domains_are_durable() {
        for (domain, survives) in [
            (Some("cpu_cache\n"), true),
            (Some("memory_controller\n"), true),
            (Some("unknown\n"), false),
            (Some("\n"), false),
            (None, false),
        ] {
            let (_root, device) = sysfs(domain, "4194304\n");
            assert_eq!(DeviceDax::in_sysfs(&device).unwrap().survives_power_loss, survives, "{domain:?}");
        }
    }

    #[test]
    fn sizeless_character_device_is_not_dax() {
        let null = fs::metadata("/dev/null").unwrap();
        assert_eq!(DeviceDax::of_device_number(std::os::unix::fs::MetadataExt::rdev(&null)), None);
    }
}
