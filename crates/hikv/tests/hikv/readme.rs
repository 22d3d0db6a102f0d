//! The README shows the first program as it is compiled.

#[test]
fn the_readme_shows_the_first_program() {
    let (readme, program) = (include_str!("../../../../README.md"), include_str!("../../examples/first.rs"));
    assert!(
        readme.contains(&format!("```rust\n{program}```")),
        "README.md shows another program than examples/first.rs"
    );
}
