use super::*;

/// Apps that ask for nothing which leads to a Secret of somebody else.
const HARMLESS: [&str; 6] = ["backstage", "external-dns", "harbor", "kyverno", "vault", "zot"];

fn all() -> Option<Vec<Row>> {
    let folder = bailey_testkit::corpora("what-if of real apps")?;
    Some(rows(&folder, &[]).unwrap())
}

#[test]
fn apps_reach_others_as_they_are_shipped_and_nobody_else_with_bailey() {
    let Some(rows) = all() else { return };
    assert!(rows.len() >= 24, "{}", rows.len());
    for row in &rows {
        let is_harmless = HARMLESS.contains(&row.app.as_str());
        assert_eq!(row.shipped.proven() == 0, is_harmless, "{}: {:?}", row.app, row.shipped);
        assert_eq!(row.scoped.proven(), 0, "{}: {:?}", row.app, row.scoped);
        assert_eq!(row.proven, [], "{}", row.app);
        // What is granted is not nothing where something of its own was asked for.
        assert!(row.asked.granted > 0 || row.asked.rules == 0, "{}: {:?}", row.app, row.asked);
    }
}

#[test]
fn with_bailey_nothing_is_assumed_to_reach_others_either() {
    let Some(rows) = all() else { return };
    for row in &rows {
        assert_eq!((row.assumed, row.scoped.assumed), (0, 0), "{}", row.app);
    }
}

#[test]
fn a_manifest_is_moved_to_the_customers_namespace() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("demo")).unwrap();
    let manifests = "{kind: Namespace, metadata: {name: demo}}\n---\n{kind: ServiceAccount, metadata: {name: x, namespace: demo}}\n---\n\
        {kind: RoleBinding, metadata: {name: b, namespace: kube-system}, subjects: [{kind: ServiceAccount, name: x, namespace: demo}]}\n";
    std::fs::write(folder.path().join("demo/manifests.yaml"), manifests).unwrap();
    let apps = App::all(folder.path(), "org-acme").unwrap();
    let app = &apps[0];
    assert_eq!(app.objects.len(), 2);
    assert!(app::is(&app.objects[0], ["ServiceAccount", "org-acme", "x"]));
    assert!(app::is(&app.objects[1], ["RoleBinding", "kube-system", "b"]));
    assert_eq!(app.objects[1]["subjects"][0]["namespace"], "org-acme");
    assert_eq!(app.accounts().into_iter().collect::<Vec<_>>(), ["default", "x"]);
}
