//! Sets a server's parameters from the command line, which overrides the configuration file.

use std::path::{self, Path};

use clap::ValueEnum;
use server::Parameters;

use crate::failure::Failure;

/// Sets the parameter `name` if there is a `value`.
pub(crate) fn text(parameters: &mut Parameters, name: &str, value: Option<&str>) -> Result<(), Failure> {
    value.map_or(Ok(()), |value| parameters.set(name, value)).map_err(|error| Failure::Error(error.to_string()))
}

/// Like [`text`], for an enumerated value.
pub(crate) fn choice<V: ValueEnum>(parameters: &mut Parameters, name: &str, value: Option<V>) -> Result<(), Failure> {
    let value = value.and_then(|value| value.to_possible_value());
    text(parameters, name, value.as_ref().map(|value| value.get_name()))
}

/// Like [`text`], for a path, which is made absolute: a configuration file with it may be read from any directory.
pub(crate) fn path(parameters: &mut Parameters, name: &str, value: Option<&Path>) -> Result<(), Failure> {
    let Some(value) = value else { return Ok(()) };
    let whole = path::absolute(value).map_err(Failure::at_path(value))?;
    let shown =
        whole.to_str().ok_or_else(|| Failure::at(value.display(), "the path is not UTF-8; give one that is"))?;
    text(parameters, name, Some(shown))
}
