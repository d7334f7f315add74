use clap::Parser as _;

use super::*;
use crate::args::{Cli, Command, Verb};

fn audit(arguments: &[&str]) -> Result<AuditArguments, String> {
    let cli = Cli::try_parse_from(["bailey", "audit"].iter().chain(arguments)).map_err(|e| e.to_string())?;
    match cli.command {
        Command::Verb(Verb::Audit(arguments)) => Ok(arguments),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_dump_may_name_its_cluster() {
    let parse = |text: &str| text.parse::<DumpArgument>().map(|dump| (dump.name, dump.path));
    let path = PathBuf::from;
    assert_eq!(parse("dump/"), Ok((None, path("dump/"))));
    assert_eq!(parse("wc1=dump/"), Ok((Some("wc1".to_owned()), path("dump/"))));
    assert_eq!(parse("out/a=b.json"), Ok((None, path("out/a=b.json"))), "a name has no slash");
    assert!(parse("a:b=dump").is_err(), "`:` stands between a cluster and a subject");
    assert!(parse("").is_err());
}

#[test]
fn a_file_whose_name_looks_like_a_named_dump_is_read_as_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a=b.json");
    std::fs::write(&file, "").unwrap();
    let dump: DumpArgument = file.to_str().unwrap().parse().unwrap();
    assert_eq!((dump.name, dump.path), (None, file));
}

#[test]
fn filters_repeat_and_high_is_what_fails() {
    let arguments =
        audit(&["--verdict", "shared", "--verdict", "exposed", "-n", "a", "--severity", "medium"]).unwrap();
    assert_eq!(arguments.fail.fail_on, Severity::High);
    assert_eq!(arguments.subjects, Subjects::None);
    let filter = arguments.filter.filter();
    assert_eq!(filter.verdicts, [Verdict::Shared, Verdict::Exposed]);
    assert_eq!((filter.severity, filter.namespaces), (Some(Severity::Medium), vec!["a".to_owned()]));
    assert!(audit(&["--verdict", "fine"]).unwrap_err().contains("exactly-one"));
}

#[test]
fn what_says_what_belongs_to_whom_is_one_thing() {
    assert!(audit(&["--tenants", "t.yaml", "--preset", "flux"]).is_err());
    let presets: Vec<_> = bailey_access::presets().iter().map(|preset| preset.name.as_str()).collect();
    for preset in &presets {
        assert!(audit(&["--preset", preset]).is_ok(), "{preset}");
    }
    assert!(audit(&["--preset", "other"]).unwrap_err().contains(presets[0]));
}

#[test]
fn subjects_and_secrets_are_refused_where_they_stand() {
    let parse = |arguments: &[&str]| Cli::try_parse_from([&["bailey"], arguments].concat()).map(drop);
    assert!(parse(&["why", "sa:a/b", "c/d"]).is_ok());
    assert!(parse(&["why", "wc1:user:jane", "wc1:c/d"]).is_ok());
    let error = parse(&["why", "jane", "c/d"]).unwrap_err().to_string();
    assert!(error.contains("write sa:NAMESPACE/NAME, user:NAME"), "{error}");
    let error = parse(&["who-can-read", "db"]).unwrap_err().to_string();
    assert!(error.contains("write NAMESPACE/NAME"), "{error}");
    assert!(parse(&["what-if"]).is_err(), "something must change");
}
