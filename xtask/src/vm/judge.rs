//! Checks images that a cut would have left of a store in an NVDIMM: copies the region to a store on tmpfs and opens
//! it with a program.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, copy};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::life::{Image, Lives};
use crate::failure::Failure;

/// The first bytes of a region.
const MAGIC: &[u8] = b"\x89hikv\r\n\x1a";

/// A program that opens a store and prints `judged` and numbers, or `lost` and the reason.
pub(crate) struct Judge<'a> {
    program: &'a Path,
    /// Arguments between the store's directory and the seed.
    words: &'a [&'a str],
    dir: PathBuf,
    /// Path for images that were rejected.
    kept: PathBuf,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(work: &Path, program: &'a Path, words: &'a [&'a str]) -> Result<Judge<'a>, Failure> {
        let dir = Path::new("/dev/shm").join(format!("hikv-cuts-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(Judge { program, words, dir, kept: work.join("objected") })
    }

    /// Returns the path for new images.
    pub(crate) fn image(&self) -> PathBuf {
        self.dir.join("image")
    }

    /// Returns the first objection to the images of a life.
    pub(crate) fn objection(&self, lives: &Lives) -> Result<Option<String>, Failure> {
        for image in &lives.images {
            let file = self.dir.join(format!("image.{}", image.number));
            let with_path = |error: std::io::Error| format!("{}: {error}", file.display());
            if let Some(why) = self.one(&file, image, lives.seed)? {
                fs::copy(&file, &self.kept).map_err(with_path)?;
                return Ok(Some(format!("at image {}, kept as {}: {why}", image.number, self.kept.display())));
            }
            fs::remove_file(&file).map_err(with_path)?;
        }
        Ok(None)
    }

    fn one(&self, file: &Path, image: &Image, seed: u64) -> Result<Option<String>, Failure> {
        // A store that is still being created promises nothing; the next boot creates it again.
        if image.acknowledged.counts().iter().all(|&count| count == 0) {
            return Ok(None);
        }
        let store = self.dir.join("store");
        if !lay_out(file, &store).map_err(|error| format!("{}: {error}", file.display()))? {
            return Ok(Some("there is no store".to_owned()));
        }
        let mut judge = Command::new(self.program);
        judge.arg(store).args(self.words).arg(seed.to_string());
        judge.args(image.acknowledged.counts().iter().map(u64::to_string)).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut judge = judge.spawn().map_err(|error| error.to_string())?;
        let lines = BufReader::new(judge.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let verdict = lines.into_iter().find(|line| line.starts_with("judged") || line.starts_with("lost"));
        _ = judge.kill();
        _ = judge.wait();
        let verdict = verdict.ok_or("the judge printed no verdict")?;
        Ok(verdict.starts_with("lost").then_some(verdict))
    }
}

impl Drop for Judge<'_> {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.dir);
    }
}

/// Copies the region of an image to a store's directory; returns false if there is no store yet.
fn lay_out(image: &Path, store: &Path) -> std::io::Result<bool> {
    _ = fs::remove_dir_all(store);
    let bytes = fs::read(image)?;
    let Some(start) = bytes.chunks(4096).position(|page| page.starts_with(MAGIC)) else { return Ok(false) };
    fs::create_dir_all(store)?;
    copy(&mut &bytes[start * 4096..], &mut File::create(store.join("store.hikv"))?)?;
    Ok(true)
}
