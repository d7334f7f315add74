//! `Link` with `rel="next"`: how registries page tags and referrers (RFC 8288; `spec.md`, "Listing Tags").
//!
//! The target is a URL that an upstream wrote. Only its query is used: it is asked of the same list at the same
//! upstream, so a link leads nowhere else, and clients get one that points back to this cache.

use crate::page::{Page, Query};

/// As much of a header as is read.
const VALUE_LEN_MAX: usize = 8 * 1024;

/// The next page that the values of `Link` headers name, if one does.
pub fn next<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<Page> {
    let target = values.into_iter().find_map(next_target)?;
    let target = target.split_once('#').map_or(target, |(before, _)| before);
    let (_, query) = target.split_once('?')?;
    let mut query = Query::parse(query).ok()?;
    // Both are this cache's to add, for its own clients and its own upstream.
    let _mine = query.take("ns");
    let _filter = query.take("artifactType");
    query.into_page().ok().filter(|page| !page.is_whole())
}

/// The value of `Link` that leads a client to `page` of what it asked for at `path`.
///
/// `kept` are the parameters of its request that have to come again, such as `ns` and `artifactType`.
pub fn to_next<'a>(path: &str, kept: impl IntoIterator<Item = (&'a str, &'a str)>, page: &Page) -> String {
    let kept = crate::page::write_query(kept.into_iter());
    let query: Vec<_> = [kept, page.query()].into_iter().filter(|part| !part.is_empty()).collect();
    // `path` comes from the wire, where these two cannot stand; a caller that builds it itself cannot break out either.
    let path: String = path.chars().filter(|c| !matches!(c, '<' | '>') && !c.is_control()).collect();
    format!("<{path}?{}>; rel=\"next\"", query.join("&"))
}

/// The target of the first link of a list whose relation is `next`.
fn next_target(value: &str) -> Option<&str> {
    let mut rest = value.get(..VALUE_LEN_MAX).unwrap_or(value);
    loop {
        let (_, after) = rest.split_once('<')?;
        let (target, after) = after.split_once('>')?;
        let (parameters, next) = parameters(after);
        if parameters.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("rel") && value.split(' ').any(|rel| rel.eq_ignore_ascii_case("next"))
        }) {
            return Some(target.trim());
        }
        rest = next;
    }
}

/// Reads `;name=value` up to the comma in front of the next link, and returns what is behind it.
fn parameters(text: &str) -> (Vec<(&str, &str)>, &str) {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(after) = rest.strip_prefix(';') {
        let end = after.find(['=', ';', ',']).unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        let (value, after) = match after.strip_prefix('=').map(str::trim_start) {
            Some(after) => match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_at(after.find([';', ',']).unwrap_or(after.len())),
            },
            None => ("", after),
        };
        found.push((name.trim(), value.trim()));
        rest = after.trim_start();
    }
    (found, rest)
}

#[cfg(test)]
mod tests;
