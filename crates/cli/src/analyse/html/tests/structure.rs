use super::*;

#[test]
fn each_page_has_one_heading_a_language_and_landmarks() {
    for (name, text) in pages() {
        let page = Page::parse(&text);
        assert_eq!(page.one("html").attr("lang"), Some("en"), "{name}");
        assert_eq!(page.all("h1").len(), 1, "{name}");
        assert!(page.text("head > title").ends_with(" - Bailey"), "{name}");
        for landmark in ["header", "main#main", "footer", "a.skip[href='#main']"] {
            page.one(landmark);
        }
    }
}

#[test]
fn headings_leave_out_no_level() {
    for (name, text) in pages() {
        let page = Page::parse(&text);
        let mut before = 0;
        for heading in page.all("h1, h2, h3, h4, h5, h6") {
            let level = heading.value().name()[1..].parse().unwrap();
            assert!(level <= before + 1, "{name}: {} after h{before}", heading.html());
            before = level;
        }
    }
}

#[test]
fn a_page_needs_nothing_but_itself() {
    for (name, text) in pages() {
        let page = Page::parse(&text);
        for element in ["script", "link", "img", "iframe", "object", "form", "base", "image"] {
            assert!(page.all(element).is_empty(), "{name} has <{element}>");
        }
        for element in page.all("*") {
            for (attribute, value) in element.value().attrs() {
                assert!(!attribute.starts_with("on") && attribute != "style", "{name}: {attribute}={value}");
                let is_link = ["href", "src", "action", "data", "poster", "srcset"].contains(&attribute);
                assert!(!is_link || value.starts_with('#'), "{name}: {attribute}={value}");
            }
        }
        let policy = page.one("meta[http-equiv='Content-Security-Policy']").attr("content").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'unsafe-inline';"), "{name}: {policy}");
        let style = page.text("style");
        assert!(!style.contains("url(") && !style.contains("@import"), "{name}");
    }
}

#[test]
fn each_id_is_there_once_and_each_reference_leads_somewhere() {
    for (name, text) in pages() {
        let page = Page::parse(&text);
        let ids: Vec<_> = page.all("[id]").iter().map(|element| element.attr("id").unwrap()).collect();
        let known: BTreeSet<_> = ids.iter().copied().collect();
        assert_eq!(ids.len(), known.len(), "{name}: an id is there twice");
        for link in page.all("[href]") {
            let target = link.attr("href").unwrap().trim_start_matches('#');
            assert!(known.contains(target), "{name}: {}", link.html());
        }
        for attribute in ["aria-labelledby", "aria-describedby"] {
            for element in page.all(&format!("[{attribute}]")) {
                assert!(known.contains(element.attr(attribute).unwrap()), "{name}: {}", element.html());
            }
        }
    }
}

#[test]
fn tables_have_captions_and_their_heads_say_of_what() {
    for (name, text) in pages() {
        let page = Page::parse(&text);
        assert!(!page.all("table").is_empty(), "{name}");
        for table in page.all("table") {
            assert_eq!(within(table, "caption").len(), 1, "{name}: {}", table.html());
            assert!(within(table, "th:not([scope])").is_empty(), "{name}: {}", table.html());
            let width = within(table, "thead th").len();
            for row in within(table, "tbody > tr") {
                let cells = row.child_elements().filter(|cell| ["td", "th"].contains(&cell.value().name()));
                assert_eq!(cells.count(), width, "{name}: {}", row.html());
            }
        }
    }
}

/// Cells of a table that is laid out anew on narrow screens have their titles with them, and roles that survive.
#[test]
fn tables_for_narrow_screens_say_their_roles_and_titles() {
    for (name, text) in pages() {
        let page = Page::parse(&text);
        let without_role =
            page.all(".stack:not([role=table]), .stack tr:not([role=row]), .stack td:not([role=cell])");
        assert!(without_role.is_empty(), "{name}");
        for table in page.all(".stack") {
            let heads: Vec<_> = within(table, "thead th").into_iter().map(super::text).collect();
            for cell in within(table, "tbody > tr > td[data-label]") {
                let label = cell.attr("data-label").unwrap().to_owned();
                assert!(heads.contains(&label), "{name}: {label} of {heads:?}");
            }
        }
    }
}

#[test]
fn drawings_are_told_and_have_a_table_beside_them() {
    for (name, text) in pages() {
        let page = Page::parse(&text);
        for figure in page.all("figure") {
            let svg = within(figure, "svg[role=img]");
            assert_eq!(svg.len(), 1, "{name}");
            for told in ["svg > title", "svg > desc"] {
                assert!(!super::text(within(figure, told)[0]).is_empty(), "{name}");
            }
            let next = figure.next_siblings().find_map(ElementRef::wrap).unwrap();
            assert_eq!(next.attr("class"), Some("steps stack"), "{name}: {}", next.html());
        }
    }
}

#[test]
fn the_audit_says_first_that_it_is_not_complete_and_why() {
    let page = Page::audit(&sample::audit());
    assert_eq!(page.text(".incomplete h2"), "Incomplete: 3 things could not be read");
    let gaps = page.texts(".incomplete tbody tr");
    assert_eq!(gaps.len(), 3);
    assert!(
        gaps[0].starts_with("acme-prod pods in all namespaces user `auditor` may not list pods"),
        "{gaps:?}"
    );
    assert!(page.text(".answer").ends_with("Not everything could be read, so there may be more."));
    assert!(page.all(".complete").is_empty());

    let clean = Page::audit(&sample::clean());
    assert!(clean.all(".incomplete").is_empty());
    assert!(clean.text(".complete").starts_with("Complete"));
    assert_eq!(clean.all(".answer.good").len(), 1);
}

/// Unknown is not clean: without a finding, an incomplete answer is still no good news.
#[test]
fn good_news_that_is_not_complete_is_not_shown_as_good() {
    let mut audit = sample::clean();
    audit.complete = false;
    let page = Page::audit(&audit);
    assert_eq!(page.all(".answer.unsure").len(), 1);
    assert_eq!(page.text(".incomplete h2"), "Incomplete: something could not be read");
}

#[test]
fn the_summary_counts_in_words() {
    let audit = sample::audit();
    let page = Page::audit(&audit);
    let numbers = page.texts(".tile .number");
    assert_eq!(numbers, ["2 exposed", "4 shared", "2 unowned", "34 exactly one", "18 platform only"]);
    assert_eq!(page.texts(".severities li"), ["2 critical", "2 high", "1 medium", "1 low"]);
    let answer = page.text(".answer");
    assert!(answer.contains("6 of 60 Secrets are reached by somebody who should not"), "{answer}");
}

#[test]
fn findings_are_articles_the_worst_first_with_path_evidence_and_remedy() {
    let mut audit = sample::audit();
    audit.findings.reverse();
    let page = Page::audit(&audit);
    let badges = page.texts("article .badge");
    assert_eq!(badges, ["Critical", "Critical", "High", "High", "Medium", "Low"]);
    let article = page.one("article#finding-exec-91c2e7");
    let steps = within(article, "table.steps tbody tr");
    assert_eq!(steps.len(), 6);
    let first = super::text(steps[0]);
    for part in [
        "1",
        "sa:beta-apps/ci-runner",
        "RoleBinding flux-system/debug",
        "edge binding",
        "dump/rolebindings.yaml:2207",
        "proven",
    ] {
        assert!(first.contains(part), "{first}");
    }
    assert!(super::text(article).contains("What to do take pods/exec out of Role flux-system/debug"));
    assert_eq!(super::text(within(article, "dd .customer")[0]), "beta");
    // The waiver that fits nothing has no path.
    assert!(within(page.one("article#finding-unused-waiver-3f00aa"), "svg.c2, table").is_empty());
}

#[test]
fn an_assumed_step_is_dashed_and_says_so() {
    let page = Page::audit(&sample::audit());
    let article = page.one("article#finding-deputy-helm-release-77ab01");
    assert!(!within(article, "path.line.assumed").is_empty());
    assert!(super::text(within(article, "figcaption")[0]).starts_with("A dashed arrow is assumed"));
    let step = super::text(within(article, "tbody tr")[2]);
    assert!(
        step.ends_with(
            "assumed policies of Kyverno, which were not evaluated, may demand spec.serviceAccountName"
        ),
        "{step}"
    );
    let proven = page.one("article#finding-exec-91c2e7");
    assert!(within(proven, "path.line.assumed, figcaption").is_empty());
}

#[test]
fn the_matrix_marks_what_is_off_the_diagonal_by_more_than_colour() {
    let page = Page::audit(&sample::audit());
    let rows: Vec<_> = page.texts(".matrix tr");
    assert_eq!(
        rows,
        [
            "Whose Secrets reached by acme reached by beta reached by everyone",
            "acme of 20 20 1 should be 0 0",
            "beta of 18 3 should be 0 18 0",
            "platform of 20 1 should be 0 1 should be 0 1 should be 0",
            "unknown of 2 2 2 0",
        ]
    );
    for cell in page.all(".matrix .foreign") {
        assert_eq!(within(cell, "use[href='#i-bad']").len(), 1);
    }
    let clean = Page::audit(&sample::clean());
    assert!(clean.all(".matrix .foreign, .matrix .unsure").is_empty());
    assert!(
        clean
            .text(".verdict-line.good:has(+ .scroll .matrix)")
            .starts_with("Off the diagonal the matrix is empty")
    );
}

#[test]
fn secrets_stand_by_cluster_and_namespace_with_verdict_audience_and_subjects() {
    let page = Page::audit(&sample::audit());
    assert_eq!(
        page.texts("section[aria-labelledby=secrets] > h3"),
        ["Cluster acme-prod (2 Secrets)", "Cluster harbour (58 Secrets)"]
    );
    assert_eq!(page.all("tr.secret").len(), 60);
    let row = page
        .all("tr.secret.shared")
        .into_iter()
        .find(|row| super::text(*row).starts_with("registry-pull"))
        .unwrap();
    assert_eq!(
        super::text(row),
        "registry-pull kubernetes.io/dockerconfigjson acme shared proven acme, beta (has no business there) 6: 5 above, 1 more beta (has no business there) sa:org-beta/backup-agent"
    );
    assert_eq!(within(row, ".foreign").len(), 2, "beta, in the audience and among the subjects");
    // Those that need a look are open, and first in their namespace.
    let open = page.texts(".namespace[open] > summary > .name");
    assert_eq!(open, ["acme-apps", "beta-apps", "flux-system", "org-beta", "platform-monitoring", "scratch"]);
}

#[test]
fn without_subjects_there_is_no_column_for_them() {
    let mut audit = sample::audit();
    audit.secrets.iter_mut().for_each(|secret| secret.subjects.clear());
    let page = Page::audit(&audit);
    assert!(page.all("[data-label='Listed subjects']").is_empty());
    assert_eq!(page.all("tr.secret").len(), 60);
}

#[test]
fn a_baseline_waivers_and_a_selection_are_shown() {
    let page = Page::parse(&report(&sample::compared()));
    assert_eq!(
        page.texts(".selection li"),
        [
            "findings of severity low and above",
            "customers acme and beta",
            "verdict shared",
            "out of 90 Secrets and 8 findings"
        ]
    );
    let since = page.text(".since");
    assert!(
        since.starts_with("Since the baseline: 1 new, 1 worse, 1 known, 1 gone. The baseline had not"),
        "{since}"
    );
    let tags = page.texts("article .marks > span.tag");
    assert_eq!(tags, ["new", "worse than before", "known", "known", "known", "known"]);
    assert!(page.text("section[aria-labelledby=waived] tbody").contains("team-storage"));
    assert!(page.text("section[aria-labelledby=gone] tbody").contains("old-finding"));
}

#[test]
fn an_empty_audit_is_a_page() {
    let mut audit = sample::clean();
    audit.secrets.clear();
    audit.clusters.clear();
    audit.summary = Default::default();
    let page = Page::audit(&audit);
    assert_eq!(page.text(".answer p"), "There is no Secret in what was loaded.");
    assert!(page.all(".matrix, .filter").is_empty());
}

#[test]
fn who_can_read_tells_foreign_readers_from_others() {
    let page = Page::parse(&who_can_read(&sample::who_can_read()));
    assert_eq!(page.text("h1"), "Who reaches Secret org-beta/beta-prod-kubeconfig of cluster harbour?");
    let answer = page.text(".answer");
    assert!(
        answer.contains("It is customer beta's, and others reach it too. 5 subjects reach it, 3 of them"),
        "{answer}"
    );
    assert_eq!(page.all(".reader").len(), 5);
    assert_eq!(page.all(".foreign-reader").len(), 3);
    assert_eq!(page.texts("table.narrow tbody tr"), ["acme 3 no", "beta 1 yes", "platform 1 yes"]);
}

#[test]
fn a_secret_that_was_not_loaded_is_said_to_be_none() {
    let mut answer = sample::who_can_read();
    answer.exists = false;
    answer.subjects.clear();
    let page = Page::parse(&who_can_read(&answer));
    assert!(page.text(".verdict-line").starts_with("No such Secret was loaded"));
    assert!(page.text("section[aria-labelledby=readers]").contains("Nobody, by what was loaded."));
}

#[test]
fn secrets_that_are_reached_the_same_way_are_one_group() {
    let page = Page::parse(&reach(&sample::reach()));
    let groups = page.texts(".reader > summary");
    assert_eq!(
        groups[0],
        "40 Secrets in 6 namespaces of acme (has no business there), platform (has no business there), unknown proven"
    );
    assert_eq!(groups[1], "18 Secrets in 2 namespaces of beta proven");
    assert!(page.text(".answer").starts_with("Answer Everything of a cluster: it has full control."));
    assert_eq!(page.all("section[aria-labelledby=foreign] .places tbody > tr").len(), 6);
}

#[test]
fn why_shows_each_way_and_says_when_there_is_none() {
    let page = Page::parse(&why(&sample::why()));
    assert_eq!(page.texts("article h3"), ["Way 1 of 2 proven", "Way 2 of 2 assumed"]);
    let mut none = sample::why();
    none.reached = false;
    none.paths.clear();
    none.complete = false;
    let none = why(&none);
    assert!(none.contains("It does not by anything that could be read; not everything could."), "{none}");
}

#[test]
fn what_if_shows_the_worst_changes_first() {
    let page = Page::parse(&what_if(&sample::what_if()));
    let verdicts = page.texts("section[aria-labelledby=verdicts] tbody tr");
    assert_eq!(verdicts[0], "org-beta/db exactly one shared worse");
    assert!(verdicts.contains(&"scratch/old unowned not there gone".to_owned()), "{verdicts:?}");
    assert_eq!(page.all("article").len(), 1);
    assert_eq!(page.all("section[aria-labelledby=gained] .reader").len(), 2);
    assert_eq!(page.text("section[aria-labelledby=resolved] .names"), "deputy-helm-release-77ab01");

    let mut nothing = sample::what_if();
    nothing.gained.clear();
    nothing.lost.clear();
    nothing.verdicts.clear();
    nothing.findings.clear();
    nothing.resolved.clear();
    let page = Page::parse(&what_if(&nothing));
    assert!(page.text(".answer.good").contains("Nobody would reach a Secret that they do not reach today."));
}

#[test]
fn numbers_and_lists_read_well() {
    use super::super::words::{count, grouped, joined};
    assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([count(1, "Secret", "Secrets"), count(2, "Secret", "Secrets")], ["1 Secret", "2 Secrets"]);
    let list = ["a", "b", "c"].map(str::to_owned);
    assert_eq!(
        [joined(&list[..0]), joined(&list[..1]), joined(&list[..2]), joined(&list)],
        ["", "a", "a and b", "a, b and c"]
    );
}
