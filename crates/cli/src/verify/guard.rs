//! The last look at a request before it is sent to somebody's live cluster.

use bailey_attacks::{Check, Holds, Method, Request, Verify};
use serde_json::{Value, json};

/// Why a request could change something or show a Secret; nothing if it cannot.
pub fn objection(request: &Request) -> Option<&'static str> {
    let enters = ["/exec", "/attach", "/portforward", "/proxy"].iter().any(|end| request.path.ends_with(end));
    if enters {
        let absent = request.path.contains("/pods/absent-");
        return (!absent).then_some("it would enter a pod that may exist");
    }
    if request.method == Method::Get {
        let secrets = request.path.contains("/secrets");
        return secrets.then_some("it would read a Secret");
    }
    if request.query.get("dryRun").map(String::as_str) != Some("All") {
        return Some("it is no dry run");
    }
    // A DELETE whose body lacks the dry run deletes, whatever the query says.
    let bound = |body: &Value| body.get("dryRun") == Some(&json!(["All"]));
    let really = request.method == Method::Delete && request.body.as_ref().is_some_and(|body| !bound(body));
    really.then_some("its body would really delete")
}

/// Whether nothing looks into the answer of a step, so that it need not be read.
pub fn is_unread(verify: &Verify, step: usize) -> bool {
    let of_step = verify.success.iter().filter(|condition| condition.step == step);
    let request =
        verify.steps.get(step.saturating_sub(1)).is_some_and(|check| matches!(check, Check::Request(_)));
    request
        && of_step
            .into_iter()
            .all(|condition| matches!(condition.holds, Holds::Accepted(_) | Holds::Authorized(_)))
}

#[cfg(test)]
mod tests {
    use bailey_attacks::catalogue;

    use super::*;

    fn request(value: Value) -> Request {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_what_changes_and_shows_nothing_is_sent() {
        let secret = "/api/v1/namespaces/a/secrets/s";
        for (value, fine) in [
            (json!({"method": "GET", "path": "/api/v1/namespaces/a/pods"}), true),
            (json!({"method": "GET", "path": secret}), false),
            (json!({"method": "PATCH", "path": secret}), false),
            (json!({"method": "PATCH", "path": secret, "query": {"dryRun": "All"}}), true),
            (json!({"method": "DELETE", "path": secret, "query": {"dryRun": "All"}}), true),
            (json!({"method": "DELETE", "path": secret, "query": {"dryRun": "All"}, "body": {}}), false),
            (
                json!({"method": "DELETE", "path": secret, "query": {"dryRun": "All"}, "body": {"dryRun": ["All"]}}),
                true,
            ),
            (json!({"method": "POST", "path": "/api/v1/namespaces/a/pods/web-0/exec"}), false),
            (json!({"method": "POST", "path": "/api/v1/namespaces/a/pods/absent-x/exec"}), true),
        ] {
            let request = request(value.clone());
            assert_eq!(objection(&request).is_none(), fine, "{value}");
        }
    }

    #[test]
    fn no_attack_of_the_catalogue_is_held_back_or_reads_a_secret() {
        for attack in catalogue().unwrap() {
            let verify = &attack.definition().verify;
            for (index, check) in verify.steps.iter().enumerate() {
                let Check::Request(request) = check else { continue };
                assert_eq!(objection(request), None, "{}", attack.id());
                let secret = request.path.contains("/secrets");
                assert!(!secret || is_unread(verify, index + 1), "{} reads a Secret", attack.id());
            }
        }
    }
}
