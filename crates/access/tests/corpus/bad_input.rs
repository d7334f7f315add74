//! Input that is damaged, hostile or contradicts itself: it is told with its place, or the answer says that it is
//! incomplete, and everything else is answered nevertheless. Nothing panics.

mod damage;
mod fuzz;
mod meaning;
mod size;

use std::io::Read;

use bailey_access::{Access, Customers, Loader, Snapshot, Subjects, answer::Audit};

/// What came of a file: what was read, and what is said of it.
struct Read1 {
    snapshot: Snapshot,
    /// Gaps as `WHAT: WHY`.
    told: Vec<String>,
}

/// Reads one file called `dump.yaml`.
fn read(reader: impl Read) -> Read1 {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, Some("mc"));
    loader.source("dump.yaml");
    loader.load(reader).unwrap();
    loader.finish();
    let told = snapshot.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.why)).collect();
    Read1 { snapshot, told }
}

/// Closes a snapshot and asks everything that can be asked without a name.
fn audit(snapshot: Snapshot) -> Audit {
    let access = Access::new(snapshot, Customers::default());
    let audit = access.audit(Subjects::All);
    for finding in &audit.findings {
        let _ = access.reach(&finding.subject.parse().unwrap());
    }
    for secret in audit.secrets.iter().take(5) {
        let name = format!("{}:{}/{}", secret.cluster, secret.namespace, secret.name);
        if let Ok(name) = name.parse() {
            access.who_can_read(&name).unwrap();
        }
    }
    audit
}

/// A Secret and whoever reads it, as two documents of YAML.
fn good() -> String {
    use crate::cluster::{binding, role, secret};
    [secret("good/s"), role("good/r", &["get secrets"]), binding("good/r", "Role r", &["user:ann"])]
        .join("\n---\n")
}
