//! Texts of lines: environment files, INI files, properties, password files.

use zeroize::Zeroizing;

use super::document::Node;

/// Names and values that belong together: a whole file, or a section of one.
pub(super) type Section = Vec<(Zeroizing<String>, Node)>;

/// Reads a text of which every line is `NAME=VALUE` or `NAME: VALUE`, a `[section]`, a comment or empty.
pub(super) fn sections(text: &str) -> Option<Vec<Section>> {
    let mut sections = vec![Section::new()];
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') && line.ends_with(']') {
            sections.push(Section::new());
            continue;
        }
        let (name, value) = pair(line)?;
        sections
            .last_mut()?
            .push((Zeroizing::new(name.to_owned()), Node::Text(Zeroizing::new(value.to_owned()))));
    }
    sections.retain(|section| !section.is_empty());
    (!sections.is_empty()).then_some(sections)
}

/// Splits `NAME=VALUE`, `NAME: VALUE`, `export NAME=VALUE` or `--name=value`, and takes quotes off the value.
pub(super) fn pair(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start_matches('-');
    let end = line.find(|letter: char| !letter.is_ascii_alphanumeric() && !"_.-".contains(letter))?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let value = rest.strip_prefix('=').or_else(|| rest.strip_prefix(": "))?.trim();
    let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    (name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_'))
        .then(|| (name, unquoted.unwrap_or(value)))
}

/// Reads a text of which every line is a user and the hash of a password, as `htpasswd` writes them.
pub(super) fn password_file(text: &str) -> Option<Vec<(&str, &str)>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let users: Option<Vec<_>> = lines
        .map(|line| {
            let (user, hash) = line.split_once(':')?;
            let hash = hash.split(':').next()?;
            let known =
                ["$2a$", "$2b$", "$2y$", "$apr1$", "$1$", "$5$", "$6$", "$y$", "$argon2", "{SHA}", "{SSHA}"];
            (!user.contains(char::is_whitespace) && known.iter().any(|prefix| hash.starts_with(prefix)))
                .then_some((user, hash))
        })
        .collect();
    users.filter(|users| !users.is_empty())
}
