//! Tests completions, manual pages and `--version`.

use std::process::{Command, Stdio};

use crate::support::{Ended, Place, program};

fn run(arguments: &[&str]) -> String {
    String::from_utf8(Ended(program().args(arguments).output().unwrap()).succeeded()).unwrap()
}

#[test]
fn shells_take_their_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]);
        for word in ["hikv", "repair", "skip-damaged"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let place = Place::new();
    let script = place.write("hikv.bash", run(&["completions", "bash"]));
    let complete = "source \"$0\"; COMP_WORDS=(hikv du); COMP_CWORD=1; _hikv hikv du hikv; echo \"${COMPREPLY[@]}\"";
    let bash = Command::new("bash").args(["-c", complete]).arg(script).stderr(Stdio::inherit()).output().unwrap();
    assert_eq!(String::from_utf8(bash.stdout).unwrap(), "dump\n");
}

#[test]
fn each_command_has_a_page() {
    let place = Place::new();
    let dir = place.file("man");
    run(&["man", dir.to_str().unwrap()]);
    let page = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert!(page("hikv.1").contains("hikv\\-repair(1)"), "{}", page("hikv.1"));
    assert!(page("hikv-dump.1").contains("skip\\-damaged"), "{}", page("hikv-dump.1"));
    assert!(page("hikv-serve.1").starts_with(".ie"), "{}", page("hikv-serve.1"));
    let taken = place.write("taken", "");
    Ended(program().arg("man").arg(taken).output().unwrap()).failed(2, &["taken"]);
}

#[test]
fn version_lists_format_and_features() {
    let (short, long) = (run(&["-V"]), run(&["--version"]));
    assert_eq!(short.lines().count(), 1, "{short}");
    assert!(long.starts_with(&short[..short.len() - 1]), "{long}");
    for said in ["format     1.", "image expiry batches journal", std::env::consts::ARCH] {
        assert!(long.contains(said), "'{said}' is missing: {long}");
    }
}
