use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::escape::visible;
use super::*;

/// Closes what may be open, opens what must not be, and holds what nobody sees.
pub const MARKUP: &str = "</style></title></svg>--><script>alert(1)</script><img src=x onerror=alert(1)>\" onx='1' &amp; \
    \u{202e}\u{2066}\u{200b}\u{0}\u{1b}[31m\u{7f}\u{85}\u{2028}\u{feff}\u{ffff}\n\u{5e9}\u{5dc}\u{5d5}\u{5dd} {{ 7 * 7 }} {% end %}";

/// The document with the suffix after each of its strings, those apart that only certain words can be in.
pub fn every_string<T: Serialize + DeserializeOwned>(document: &T, suffix: &str) -> T {
    let mut value = serde_json::to_value(document).unwrap();
    append(&mut value, suffix);
    serde_json::from_value(value).unwrap()
}

fn append(value: &mut Value, suffix: &str) {
    match value {
        Value::String(text) => text.push_str(suffix),
        Value::Array(items) => items.iter_mut().for_each(|item| append(item, suffix)),
        Value::Object(fields) => {
            for (field, value) in fields {
                if !["verdict", "verdicts", "severity", "failOn", "certainty", "before", "after"]
                    .contains(&field.as_str())
                {
                    append(value, suffix);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Pages of ordinary documents, and of those with a suffix after each string.
fn pairs(suffix: &str) -> Vec<(String, String)> {
    fn pair<T: Serialize + DeserializeOwned>(
        page: fn(&T) -> String,
        document: &T,
        suffix: &str,
    ) -> (String, String) {
        (page(document), page(&every_string(document, suffix)))
    }
    vec![
        pair(report, &sample::compared(), suffix),
        pair(who_can_read, &sample::who_can_read(), suffix),
        pair(reach, &sample::reach(), suffix),
        pair(why, &sample::why(), suffix),
        pair(what_if, &sample::what_if(), suffix),
    ]
}

#[test]
fn no_string_becomes_an_element_or_an_attribute() {
    for (ordinary, hostile) in pairs(MARKUP) {
        let (ordinary, hostile) = (Page::parse(&ordinary), Page::parse(&hostile));
        let mut new: BTreeSet<_> = kinds(&hostile).difference(&kinds(&ordinary)).cloned().collect();
        // What is this long is shortened in a drawing, and so has its whole text with its box; all are foreign.
        new.retain(|(element, attribute)| {
            attribute != "class" && !["title", "svg", "use"].contains(&element.as_str())
        });
        assert_eq!(new, BTreeSet::new());
        assert!(hostile.all("script, img").is_empty());
    }
}

fn kinds(page: &Page) -> BTreeSet<(String, String)> {
    let mut kinds = BTreeSet::new();
    for element in page.all("*") {
        let name = element.value().name().to_owned();
        kinds.insert((name.clone(), String::new()));
        kinds.extend(element.value().attrs().map(|(attribute, _)| (name.clone(), attribute.to_owned())));
    }
    kinds
}

#[test]
fn hidden_and_reordering_characters_are_written_out() {
    for (_, hostile) in pairs(MARKUP) {
        let hidden: BTreeSet<_> =
            hostile.chars().filter(|char| visible(&char.to_string()) != char.to_string()).collect();
        assert_eq!(hidden, BTreeSet::from(['\n']), "only the line ends of the templates themselves");
        assert!(hostile.contains(
            "\\u{202e}\\u{2066}\\u{200b}\\u{0}\\u{1b}[31m\\u{7f}\\u{85}\\u{2028}\\u{feff}\\u{ffff}\\n"
        ));
    }
}

#[test]
fn hostile_text_is_still_there_to_be_read() {
    let audit = every_string(&sample::audit(), MARKUP);
    let page = Page::audit(&audit);
    let messages = page.texts("article h4");
    for finding in &audit.findings {
        let wanted = visible(&finding.message).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(messages.contains(&wanted), "{wanted} in {messages:?}");
    }
    assert_eq!(page.all("tr.secret").len(), 60);
}

#[test]
fn names_are_isolated_from_the_direction_of_the_text_around() {
    let page = Page::audit(&sample::audit());
    for name in page
        .all("td, th, dd, summary, h1, h2, h3")
        .into_iter()
        .flat_map(|place| within(place, ".name, .customer"))
    {
        assert_eq!(name.value().name(), "bdi", "{}", name.html());
    }
}

/// The longest name that Kubernetes allows (RFC 1123 subdomain, 253 characters).
#[test]
fn long_names_are_whole_in_tables_and_shortened_in_drawings() {
    let long = format!("-{}", "n".repeat(220));
    let audit = every_string(&sample::audit(), &long);
    let page = Page::audit(&audit);
    for line in page.texts(".drawn text") {
        assert!(line.chars().count() <= 27, "{line}");
    }
    let article = page.all("article").into_iter().next().unwrap();
    let subject = &audit.findings[0].subject;
    assert!(within(article, ".steps .name").into_iter().any(|name| super::text(name) == *subject));
    let whole = within(article, "svg g > title").into_iter().map(super::text).collect::<Vec<_>>();
    assert!(whole.iter().any(|title| subject.ends_with(title.as_str())), "{whole:?}");
    let lines = within(article, "g.subject text").into_iter().map(super::text).collect::<String>();
    assert!(
        lines.contains('…') && lines.starts_with("ServiceAccountorg-acme/") && lines.contains("nnnn"),
        "{lines}"
    );
}

#[test]
fn findings_with_the_same_strange_id_have_anchors_of_their_own() {
    let mut audit = sample::audit();
    for finding in &mut audit.findings {
        finding.id = "a b\"<\u{202e}é/é".into();
    }
    let page = Page::audit(&audit);
    let ids: Vec<_> =
        page.all("article").iter().map(|article| article.attr("id").unwrap().to_owned()).collect();
    assert_eq!(ids[..2], ["finding-a-b------", "finding-a-b------.2"]);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 6);
}
