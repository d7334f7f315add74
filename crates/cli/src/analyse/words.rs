//! The words and tones of the analyser's documents, the same in all formats, and what counts how much.

use bailey_access::Certainty;
use bailey_access::answer::{
    Audit, EVERYONE, PLATFORM, Reach, ReachedSecret, SecretEntry, Severity, UNKNOWN, Verdict,
};

use crate::output::Tone;

/// Severities, the lowest first, by the names of the command line and of JSON.
pub const SEVERITIES: [(&str, Severity); 4] = [
    ("low", Severity::Low),
    ("medium", Severity::Medium),
    ("high", Severity::High),
    ("critical", Severity::Critical),
];

/// Verdicts, the worst first, by the names of the command line and of JSON, and what each means.
pub const VERDICTS: [(&str, Verdict, &str); 5] = [
    ("exposed", Verdict::Exposed, "the platform's, and a customer reaches it"),
    ("shared", Verdict::Shared, "a customer's, and another customer reaches it"),
    ("unowned", Verdict::Unowned, "nobody knows whose it is"),
    ("exactly-one", Verdict::ExactlyOne, "the customer whose it is reaches it, and no other"),
    ("platform-only", Verdict::PlatformOnly, "no customer reaches it"),
];

/// The name of a severity.
pub fn severity(severity: Severity) -> &'static str {
    SEVERITIES.iter().find(|(_, known)| *known == severity).map_or("unknown", |(name, _)| *name)
}

/// The name of a verdict.
pub fn verdict(verdict: Verdict) -> &'static str {
    VERDICTS.iter().find(|(_, known, _)| *known == verdict).map_or("unknown", |(name, ..)| *name)
}

/// The name of a verdict that may be none, because the Secret is not there.
pub fn verdict_or_absent(change: Option<Verdict>) -> &'static str {
    change.map_or("absent", verdict)
}

/// The name of a certainty.
pub fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Proven => "proven",
        Certainty::Assumed => "assumed",
    }
}

/// How a severity is coloured.
pub fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical | Severity::High => Tone::Bad,
        Severity::Medium => Tone::Notice,
        Severity::Low => Tone::Faint,
    }
}

/// How a verdict is coloured.
pub fn verdict_tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Exposed | Verdict::Shared => Tone::Bad,
        Verdict::Unowned => Tone::Notice,
        Verdict::ExactlyOne | Verdict::PlatformOnly => Tone::Good,
    }
}

/// Whether a verdict says that a customer reaches what is not its own.
pub fn is_bad(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Exposed | Verdict::Shared)
}

/// What a way to somebody else's Secret counts as where no finding judges it.
pub fn weight(certainty: Certainty) -> Severity {
    match certainty {
        Certainty::Proven => Severity::High,
        Certainty::Assumed => Severity::Medium,
    }
}

/// Whether it is foreign that somebody of `reader` reaches what is `owner`'s: both are known, and it is not the
/// platform's doing. What everyone reaches is foreign whoever owns it.
pub fn is_foreign(reader: &str, owner: &str) -> bool {
    let known = ![PLATFORM, UNKNOWN, owner].contains(&reader) && owner != UNKNOWN;
    reader == EVERYONE || known
}

/// `NS/NAME`, with the cluster before it where that is not the first one: as findings and questions name Secrets.
pub fn secret_name(secret: &SecretEntry, audit: &Audit) -> String {
    let is_first = audit.clusters.first().is_none_or(|first| first.name == secret.cluster);
    let cluster = if is_first { String::new() } else { format!("{}:", secret.cluster) };
    format!("{cluster}{}/{}", secret.namespace, secret.name)
}

/// Names of what a subject reaches, in their order: `NS/NAME`, with the cluster before it where there are several.
pub fn reached_names(answer: &Reach) -> Vec<String> {
    let mut clusters = answer.secrets.iter().map(|secret| &secret.cluster);
    let first = clusters.next();
    let several = clusters.any(|cluster| Some(cluster) != first);
    let name = |secret: &ReachedSecret| {
        let cluster = if several { format!("{}:", secret.cluster) } else { String::new() };
        format!("{cluster}{}/{}", secret.namespace, secret.name)
    };
    answer.secrets.iter().map(name).collect()
}

/// `a, b, c`, of which at most `most` are named: `a, b, … and 7 more`.
pub fn some(names: &[String], most: usize) -> String {
    let shown: Vec<_> = names.iter().take(most).map(String::as_str).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{}, … and {more} more", shown.join(", ")),
    }
}
