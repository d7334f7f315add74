use std::collections::BTreeSet;

use super::*;

#[test]
fn every_name_in_the_files_stands_for_something_in_them() {
    let all = load().unwrap();
    let accounts: BTreeSet<&str> = all.accounts.iter().map(String::as_str).collect();
    assert_eq!(accounts.len(), all.accounts.len(), "an account is written twice");
    let roles: BTreeSet<&str> = all.cluster_roles.iter().map(|role| role.name.as_str()).collect();
    assert_eq!(roles.len(), all.cluster_roles.len(), "a ClusterRole is written twice");
    for binding in &all.bindings {
        assert!(roles.contains(binding.role.as_str()), "no ClusterRole `{}`", binding.role);
    }
    let namespaces = all
        .roles
        .iter()
        .map(|role| role.namespace.as_str())
        .chain(all.secrets.iter().map(|secret| secret.namespace.as_str()))
        .chain(all.accounts.iter().filter_map(|account| Some(account.split_once('/')?.0)));
    for namespace in namespaces {
        assert!(all.namespaces.contains_key(namespace), "no namespace `{namespace}`");
    }
    // Real dumps name the one account that its controller makes later.
    let late = "sa:kube-system/bootstrap-signer";
    let subjects = all.bindings.iter().flat_map(|b| &b.to).chain(all.roles.iter().flat_map(|r| &r.to));
    for account in subjects.filter(|subject| *subject != late).filter_map(|s| s.strip_prefix("sa:")) {
        assert!(accounts.contains(account), "no account `{account}`");
    }
}

#[test]
fn planted_answers_name_secrets_that_exist() {
    let all = load().unwrap();
    assert_eq!(all.planted.len(), 25);
    let secrets: BTreeSet<String> =
        all.secrets.iter().map(|secret| format!("{}/{}", secret.namespace, secret.name)).collect();
    for planted in &all.planted {
        for name in planted.reads.iter().chain(&planted.does_not_read) {
            let exists = match name.strip_suffix('*') {
                Some(namespace) => secrets.iter().any(|secret| secret.starts_with(namespace)),
                None => secrets.contains(name),
            };
            assert!(exists, "{}: no Secret `{name}`", planted.name);
        }
        assert!(planted.reads.iter().all(|name| !planted.does_not_read.contains(name)), "{}", planted.name);
        assert!(!(planted.reads.is_empty() && planted.does_not_read.is_empty()), "{}", planted.name);
    }
    assert!(all.planted.iter().any(|planted| planted.reads.is_empty()), "nobody who reads nothing");
}
