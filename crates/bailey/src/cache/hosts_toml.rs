//! `bailey cache hosts-toml`: the files by which containerd finds the cache.
//!
//! INVARIANT: a file without this tool's mark is never changed and never removed.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use bailey_cache::config::url;
use bailey_cli::{Exit, HostsTomlArguments};
use bailey_oci::Registry;
use bailey_oci::hosts_toml::{ContainerdVersion, HostsToml, Subject, is_ours};

use super::{fail, say};

/// Prints, writes or removes the files.
pub fn run(arguments: &HostsTomlArguments) -> Exit {
    let files = match files(arguments) {
        Ok(files) => files,
        Err(message) => {
            eprintln!("error: {message}");
            return Exit::Usage;
        }
    };
    let mut exit = Exit::Clean;
    for file in &files {
        let Some(folder) = &arguments.dir else {
            say(&format!("# {}\n{}", file.subject.path(), file.text()));
            continue;
        };
        let path = folder.join(file.subject.path());
        match settle(&path, (!arguments.remove).then(|| file.text())) {
            Ok(Settled::Done(done)) => say(&format!("{done} {}", path.display())),
            Ok(Settled::Foreign) => {
                eprintln!("error: `{}` was written by somebody else and is left alone", path.display());
                if !arguments.leave_foreign {
                    exit = Exit::Findings;
                }
            }
            Err(error) => {
                eprintln!("error: cannot change `{}`:", path.display());
                return fail(&error, Exit::Usage);
            }
        }
    }
    exit
}

fn files(arguments: &HostsTomlArguments) -> Result<Vec<HostsToml>, String> {
    let cache = url("--cache", &arguments.cache).map_err(|error| error.to_string())?;
    let version = |text: &str| {
        ContainerdVersion::parse(text)
            .ok_or_else(|| format!("`{text}` is no version of containerd; write it as in `2.1.4`"))
    };
    let containerd = arguments.containerd.as_deref().map(version).transpose()?;
    let subjects = if arguments.registries.is_empty() {
        vec![Subject::Default]
    } else {
        let named = |text: &String| {
            text.parse::<Registry>().map(Subject::Registry).map_err(|error| error.to_string())
        };
        arguments.registries.iter().map(named).collect::<Result<_, _>>()?
    };
    let file = |subject| HostsToml {
        subject,
        cache: cache.clone(),
        offline: arguments.offline,
        ca: arguments.ca.clone(),
        client: arguments.client_cert.clone().zip(arguments.client_key.clone()),
        dial_timeout: Duration::from_secs(arguments.dial_timeout),
        containerd,
    };
    Ok(subjects.into_iter().map(file).collect())
}

enum Settled {
    Done(&'static str),
    Foreign,
}

/// Makes a file say this, or be gone.
fn settle(path: &Path, wanted: Option<String>) -> io::Result<Settled> {
    let found = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match (found, wanted) {
        (Some(text), _) if !is_ours(&text) => Ok(Settled::Foreign),
        (Some(text), Some(wanted)) if text == wanted => Ok(Settled::Done("unchanged")),
        (_, Some(wanted)) => {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            // containerd may read at any moment, and ignores a file that it finds half written.
            let half = path.with_extension("toml.new");
            fs::write(&half, wanted)?;
            fs::rename(&half, path)?;
            Ok(Settled::Done("written"))
        }
        (None, None) => Ok(Settled::Done("absent")),
        (Some(_), None) => {
            fs::remove_file(path)?;
            // Its folder goes with it, unless somebody keeps something there.
            if let Some(folder) = path.parent() {
                let _removed = fs::remove_dir(folder);
            }
            Ok(Settled::Done("removed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_files_are_changed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("docker.io/hosts.toml");
        let ours = format!("{}\nserver = \"a\"\n", bailey_oci::hosts_toml::MARK);
        let settled = |wanted: Option<&str>| match settle(&path, wanted.map(str::to_owned)).unwrap() {
            Settled::Done(done) => done,
            Settled::Foreign => "foreign",
        };
        assert_eq!(
            (settled(None), settled(Some(&ours)), settled(Some(&ours))),
            ("absent", "written", "unchanged")
        );
        assert_eq!(settled(None), "removed");
        assert!(!folder.path().join("docker.io").exists());
        fs::create_dir(folder.path().join("docker.io")).unwrap();
        fs::write(&path, "server = \"mine\"\n").unwrap();
        assert_eq!((settled(Some(&ours)), settled(None)), ("foreign", "foreign"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "server = \"mine\"\n");
    }
}
