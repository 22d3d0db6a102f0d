//! Builds the guest's program for the cache model: from a copy of the source in which each write-back is marked for
//! the model, and the environment selects a broken variant.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::rustc::{cargo, run};
use crate::tree;

/// A file, a text that occurs once in it, and its replacement.
type Change = (&'static str, &'static str, &'static str);

/// The emulator ignores CLWB, so the model uses the load after the marker instead.
const WRITE_BACK: Change = (
    "crates/pmem/src/arch/x86_64.rs",
    r#"asm!("clwb [{}]", in(reg) byte, options(nostack, preserves_flags));"#,
    r#"if crate::medium::is_broken("NothingFlushed") { return; }
            asm!("nop dword ptr [rax + 0x7e571337]", "mov {seen}, byte ptr [{line}]", "clwb [{line}]",
                line = in(reg) byte, seen = out(reg_byte) _, options(nostack, preserves_flags));"#,
);
const BREAKS: Change = (
    "crates/pmem/src/medium/mod.rs",
    "fn breaks(&self, _canary: Canary) -> bool {\n        false\n    }\n}\n",
    r#"fn breaks(&self, canary: Canary) -> bool {
        is_broken(canary.0)
    }
}

/// True if the environment selects this broken variant.
pub(crate) fn is_broken(name: &str) -> bool {
    extern crate std;
    static ASKED: std::sync::OnceLock<Option<std::string::String>> = std::sync::OnceLock::new();
    ASKED.get_or_init(|| std::env::var("VARIANT").ok()).as_deref() == Some(name)
}
"#,
);

/// Builds the program in `work`.
pub(super) fn program(work: &Path) -> Result<PathBuf, Failure> {
    let (root, work) = (tree::root()?, work.join("traced"));
    let tree = work.join("tree");
    tree::copy(&root, &tree, |file, bytes| {
        let change = [WRITE_BACK, BREAKS].into_iter().find(|(changed, ..)| file == Path::new(changed));
        change.map_or(Ok(bytes.clone()), |change| changed(bytes, change))
    })?;
    let target = work.join("target");
    let mut build = cargo();
    build.current_dir(&tree).env("CARGO_TARGET_DIR", &target);
    run(build.args(["build", "--quiet", "--locked", "--package", "hikv-testkit", "--example", "power_cut"]))?;
    Ok(target.join("debug/examples/power_cut"))
}

fn changed(bytes: Vec<u8>, (file, found, put): Change) -> Result<Vec<u8>, Failure> {
    let text = String::from_utf8(bytes).map_err(|error| format!("{file}: {error}"))?;
    match text.matches(found).count() {
        1 => Ok(text.replace(found, put).into_bytes()),
        count => Err(format!("{file}: the text to mark for the model occurs {count} times instead of once")),
    }
}
