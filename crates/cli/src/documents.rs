//! Help, completion and man pages, all from the one definition of the command line.

use std::ffi::OsStr;
use std::path::Path;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::args::Cli;
use crate::output::count;
use crate::{CliError, Exit};

/// The command line under the name that it is called by: as a plugin of kubectl, help says `kubectl bailey`.
pub fn command(called: Option<&OsStr>) -> clap::Command {
    let stem = called.and_then(|path| Path::new(path).file_stem()).and_then(OsStr::to_str);
    let command = Cli::command();
    if stem == Some("kubectl-bailey") { as_plugin(command).bin_name("kubectl bailey") } else { command }
}

/// Puts the plugin's name into the examples of all verbs.
fn as_plugin(command: clap::Command) -> clap::Command {
    let renamed = command.get_after_help().map(|help| help.to_string().replace("bailey ", "kubectl bailey "));
    let command = if let Some(help) = renamed { command.after_help(help) } else { command };
    let names: Vec<_> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, as_plugin))
}

/// Reads the command line; on a wrong one or a request for help, says so and gives how to end.
pub fn parse() -> Result<Cli, Exit> {
    let arguments: Vec<_> = std::env::args_os().collect();
    let mut command = command(arguments.first().map(std::ffi::OsString::as_os_str));
    let matches = command.try_get_matches_from_mut(arguments);
    matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
        // Help that cannot be printed has nowhere else to go.
        let _printed = error.print();
        if error.use_stderr() { Exit::Usage } else { Exit::Clean }
    })
}

/// The completion script of a shell.
pub fn completion(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "bailey", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Writes a man page for each verb, and says how many.
pub fn man(dir: &Path) -> Result<String, CliError> {
    let failed = |source| CliError::File { action: "write", path: dir.to_owned(), source };
    std::fs::create_dir_all(dir).map_err(failed)?;
    let mut command = Cli::command();
    command.build();
    let mut pages = 0;
    write_page(&command, "bailey", dir, &mut pages).map_err(failed)?;
    Ok(format!("wrote {} to {}\n", count(pages, "man page", "man pages"), dir.display()))
}

fn write_page(command: &clap::Command, name: &str, dir: &Path, pages: &mut usize) -> std::io::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name).render(&mut page)?;
    std::fs::write(dir.join(format!("{name}.1")), page)?;
    *pages += 1;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        write_page(sub, &format!("{name}-{}", sub.get_name()), dir, pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn as_a_plugin_help_shows_what_to_type() {
        let mut command = command(Some(OsStr::new("/usr/bin/kubectl-bailey")));
        let error = command.try_get_matches_from_mut(["kubectl-bailey", "plan", "--help"]).unwrap_err();
        let help = error.to_string();
        assert!(help.contains("Usage: kubectl bailey plan"), "{help}");
        assert!(help.contains("  kubectl bailey plan --enforce"), "{help}");
    }

    #[test]
    fn every_verb_has_examples() {
        let command = Cli::command();
        let silent: Vec<_> = command
            .get_subcommands()
            .filter(|sub| sub.get_after_help().is_none())
            .map(|sub| sub.get_name().to_owned())
            .collect();
        assert_eq!(silent, ["version", "operator", "auditor"]);
    }
}
