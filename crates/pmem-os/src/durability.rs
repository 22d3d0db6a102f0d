//! The kind of a mapped file, and the failures that a commit to it survives.

use std::io;
use std::os::fd::AsFd;

use pmem::Durability;
use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, fstatfs, statx};
use rustix::io::Errno;

/// The kind of file or device that a region is mapped from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Tmpfs,
    Hugetlbfs,
    Dax,
    DeviceDax,
    Ext4,
    Xfs,
    Btrfs,
    Overlayfs,
    OtherFile,
}

impl Kind {
    /// Returns the kind of the regular file behind `file`.
    pub(crate) fn of_file(file: impl AsFd) -> Result<Kind, Errno> {
        if has_dax_attribute(&file) {
            return Ok(Kind::Dax);
        }
        Ok(match fstatfs(file)?.f_type {
            libc::TMPFS_MAGIC => Kind::Tmpfs,
            libc::HUGETLBFS_MAGIC => Kind::Hugetlbfs,
            libc::EXT4_SUPER_MAGIC => Kind::Ext4,
            libc::XFS_SUPER_MAGIC => Kind::Xfs,
            libc::BTRFS_SUPER_MAGIC => Kind::Btrfs,
            libc::OVERLAYFS_SUPER_MAGIC => Kind::Overlayfs,
            _ => Kind::OtherFile,
        })
    }

    /// Returns true if a journal improves durability: there is a disk behind the file, which stores do not reach
    /// without it.
    pub(crate) const fn has_disk(self) -> bool {
        !matches!(self, Kind::Tmpfs | Kind::Hugetlbfs | Kind::DeviceDax)
    }

    /// Returns the name in statistics and banners.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Tmpfs => "tmpfs",
            Kind::Hugetlbfs => "hugetlbfs",
            Kind::Dax => "dax",
            Kind::DeviceDax => "devdax",
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
            Kind::Overlayfs => "overlayfs",
            Kind::OtherFile => "file",
        }
    }

    /// Returns the reason why a region of this kind, mapped with MAP_SYNC or not, has this durability, as a clause
    /// without a full stop.
    pub(crate) const fn explain(self, durability: Durability, map_sync: bool) -> &'static str {
        match (self, durability) {
            (Kind::Tmpfs, _) => "tmpfs: memory that outlives the process but not the machine",
            (Kind::Hugetlbfs, _) => "hugetlbfs: memory that outlives the process but not the machine",
            (Kind::DeviceDax, Durability::Power) => {
                "device-DAX inside a persistence domain: a flushed and fenced store survives a power failure"
            }
            (Kind::DeviceDax, _) => {
                "device-DAX whose region reports no persistence domain: stores may be lost in a power failure"
            }
            (_, Durability::Power) => {
                "DAX with MAP_SYNC granted, inside a persistence domain: a flushed and fenced store survives a power failure"
            }
            (Kind::Dax, _) if map_sync => {
                "DAX with MAP_SYNC granted, on memory that reports no persistence domain: stores may be lost in a power failure"
            }
            (Kind::Dax, _) => {
                "DAX without MAP_SYNC: a fence does not reach the device, so stores may be lost in a power failure"
            }
            (_, _) => {
                "a file in the page cache: the kernel may write pages back in any order, so a power failure may lose or mix \
                 up stores"
            }
        }
    }
}

/// Returns the kind of storage behind `file`, as in statistics: `ext4`, `tmpfs`, …
///
/// # Errors
/// If the file system does not report it.
pub fn medium_name(file: impl AsFd) -> io::Result<&'static str> {
    Ok(Kind::of_file(file)?.name())
}

fn has_dax_attribute(file: impl AsFd) -> bool {
    statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .is_ok_and(|status| status.stx_attributes.contains(StatxAttributes::DAX))
}
