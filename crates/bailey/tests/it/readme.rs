//! Every command of README.md and of the pages under `docs/` is run, in order, and does what the page shows.
//!
//! A block marked `console` holds commands behind `$ `, and lines that their output must contain in this order;
//! `…` stands for any text. A command ends with code 0 unless it says `# exit code N`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bailey_testkit::fixture::{Fixture, bindings};
use bailey_testkit::{Access, ControlPlane, ManagementCluster, Options, Tool, tools};

use crate::{MARKER, program};

/// What a page shows and this test does not run, and why.
const NOT_EXECUTED: [(&str, &str); 4] = [
    ("make demo", "it is run by itself; it starts a control plane of its own"),
    ("make test", "it runs this test"),
    ("cargo install --locked --path crates/bailey", "the test runs the program that was built for it"),
    ("kubectl -n bailey-system rollout status deployment/bailey-operator", "no node runs the pods here"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_readme_does_what_it_shows() {
    let plane = a_platform().await;
    let mut reader = Reader::new(&plane).await;
    reader.follow("README.md").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tutorial_does_what_it_shows() {
    let plane = a_platform().await;
    let mut reader = Reader::new(&plane).await;
    reader.follow("docs/tutorial/first-customer.md").await;
    reader.follow("docs/how-to/remove-a-tenant.md").await;
    reader.follow("docs/how-to/uninstall.md").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_roll_out_does_what_it_shows() {
    let cluster = ManagementCluster::stock(&program(), Options::default(), MARKER).await.unwrap();
    let mut reader = Reader::new(&cluster.plane).await;
    reader.follow("docs/how-to/roll-out.md").await;
    reader.follow("docs/how-to/hand-a-role-over.md").await;
    reader.follow("docs/how-to/approve-a-refused-rule.md").await;
    // These ask a dump, and no cluster.
    reader.follow("docs/how-to/find-who-reads-a-secret.md").await;
    reader.follow("docs/how-to/check-a-chart.md").await;
}

#[test]
fn every_page_with_commands_is_followed() {
    let followed = include_str!("readme.rs");
    for folder in ["docs", "docs/tutorial", "docs/how-to", "docs/explanation"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let page = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            let shows = page.ends_with(".md") && !commands(&page).is_empty();
            assert!(!shows || followed.contains(&format!("\"{page}\"")), "nobody follows {page}");
        }
    }
    let shown = [commands("README.md"), commands("docs/tutorial/first-customer.md")].concat();
    for (line, _) in NOT_EXECUTED {
        assert!(shown.iter().any(|command| command.line == line), "no page shows `{line}`");
    }
}

/// A management cluster with a platform's namespaces, Secrets and accounts, and with no customer yet.
async fn a_platform() -> ControlPlane {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let names = bindings(MARKER, "x");
    for fixture in [Fixture::Crds, Fixture::ManagementCluster] {
        fixture.apply(plane.admin(), &names).await.unwrap();
    }
    plane
}

/// Somebody who types what a page shows.
struct Reader<'a> {
    plane: &'a ControlPlane,
    path: String,
    operator: Option<tokio::task::JoinHandle<()>>,
}

/// A command of a page, and what the page shows of it.
#[derive(Debug, Clone)]
struct Command {
    line: String,
    code: i32,
    output: Vec<String>,
}

impl<'a> Reader<'a> {
    async fn new(plane: &'a ControlPlane) -> Self {
        let programs =
            tokio::task::spawn_blocking(|| [Tool::Kubectl, Tool::Helm].map(tools::path)).await.unwrap();
        let programs = programs.into_iter().map(Result::unwrap).chain([program()]);
        let folders = programs.map(|program| program.parent().unwrap().to_str().unwrap().to_owned());
        Self { plane, path: folders.collect::<Vec<_>>().join(":"), operator: None }
    }

    async fn follow(&mut self, page: &str) {
        for command in commands(page) {
            if NOT_EXECUTED.iter().any(|(line, _)| *line == command.line) {
                continue;
            }
            self.run(page, &command).await;
            if command.line.starts_with("bailey install") && self.operator.is_none() {
                self.operator = Some(operator(self.plane).await);
            }
        }
    }

    async fn run(&self, page: &str, command: &Command) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let (code, said) = self.type_in(&command.line).await;
            let missing = missing(command, &said);
            if code == command.code && missing.is_none() {
                return;
            }
            // Whoever only looks, looks again: the API server and the operator learn of changes through watches.
            let over = !only_looks(&command.line) || Instant::now() > deadline;
            assert!(!over, "{page}: $ {}\nends with {code}, lacks {missing:?}:\n{said}", command.line);
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    async fn type_in(&self, line: &str) -> (i32, String) {
        let root = root();
        let script = format!(
            "set -euo pipefail; export PATH='{}':\"$PATH\"; cd '{}'\n{line}",
            self.path,
            root.display()
        );
        let bash = Path::new("/bin/bash");
        let output = self.plane.admin().run_program(bash, &["-c", &script], None).await.unwrap();
        (output.code, format!("{}{}", output.stdout, output.stderr))
    }
}

/// The first shown line that the output lacks, or has in another order.
fn missing<'c>(command: &'c Command, said: &str) -> Option<&'c String> {
    let mut lines = said.lines();
    command.output.iter().find(|shown| !lines.any(|line| matches(shown, line)))
}

fn only_looks(line: &str) -> bool {
    let changes = ["requests approve", "requests revoke"].iter().any(|verb| line.contains(verb));
    let looks = ["kubectl get ", "kubectl auth ", "bailey plan", "bailey requests", "bailey verify"];
    line.contains("--dry-run") || (!changes && looks.iter().any(|verb| line.starts_with(verb)))
}

/// The operator, as the pod would run it: with its own account.
async fn operator(plane: &ControlPlane) -> tokio::task::JoinHandle<()> {
    let account: Access = plane.service_account("bailey-system", "bailey-operator").await.unwrap();
    tokio::spawn(async move {
        let arguments = ["operator", "--admin", "127.0.0.1:0"];
        let ended = account.run_program(&program(), &arguments, None).await;
        // What is typed after this shows what is missing; this shows why.
        eprintln!("the operator has ended: {ended:?}");
    })
}

fn commands(page: &str) -> Vec<Command> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let mut commands: Vec<Command> = Vec::new();
    let (mut inside, mut goes_on) = (false, false);
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && goes_on {
            let command = commands.last_mut().unwrap();
            command.line = format!("{}\n{line}", command.line);
            goes_on = line.ends_with('\\');
        } else if let Some(typed) = line.strip_prefix("$ ").filter(|_| inside) {
            let (typed, code) = typed.split_once("# exit code ").unwrap_or((typed, "0"));
            let code = code.split([' ', ':']).next().unwrap().parse().unwrap();
            commands.push(Command { line: typed.trim().to_owned(), code, output: Vec::new() });
            goes_on = line.ends_with('\\');
        } else if inside && !line.trim().is_empty() {
            commands.last_mut().expect("a block begins with a command").output.push(line.to_owned());
        }
    }
    commands
}

/// Whether a line is as shown, in which `…` stands for any text and runs of spaces count as one.
fn matches(shown: &str, line: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, line) = (words(shown), words(line));
    let mut parts = shown.split('…').map(str::trim);
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap()) else { return false };
    let mut last = "";
    for part in parts {
        let Some(position) = rest.find(part) else { return false };
        rest = &rest[position + part.len()..];
        last = part;
    }
    rest.is_empty() || (shown.ends_with('…') && last.is_empty())
}

#[test]
fn a_page_is_read_as_people_read_it() {
    assert!(
        matches("a  b", "a b ")
            && matches("a … c", "a    b  c")
            && matches("a …", "a b")
            && matches("…", "x")
    );
    assert!(!matches("a", "a b") && !matches("a … d", "a b c") && !matches("b", "a b"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
