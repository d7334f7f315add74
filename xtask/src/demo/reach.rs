//! What an app's account reaches, tried with its own token.

use anyhow::Result;

use super::screen::{Cell, Tone};
use super::story::{MARKER, Story};

/// Tries to read Secrets as an account, shows the answers, and notes those that should be otherwise.
pub async fn secrets(story: &mut Story, namespace: &str, account: &str) -> Result<()> {
    let access = story.cluster.plane.service_account(namespace, account).await?;
    let names = &story.cluster.names;
    let list = |namespace: &str| format!("/api/v1/namespaces/{namespace}/secrets");
    let of_platform = format!("{}/{}", list(&names.platform_namespace), names.platform_secret);
    let tries = [
        (true, "GET", list(&names.tenant_app_namespace)),
        (true, "GET", list(&names.tenant_namespace)),
        (false, "GET", list(&names.other_namespace)),
        (false, "GET", of_platform.clone()),
        (false, "PATCH", format!("{of_platform}?dryRun=All")),
        (false, "GET", "/api/v1/secrets".to_owned()),
    ];
    story.screen.say(&format!("Reached, tried with the token of ServiceAccount {namespace}/{account}:"));
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (wanted, method, path) in tries {
        let patch = (method == "PATCH").then_some(("application/merge-patch+json", "{}"));
        let (status, body) =
            access.send(method, &path, patch.map(|(kind, _)| kind), patch.map(|(_, body)| body)).await?;
        let right = as_wanted(wanted, status, &body);
        let tone = if right { Tone::Good } else { Tone::Bad };
        if !right {
            story.failures.push(format!("{namespace}/{account}: {method} {path} answered {status}"));
        }
        let answer = format!("{status} {}", meaning(status));
        rows.push(vec![(answer, tone), (format!("{method} {path}"), Tone::Plain)]);
    }
    story.screen.table(&["ANSWER", "REQUEST"], &rows);
    Ok(())
}

/// A refused answer must not hold the value either, as it is or in base64.
fn as_wanted(wanted: bool, status: u16, body: &str) -> bool {
    if wanted { status == 200 } else { status == 403 && !body.contains(MARKER) && !body.contains("\"data\"") }
}

fn meaning(status: u16) -> &'static str {
    match status {
        200 => "yes",
        403 => "forbidden",
        _ => "unexpected",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_refusal_counts_as_refused() {
        assert!(as_wanted(false, 403, r#"{"kind":"Status"}"#));
        for (status, body) in [(200, ""), (404, ""), (500, ""), (403, MARKER), (403, r#"{"data":{}}"#)] {
            assert!(!as_wanted(false, status, body), "{status} {body}");
        }
        assert!(as_wanted(true, 200, ""));
        assert!(!as_wanted(true, 403, ""));
    }
}
