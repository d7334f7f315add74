//! The answers about one Secret or one subject, for people.

use bailey_access::Certainty;
use bailey_access::answer::{PLATFORM, Reach, Reached, ReachedSecret, Reader, UNKNOWN, WhoCanRead, Why};

use super::text::{Page, evidence};
use crate::analyse::words::{certainty, is_foreign, reached_names, verdict, verdict_tone};
use crate::output::{Tone, count};

/// Who reads a Secret: by customer, those first who should not.
pub fn who_can_read(answer: &WhoCanRead, page: Page<'_>) -> String {
    let secret = &answer.secret;
    let mut text = page.heading(&format!("Secret {}/{}", secret.namespace, secret.name));
    text.push_str(&page.labelled("cluster", &secret.cluster));
    text.push_str(&page.labelled("type", &secret.kind));
    text.push_str(&page.labelled("of", &secret.customer));
    let assumed = if secret.certainty == Certainty::Assumed { ", assumed" } else { "" };
    let shown = page.screen.paint(verdict_tone(secret.verdict), verdict(secret.verdict));
    text.push_str(&format!("  {:<10}{shown}{assumed}\n", "verdict"));
    if !answer.exists {
        text.push_str(&page.labelled("note", "there is no such Secret; the answer is for one of that name"));
    }
    text.push('\n');
    text.push_str(&page.gaps(&answer.gaps));
    let groups = by_customer(&answer.subjects);
    let (foreign, own): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(customer, _)| is_foreign(customer, &secret.customer));
    for (is_foreign, (customer, readers)) in
        foreign.into_iter().map(|group| (true, group)).chain(own.into_iter().map(|group| (false, group)))
    {
        text.push_str(&readers_of(customer, &readers, is_foreign, page));
    }
    if answer.subjects.is_empty() {
        text.push_str("Nobody reads it.\n");
    } else {
        let all = count(answer.subjects.len(), "subject", "subjects");
        let foreign = answer.subjects.iter().filter(|r| is_foreign(&r.customer, &secret.customer)).count();
        let reads = if answer.subjects.len() == 1 { "reads" } else { "read" };
        let secret = format!("{}/{}", secret.namespace, secret.name);
        let closing =
            format!("{all} {reads} it, {foreign} foreign. More on one: bailey why SUBJECT {secret}");
        text.push_str(&page.screen.wrap(0, &closing));
    }
    text
}

/// Readers by customer, in the order in which customers first come.
fn by_customer(readers: &[Reader]) -> Vec<(&str, Vec<&Reader>)> {
    let mut groups: Vec<(&str, Vec<&Reader>)> = Vec::new();
    for reader in readers {
        match groups.iter_mut().find(|(customer, _)| *customer == reader.customer) {
            Some((_, group)) => group.push(reader),
            None => groups.push((&reader.customer, vec![reader])),
        }
    }
    groups
}

/// The readers of one customer: foreign ones with their way, others in a line each unless all is asked for.
fn readers_of(customer: &str, readers: &[&Reader], foreign: bool, page: Page<'_>) -> String {
    let kind = match (foreign, customer) {
        (true, _) => page.screen.paint(Tone::Bad, "foreign"),
        (_, UNKNOWN) => page.screen.paint(Tone::Notice, "nobody knows whose"),
        _ => page.screen.paint(Tone::Good, "expected"),
    };
    let name = page.screen.paint(Tone::Strong, customer);
    let mut text = format!("{name}, {kind}: {}\n", count(readers.len(), "subject", "subjects"));
    if foreign || page.wide {
        for reader in readers.iter().take(page.most()) {
            text.push_str(&page.chain(2, &reader.path));
        }
    } else {
        let row = |reader: &&Reader| {
            let last = reader.path.last();
            vec![
                (format!("  {}", reader.subject), None),
                (certainty(reader.certainty).to_owned(), None),
                (last.map(|step| step.edge.clone()).unwrap_or_default(), None),
                (reader.path.first().map(evidence).unwrap_or_default(), None),
            ]
        };
        let rows = readers.iter().take(page.most()).map(row).collect();
        text.push_str(&page.screen.table(&["  SUBJECT", "CERTAINTY", "EDGE", "BY"], rows));
    }
    text.push_str(&page.more(2, readers.len()));
    text + "\n"
}

/// What a subject reaches: foreign Secrets with the way first, then the rest by namespace.
pub fn reach(answer: &Reach, page: Page<'_>) -> String {
    let mut text = page.heading(&format!("{} ({})", answer.subject, answer.customer));
    if answer.full_control {
        let tone = if answer.customer == PLATFORM { Tone::Notice } else { Tone::Bad };
        text.push_str(&format!("  {}\n", page.screen.paint(tone, "has full control of a cluster")));
    }
    text.push('\n');
    text.push_str(&page.gaps(&answer.gaps));
    text.push_str(&reached("Acts as", &answer.identities, page));
    text.push_str(&reached("Powers", &answer.powers, page));
    let named = answer.secrets.iter().zip(reached_names(answer));
    let (foreign, own): (Vec<_>, Vec<_>) = named.partition(|(secret, _)| secret.foreign);
    if !foreign.is_empty() {
        let title = format!("Secrets that are not its own ({})", foreign.len());
        let tone = if answer.customer == PLATFORM { Tone::Strong } else { Tone::Bad };
        text.push_str(&(page.screen.paint(tone, &title) + "\n"));
        for (secret, name) in foreign.iter().take(page.most()) {
            let assumed = if secret.certainty == Certainty::Assumed { ", assumed" } else { "" };
            text.push_str(&page.screen.wrap(2, &format!("{name} ({}{assumed})", secret.customer)));
            text.push_str(&page.chain(4, &secret.path));
        }
        text.push_str(&(page.more(2, foreign.len()) + "\n"));
    }
    if !own.is_empty() {
        text.push_str(&page.heading(&format!("Secrets that are its own ({})", own.len())));
        let row = |(secret, name): &(&ReachedSecret, String)| {
            vec![
                (format!("  {name}"), None),
                (secret.customer.clone(), None),
                (certainty(secret.certainty).to_owned(), None),
                (secret.edge.clone(), None),
            ]
        };
        let rows = own.iter().take(page.most()).map(row).collect();
        text.push_str(&page.screen.table(&["  SECRET", "OF", "CERTAINTY", "EDGE"], rows));
        text.push_str(&(page.more(2, own.len()) + "\n"));
    }
    let secrets = count(answer.secrets.len(), "Secret", "Secrets");
    text.push_str(&format!("{secrets} reached, {} not its own.\n", foreign.len()));
    text
}

fn reached(title: &str, entries: &[Reached], page: Page<'_>) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut text = page.heading(&format!("{title} ({})", entries.len()));
    for entry in entries.iter().take(page.most()) {
        let assumed = if entry.certainty == Certainty::Assumed { ", assumed" } else { "" };
        text.push_str(&page.screen.wrap(2, &format!("{} ({}{assumed})", entry.what, entry.customer)));
        if page.wide {
            text.push_str(&page.chain(4, &entry.path));
        } else if let Some(step) = entry.path.last() {
            text.push_str(
                &page
                    .screen
                    .paint(Tone::Faint, &page.screen.wrap(4, &format!("{}: {}", step.edge, evidence(step)))),
            );
        }
    }
    text + &page.more(2, entries.len()) + "\n"
}

/// The ways from a subject to a Secret.
pub fn why(answer: &Why, page: Page<'_>) -> String {
    let mut text = page.heading(&format!("{} ({}) to {}", answer.subject, answer.customer, answer.secret));
    text.push('\n');
    text.push_str(&page.gaps(&answer.gaps));
    for (number, path) in answer.paths.iter().enumerate() {
        let title = match answer.paths.len() {
            1 => format!("The way, {}", certainty(path.certainty)),
            ways => format!("Way {} of {ways}, {}", number + 1, certainty(path.certainty)),
        };
        let tone = if path.certainty == Certainty::Proven { Tone::Bad } else { Tone::Notice };
        text.push_str(&(page.screen.paint(tone, &title) + "\n"));
        text.push_str(&(page.chain(2, &path.steps) + "\n"));
    }
    text.push_str(match (answer.reached, answer.complete) {
        (true, _) => "It is reached. To close it, cut every way; look for more with --alternates N.\n",
        (false, true) => "It is not reached.\n",
        (false, false) => "No way was found, but not everything could be read.\n",
    });
    text
}
