//! Checks the help texts of all commands: they must not contain the habits that the project's house style excludes.

use clap::{Command, CommandFactory};

use crate::Arguments;

/// Words and phrases to replace by the noun or verb that they hide.
const EXCLUDED: [&str; 35] = [
    "tell",
    "tells",
    "told",
    "telling",
    "nobody",
    "somebody",
    "whoever",
    "anybody",
    "the former",
    "the latter",
    "anew",
    "meanwhile",
    "besides",
    "thereby",
    "therewith",
    "mended",
    "at the most",
    "in place of",
    "but for",
    "errand",
    "errands",
    "letter",
    "letters",
    "parcel",
    "parcels",
    "desk",
    "desks",
    "premises",
    "glimpse",
    "glimpses",
    "lend",
    "lends",
    "lending",
    "lent",
    "too",
];

/// Words after 'what' that make a clause of which the noun is missing.
const AFTER_WHAT: [&str; 22] = [
    "is", "was", "are", "were", "has", "had", "it", "they", "a", "an", "the", "comes", "follows", "stands", "lies",
    "goes", "readers", "writers", "others", "can", "cannot", "needs",
];

/// First words of a text that describes no thing and no action.
const QUESTIONS: [&str; 6] = ["what", "how", "where", "which", "whether", "who"];

/// Returns the habits in a text.
fn habits(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |phrase: &str| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        words.windows(phrase.len()).any(|window| window == phrase)
    };
    let mut found: Vec<String> =
        EXCLUDED.iter().filter(|phrase| has(phrase)).map(|&phrase| phrase.to_owned()).collect();
    let clauses = AFTER_WHAT.iter().map(|word| format!("what {word}"));
    found.extend(clauses.filter(|clause| has(clause)));
    found.extend(QUESTIONS.iter().filter(|word| words.first() == Some(word)).map(|word| format!("begins with {word}")));
    found
}

/// Appends all texts of `command` and its subcommands, each with its place.
fn gather(command: &Command, path: &str, into: &mut Vec<(String, String)>) {
    let path = format!("{path} {}", command.get_name());
    let own = [command.get_about(), command.get_long_about(), command.get_before_help(), command.get_after_help()];
    into.extend(own.into_iter().flatten().map(|text| (path.clone(), text.to_string())));
    for argument in command.get_arguments() {
        let place = format!("{path}, {}", argument.get_id());
        let help = [argument.get_help(), argument.get_long_help()];
        into.extend(help.into_iter().flatten().map(|text| (place.clone(), text.to_string())));
        for value in argument.get_possible_values() {
            into.extend(value.get_help().map(|text| (format!("{place}={}", value.get_name()), text.to_string())));
        }
    }
    command.get_subcommands().for_each(|below| gather(below, &path, into));
}

#[test]
fn help_texts_are_plain() {
    let mut command = Arguments::command();
    command.build();
    let mut texts = Vec::new();
    gather(&command, "", &mut texts);
    assert!(texts.len() > 200, "only {} texts were found", texts.len());
    let found: Vec<String> = texts
        .iter()
        .filter_map(|(place, text)| {
            let habits = habits(text);
            (!habits.is_empty()).then(|| format!("{place}: {}: {text}", habits.join(", ")))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn habits_are_found() {
    assert_eq!(
        habits("Which items, too, are told what the caller has"),
        ["told", "too", "what the", "begins with which"]
    );
    assert_eq!(habits("Let the threads write in place of the callers"), ["in place of"]);
    assert!(habits("Print the whatever of teller and desktop").is_empty());
}
