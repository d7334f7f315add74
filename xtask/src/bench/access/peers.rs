//! What Bailey is compared with: kubectl-who-can, which answers a part of the question, and Python's JSON decoder,
//! which answers none of it and is what merely reading the dump costs elsewhere.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bailey_testkit::{Tool, tools};
use tokio::runtime::Runtime;

use super::server::Server;
use super::size::Size;
use super::tool::Question;

pub const WHO_CAN: &str = "kubectl-who-can";
pub const PYTHON: &str = "python3 json.load";

/// Reads every List and keeps it, as a program that looks at all of them would.
const DECODE: &str = "import json, sys\nlists = [json.load(open(path)) for path in sys.argv[1:]]\n\
                      print(sum(len(l['items']) for l in lists))";

/// Programs to compare with, found or built.
pub struct Peers {
    who_can: PathBuf,
    /// None where Python is not installed.
    python: Option<PathBuf>,
}

impl Peers {
    /// Builds what is missing, which takes a few minutes the first time.
    pub fn ready() -> Result<Self> {
        let who_can = tools::path(Tool::KubectlWhoCan).context("build the peer kubectl-who-can")?;
        let python = std::env::var_os("PATH").and_then(|paths| {
            std::env::split_paths(&paths).map(|folder| folder.join("python3")).find(|path| path.is_file())
        });
        if python.is_none() {
            eprintln!("skipped: python3 is not on PATH, so what decoding costs elsewhere is not measured");
        }
        Ok(Self { who_can, python })
    }

    /// Starts what the peers talk to, and returns their questions about a dump.
    pub fn questions(
        &self,
        dump: &Path,
        folder: &Path,
        size: Size,
        runtime: &Runtime,
    ) -> Result<(Server, Vec<Question>)> {
        let server = Server::start(dump, runtime)?;
        let home = folder.join("home");
        fs::create_dir_all(&home).with_context(|| format!("make `{}`", home.display()))?;
        let kubeconfig = home.join("kubeconfig");
        fs::write(&kubeconfig, server.kubeconfig().to_string()).context("write a kubeconfig")?;
        let who_can = |what: &str, rest: &[&str]| {
            let mut arguments: Vec<OsString> = ["get", "secrets", "-o", "json"].map(OsString::from).to_vec();
            arguments.extend(rest.iter().map(OsString::from));
            arguments.push("--cache-dir".into());
            arguments.push(home.join("cache").into());
            Question {
                tool: WHO_CAN,
                what: what.to_owned(),
                program: self.who_can.clone(),
                arguments,
                environment: vec![("KUBECONFIG", kubeconfig.clone().into()), ("HOME", home.clone().into())],
                answers: &[0],
                once_above: 60.0,
            }
        };
        let mut questions = vec![who_can("get secrets -n kube-system", &["-n", "kube-system"])];
        // It asks the server twice about each namespace, five times a second: 400 s at L, and 27 minutes at 4L.
        if size < Size::FourL {
            questions.push(who_can("get secrets -A", &["-A"]));
        }
        if let Some(python) = &self.python {
            let mut arguments: Vec<OsString> = vec!["-c".into(), DECODE.into()];
            let lists = size.counts().by_kind();
            arguments
                .extend(lists.iter().map(|(plural, _)| dump.join(format!("{plural}.json")).into_os_string()));
            questions.push(Question {
                tool: PYTHON,
                what: "all Lists, no question".to_owned(),
                program: python.clone(),
                arguments,
                environment: Vec::new(),
                answers: &[0],
                once_above: 60.0,
            });
        }
        Ok((server, questions))
    }
}
