//! What a command takes, read from a line as in manuals, in the form in which `COMMAND DOCS` tells it.
//!
//! ```text
//! <name> <name:type>      a value, a string unless its type is said
//! TOKEN                   a word as it stands
//! TOKEN <name>            a value, or what follows, behind a word
//! name(…|…)               one of several
//! name{… …}               several together
//! […]                     what may be left out
//! …...  …...*             what may come more than once, with its word each time if there is a star
//! ```

use super::syntax;

/// The types of values that are told beside `string`.
const TYPES: [&str; 5] = ["key", "integer", "double", "pattern", "unix-time"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    /// The word before it.
    pub(crate) token: Option<String>,
    pub(crate) flags: Vec<&'static str>,
    /// What there is to choose from, or what comes together.
    pub(crate) parts: Vec<Argument>,
}

/// What the command of this name takes after its name.
pub(crate) fn of(command: &str) -> Vec<Argument> {
    let row = syntax::ROWS.binary_search_by(|(name, _)| (*name).cmp(command));
    row.map_or(Vec::new(), |row| Line { rest: syntax::ROWS[row].1 }.sequence())
}

/// What is left of a line. That lines are well-formed is tested for all there are.
struct Line<'a> {
    rest: &'a str,
}

impl<'a> Line<'a> {
    /// What stands up to the end of the line, or of what is enclosed.
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
        let mut argument = if self.take("<") { self.value() } else { self.word() };
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

    /// A word as it stands, with what follows it, or the name of what is enclosed.
    fn word(&mut self) -> Argument {
        let end = self.rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_'));
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
    use crate::table;

    /// An argument as the line has it.
    fn written(argument: &Argument) -> String {
        let all = |between| argument.parts.iter().map(written).collect::<Vec<_>>().join(between);
        let Argument { name, kind, .. } = argument;
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

    /// The fewest words that a request has for it.
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
        assert!(syntax::ROWS.is_sorted());
        for (command, line) in syntax::ROWS {
            let arguments = of(command);
            assert_eq!(arguments.iter().map(written).collect::<Vec<_>>().join(" "), *line, "{command}");
        }
    }

    #[test]
    fn commands_take_as_many_as_their_rows_say() {
        for entry in table::entries() {
            let command = entry.command;
            let name_words = 1 + usize::from(command.name.contains('|'));
            let words = name_words + of(command.name).iter().map(words_min).sum::<usize>();
            let takes_subcommands = !command.subcommands.is_empty();
            assert!(takes_subcommands || command.takes(words), "{} in {words} words", command.name);
            let fewer = words > name_words && command.takes(words - 1);
            assert!(!fewer, "{} in fewer than {words} words", command.name);
        }
    }
}
