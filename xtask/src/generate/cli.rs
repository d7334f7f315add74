//! The command line, from the definitions that the binary itself reads.

use clap::{Arg, Command};

use super::markdown::{code, codes, fenced, head, row, sentence, table};

/// The whole page.
pub(super) fn page() -> String {
    let mut command = bailey_cli::command(None);
    command.build();
    let mut text = head("Command line", "`crates/cli/src/args.rs`");
    text.push('\n');
    text.push_str(&sentence(&about(&command)));
    text.push_str(
        " Called as `kubectl-bailey`, the same program is the plugin `kubectl bailey`. \
         Answers go to standard output, everything else to standard error.\n",
    );
    text.push_str(&after(&command));
    text.push_str("\n## Options of every verb\n");
    text.push_str(&options(command.get_arguments().filter(|arg| arg.is_global_set())));
    for verb in visible(&command) {
        section(&mut text, "bailey", verb, 2);
    }
    text
}

fn section(text: &mut String, parent: &str, command: &Command, level: usize) {
    let name = format!("{parent} {}", command.get_name());
    text.push_str(&format!("\n{} {name}\n\n{}\n", "#".repeat(level), sentence(&about(command))));
    let mut own = command.clone();
    let usage = own.render_usage().to_string();
    text.push_str(&fenced("text", usage.trim_start_matches("Usage:").trim()));
    text.push_str(&options(command.get_arguments().filter(|arg| !arg.is_global_set() && !is_builtin(arg))));
    text.push_str(&after(command));
    for sub in visible(command) {
        section(text, &name, sub, level + 1);
    }
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

/// `--help` and `--version` are everywhere and the same.
fn is_builtin(arg: &Arg) -> bool {
    ["help", "version"].contains(&arg.get_id().as_str())
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn after(command: &Command) -> String {
    command.get_after_help().map(|help| fenced("text", &help.to_string())).unwrap_or_default()
}

fn options<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let rows: String =
        arguments.filter(|arg| !arg.is_hide_set()).map(|arg| row(&[&code(&form(arg)), &help(arg)])).collect();
    if rows.is_empty() { rows } else { table(&["option", "meaning"]) + &rows }
}

/// `-n, --namespace NAMESPACE`, or the name of a positional argument.
fn form(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let value = value.unwrap_or_else(|| arg.get_id().as_str().to_uppercase());
    if arg.is_positional() {
        return value;
    }
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names = [short, long].into_iter().flatten().collect::<Vec<_>>().join(", ");
    if arg.get_action().takes_values() { format!("{names} {value}") } else { names }
}

fn help(arg: &Arg) -> String {
    let mut help = sentence(&arg.get_help().map(ToString::to_string).unwrap_or_default());
    let possible: Vec<_> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if arg.get_action().takes_values() && !possible.is_empty() {
        help.push_str(&format!(" One of {}.", codes(possible.iter().map(String::as_str))));
    }
    let defaults: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        help.push_str(&format!(" Default {}.", codes(defaults.iter().map(String::as_str))));
    }
    if let Some(variable) = arg.get_env() {
        help.push_str(&format!(" Environment {}.", code(&variable.to_string_lossy())));
    }
    if arg.is_required_set() {
        help.push_str(" Required.");
    }
    help
}
