//! Images: their directories, and their packing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use hikv::EngineKind;
use tempfile::TempDir;

/// A value's length and CRC-32C.
pub(crate) type Summary = (usize, u32);
/// The items that an image contains, by key.
pub(crate) type Items = BTreeMap<Vec<u8>, Summary>;

/// A store of some format version.
pub(crate) struct Image {
    pub(crate) version: String,
    pub(crate) region: Vec<u8>,
    pub(crate) items: Items,
}

pub(crate) const REGION_NAME: &str = "store.hikv";

/// Returns the directory of all images.
pub(crate) fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hikv/golden")
}

/// Returns the name of an engine's images in this program's format version. Those of HiKV have no engine name.
pub(crate) fn present_version(engine: EngineKind) -> String {
    let version = format!("v{}.{}", heap::FORMAT_MAJOR, heap::FORMAT_MINOR);
    if engine == EngineKind::HiKv { version } else { format!("{engine}-{version}") }
}

/// Returns all images; there is at least one.
pub(crate) fn images() -> Vec<Image> {
    let entries = fs::read_dir(home()).unwrap().map(|entry| entry.unwrap().path());
    let images: Vec<Image> = entries.filter(|path| path.is_dir()).map(|path| load(&path)).collect();
    assert!(!images.is_empty(), "there are no images");
    images
}

fn load(dir: &Path) -> Image {
    Image {
        version: dir.file_name().unwrap().to_string_lossy().into_owned(),
        region: unpacked(&dir.join("store.hikv.gz")),
        items: parse_items(&dir.join("items.tsv.gz")),
    }
}

/// Returns the items of a packed list.
pub(crate) fn parse_items(list: &Path) -> Items {
    String::from_utf8(unpacked(list)).unwrap().lines().map(parse_line).collect()
}

/// Writes an image into a new directory.
pub(crate) fn save(dir: &Path, region: &[u8], items: &Items) {
    fs::create_dir(dir).unwrap_or_else(|error| panic!("an image is never replaced: {}: {error}", dir.display()));
    fs::write(dir.join("store.hikv.gz"), packed(region)).unwrap();
    fs::write(dir.join("items.tsv.gz"), packed(text_of(items).as_bytes())).unwrap();
}

/// Returns the list of items as text.
pub(crate) fn text_of(items: &Items) -> String {
    items.iter().map(line).collect()
}

fn line((key, (len, checksum)): (&Vec<u8>, &Summary)) -> String {
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digits}\t{len}\t{checksum:08x}\n")
}

fn parse_line(line: &str) -> (Vec<u8>, Summary) {
    let [digits, len, checksum] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("the line {line}") };
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    let key = (0..digits.len()).step_by(2).map(byte).collect();
    (key, (len.parse().unwrap(), u32::from_str_radix(checksum, 16).unwrap()))
}

/// Returns the summary of a value in the list of items.
pub(crate) fn summary(value: &[u8]) -> Summary {
    (value.len(), pmem::crc32c(0, value))
}

/// Creates a store with this region.
pub(crate) fn unpack(region: &[u8]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(REGION_NAME), region).unwrap();
    fs::write(dir.path().join("lock"), "").unwrap();
    dir
}

/// Returns the region of the store in a directory.
pub(crate) fn region_of(dir: &Path) -> Vec<u8> {
    fs::read(dir.join(REGION_NAME)).unwrap()
}

pub(crate) fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn unpacked(path: &Path) -> Vec<u8> {
    let file = fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}
