//! The argument syntax of commands, parsed from manual-style lines into the structure of `COMMAND DOCS`.
//!
//! ```text
//! <name> <name:type>      a value, a string unless its type is given
//! TOKEN                   a literal word
//! TOKEN <name>            a word followed by a value, or by anything else
//! "TOKEN":name            a literal word that has a name of its own
//! name(…|…)               one of several
//! name{… …}               several together
//! […]                     optional
//! …...  …...*             repeatable; with a star, the word is repeated each time
//! ```

use crate::command::Command;

/// The types of values other than `string`.
const TYPES: [&str; 5] = ["key", "integer", "double", "pattern", "unix-time"];

/// An argument, a group of arguments, or a choice between them.
#[derive(Debug, PartialEq, Eq)]
pub struct Argument {
    /// As in the documentation.
    pub name: String,
    /// The type, as in `COMMAND DOCS`.
    pub kind: &'static str,
    /// The literal word before it.
    pub token: Option<String>,
    /// As in `COMMAND DOCS`.
    pub flags: Vec<&'static str>,
    /// The alternatives, or the parts of a group.
    pub parts: Vec<Argument>,
}

impl Command {
    /// Returns the arguments, without the command's name.
    pub fn arguments(&self) -> Vec<Argument> {
        Line { rest: self.syntax }.sequence()
    }
}

/// The unparsed part of a line. A test checks that all lines are well-formed.
struct Line<'a> {
    rest: &'a str,
}

impl<'a> Line<'a> {
    /// Parses to the end of the line or of the enclosing group.
    fn sequence(&mut self) -> Vec<Argument> {
        let mut arguments = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with([']', '}', ')', '|']) {
            arguments.push(self.argument());
            self.rest = self.rest.trim_start();
        }
        arguments
    }

    fn argument(&mut self) -> Argument {
        if self.take("[") {
            let mut argument = self.argument();
            self.take("]");
            argument.flags.insert(0, "optional");
            return argument;
        }
        let mut argument = if self.take("<") {
            self.value()
        } else if self.take("\"") {
            self.named_token()
        } else {
            self.word()
        };
        if self.take("...") {
            argument.flags.push("multiple");
        }
        if self.take("*") {
            argument.flags.push("multiple_token");
        }
        argument
    }

    fn value(&mut self) -> Argument {
        let (text, rest) = self.rest.split_once('>').unwrap_or((self.rest, ""));
        self.rest = rest;
        let typed = text.rsplit_once(':').and_then(|(name, kind)| Some((name, *TYPES.iter().find(|it| **it == kind)?)));
        let (name, kind) = typed.unwrap_or((text, "string"));
        Argument { name: name.into(), kind, token: None, flags: Vec::new(), parts: Vec::new() }
    }

    /// Parses a literal word behind its first quotation mark, and its name.
    fn named_token(&mut self) -> Argument {
        let (token, rest) = self.rest.split_once("\":").unwrap_or((self.rest, ""));
        self.rest = rest;
        let named = self.word();
        Argument { name: named.name, token: Some(token.into()), ..named }
    }

    /// Parses a literal word with its value, or the name of a group.
    fn word(&mut self) -> Argument {
        let end = self.rest.find(|message: char| !message.is_ascii_alphanumeric() && !matches!(message, '-' | '_'));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        let enclosed = |kind, parts| Argument { name: word.into(), kind, token: None, flags: Vec::new(), parts };
        if self.take("(") {
            return enclosed("oneof", self.choices());
        }
        if self.take("{") {
            let parts = self.sequence();
            self.take("}");
            return enclosed("block", parts);
        }
        if self.take(" ") {
            return Argument { token: Some(word.into()), ..self.argument() };
        }
        Argument { name: word.to_lowercase(), token: Some(word.into()), ..enclosed("pure-token", Vec::new()) }
    }

    fn choices(&mut self) -> Vec<Argument> {
        let mut choices = vec![self.argument()];
        while self.take("|") {
            choices.push(self.argument());
        }
        self.take(")");
        choices
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats an argument as in its line.
    fn written(argument: &Argument) -> String {
        let all = |between| argument.parts.iter().map(written).collect::<Vec<_>>().join(between);
        let Argument { name, kind, .. } = argument;
        let is_named_token = |token: &String| *kind == "pure-token" && token.to_lowercase() != *name;
        if let Some(token) = argument.token.as_ref().filter(|token| is_named_token(token)) {
            let whole = format!("\"{token}\":{name}");
            return if argument.flags.contains(&"optional") { format!("[{whole}]") } else { whole };
        }
        let text = match *kind {
            "pure-token" => String::new(),
            "oneof" => format!("{name}({})", all("|")),
            "block" => format!("{name}{{{}}}", all(" ")),
            "string" => format!("<{name}>"),
            kind => format!("<{name}:{kind}>"),
        };
        let token = argument.token.clone().unwrap_or_default();
        let has = |flag| argument.flags.contains(&flag);
        let marks = [(has("multiple"), "..."), (has("multiple_token"), "*")];
        let marks: String = marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| *mark).collect();
        let whole = format!("{token} {text}").trim().to_owned() + &marks;
        if has("optional") { format!("[{whole}]") } else { whole }
    }

    /// Returns the minimum number of words in a request.
    fn words_min(argument: &Argument) -> usize {
        if argument.flags.contains(&"optional") {
            return 0;
        }
        let parts = argument.parts.iter().map(words_min);
        usize::from(argument.token.is_some())
            + match argument.kind {
                "pure-token" => 0,
                "oneof" => parts.min().unwrap_or(0).max(1),
                "block" => parts.sum(),
                _ => 1,
            }
    }

    #[test]
    fn arguments_round_trip() {
        for command in crate::entries().iter().map(|entry| entry.command) {
            let arguments = command.arguments();
            assert_eq!(arguments.iter().map(written).collect::<Vec<_>>().join(" "), command.syntax, "{}", command.name);
        }
    }

    #[test]
    fn argument_counts_match_the_table() {
        for entry in crate::entries() {
            let command = entry.command;
            let name_words = 1 + usize::from(command.name.contains('|'));
            let words = name_words + command.arguments().iter().map(words_min).sum::<usize>();
            let takes_subcommands = !command.subcommands.is_empty();
            assert!(takes_subcommands || command.accepts(words), "{} in {words} words", command.name);
            let fewer = words > name_words && command.accepts(words - 1);
            assert!(!fewer, "{} in fewer than {words} words", command.name);
        }
    }
}
