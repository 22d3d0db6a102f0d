//! What the command line gives to a server's parameters, over what a file says.

use std::path::{self, Path};

use clap::ValueEnum;
use server::Parameters;

use crate::failure::Failure;

/// Gives `value` to the parameter `name`, if there is one.
pub(crate) fn text(parameters: &mut Parameters, name: &str, value: Option<&str>) -> Result<(), Failure> {
    value.map_or(Ok(()), |value| parameters.set(name, value)).map_err(|error| Failure::Error(error.to_string()))
}

/// As [`text`], for one of several words.
pub(crate) fn choice<V: ValueEnum>(parameters: &mut Parameters, name: &str, value: Option<V>) -> Result<(), Failure> {
    let value = value.and_then(|value| value.to_possible_value());
    text(parameters, name, value.as_ref().map(|value| value.get_name()))
}

/// As [`text`], for a path, which is then one from the root: a file that says it may be read from anywhere.
pub(crate) fn path(parameters: &mut Parameters, name: &str, value: Option<&Path>) -> Result<(), Failure> {
    let Some(value) = value else { return Ok(()) };
    let whole = path::absolute(value).map_err(Failure::at_path(value))?;
    let shown = whole.to_str().ok_or_else(|| Failure::at(value.display(), "its name is not UTF-8"))?;
    text(parameters, name, Some(shown))
}
