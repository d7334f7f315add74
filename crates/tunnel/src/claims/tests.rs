#![allow(clippy::unwrap_used, reason = "a test may stop")]

use super::*;
use crate::names::ClusterUid;

const NOW: Seconds = 1_000_000;

fn applicant() -> Applicant {
    Applicant {
        installation: InstallationName::new("atlas").unwrap(),
        party: Party::Cluster(ClusterUid::new("0b4c2e5a-0a3c-4f43-8c9e-0d5b7a1e9f11").unwrap()),
        key: "ab".repeat(32),
    }
}

fn claims() -> Claims {
    Claims {
        sub: applicant().subject(),
        aud: applicant().audiences().to_vec(),
        exp: NOW + 600,
        nbf: Some(NOW),
        iat: NOW,
    }
}

fn refusal(change: impl FnOnce(&mut Claims)) -> &'static str {
    let mut changed = claims();
    change(&mut changed);
    applicant().check(&changed, NOW).map_or_else(|refusal| refusal.reason(), |()| "granted")
}

#[test]
fn each_claim_is_held_against_what_it_has_to_say() {
    assert_eq!(refusal(|_| {}), "granted");
    assert_eq!(
        refusal(|claims| claims.sub = "system:serviceaccount:default:bailey-agent".into()),
        "TokenSubject"
    );
    assert_eq!(refusal(|claims| claims.sub.push('x')), "TokenSubject");
    assert_eq!(refusal(|claims| drop(claims.aud.remove(0))), "TokenAudience");
    assert_eq!(refusal(|claims| drop(claims.aud.remove(1))), "TokenKey");
    assert_eq!(refusal(|claims| claims.aud[1] = format!("key:{}", "cd".repeat(32))), "TokenKey");
    assert_eq!(refusal(|claims| claims.aud.push("https://kubernetes.default.svc".into())), "granted");
}

#[test]
fn clocks_may_differ_by_a_minute() {
    assert_eq!(refusal(|claims| claims.exp = NOW - 59), "granted");
    assert_eq!(refusal(|claims| claims.exp = NOW - 60), "TokenExpired");
    assert_eq!(refusal(|claims| claims.iat = NOW + 60), "granted");
    assert_eq!(refusal(|claims| claims.iat = NOW + 61), "TokenNotYetValid");
    assert_eq!(refusal(|claims| claims.nbf = Some(NOW + 1200)), "TokenNotYetValid");
    assert_eq!(refusal(|claims| claims.iat = NOW - 16 * 60), "granted");
    assert_eq!(refusal(|claims| claims.iat = NOW - 16 * 60 - 1), "TokenOld");
}

#[test]
fn a_token_without_claims_gets_nothing() {
    let empty: Claims = serde_json::from_str("{}").unwrap();
    assert!(applicant().check(&empty, NOW).is_err());
    let one: Claims = serde_json::from_str(r#"{"aud":"a","sub":"b","iss":"c","exp":5}"#).unwrap();
    assert_eq!(one.aud, ["a"]);
    assert!(serde_json::from_str::<Claims>(r#"{"aud":5}"#).is_err());
}
