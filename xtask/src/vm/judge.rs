//! What a cut would have left of a store in an NVDIMM, judged here: the region is laid out as that of a store on tmpfs, and a program
//! opens it as such.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, copy};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::life::{Image, Lives};
use crate::failure::Failure;

/// With what a region begins.
const MAGIC: &[u8] = b"\x89hikv\r\n\x1a";

/// A program that opens a store, and says `judged` and numbers, or `lost` and why.
pub(crate) struct Judge<'a> {
    program: &'a Path,
    /// Told between the store's directory and the seed.
    words: &'a [&'a str],
    dir: PathBuf,
    /// Where an image is kept that was objected to.
    kept: PathBuf,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(work: &Path, program: &'a Path, words: &'a [&'a str]) -> Result<Judge<'a>, Failure> {
        let dir = Path::new("/dev/shm").join(format!("hikv-cuts-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(Judge { program, words, dir, kept: work.join("objected") })
    }

    /// Where images are written.
    pub(crate) fn image(&self) -> PathBuf {
        self.dir.join("image")
    }

    /// What is wrong with the images that a life has left.
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
        // A store that is still being made promises nothing; the next boot begins anew.
        if image.acknowledged.iter().all(|&count| count == 0) {
            return Ok(None);
        }
        let store = self.dir.join("store");
        if !lay_out(file, &store).map_err(|error| format!("{}: {error}", file.display()))? {
            return Ok(Some("there is no store".to_owned()));
        }
        let mut judge = Command::new(self.program);
        judge.arg(store).args(self.words).arg(seed.to_string());
        judge.args(image.acknowledged.iter().map(u64::to_string)).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut judge = judge.spawn().map_err(|error| error.to_string())?;
        let lines = BufReader::new(judge.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let verdict = lines.into_iter().find(|line| line.starts_with("judged") || line.starts_with("lost"));
        _ = judge.kill();
        _ = judge.wait();
        let verdict = verdict.ok_or("the judge says nothing")?;
        Ok(verdict.starts_with("lost").then_some(verdict))
    }
}

impl Drop for Judge<'_> {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.dir);
    }
}

/// Puts the region of an image where a store in a directory has its own; false if there is none yet.
fn lay_out(image: &Path, store: &Path) -> std::io::Result<bool> {
    _ = fs::remove_dir_all(store);
    let bytes = fs::read(image)?;
    let Some(start) = bytes.chunks(4096).position(|page| page.starts_with(MAGIC)) else { return Ok(false) };
    fs::create_dir_all(store)?;
    copy(&mut &bytes[start * 4096..], &mut File::create(store.join("store.hikv"))?)?;
    Ok(true)
}
