use proptest::prelude::*;

use super::*;

#[test]
fn retry_after_is_seconds_or_a_date() {
    // Sun, 06 Nov 1994 08:49:37 GMT, the RFC's own example.
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let before = then - Duration::from_secs(90);
    let cases = [
        ("120", Some(120)),
        (" 0 ", Some(0)),
        ("99999999999999999999999", Some(WAIT_MAX.as_secs())),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(90)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(90)),
        ("Sun Nov  6 08:49:37 1994", Some(90)),
        ("Sat, 05 Nov 1994 08:49:37 GMT", Some(0)),
        ("Sat, 06 Nov 2094 08:49:37 GMT", Some(WAIT_MAX.as_secs())),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
    ];
    for (value, seconds) in cases {
        assert_eq!(retry_after(value, before), seconds.map(Duration::from_secs), "{value}");
    }
}

#[test]
fn quotas_of_docker_hub_are_read() {
    let window = Some(Duration::from_secs(21_600));
    assert_eq!(quota("100;w=21600"), Some(Quota { count: 100, window }));
    assert_eq!(quota("76"), Some(Quota { count: 76, window: None }));
    assert_eq!(quota("0; x=1; w=21600"), Some(Quota { count: 0, window }));
    for value in ["", ";w=1", "-1;w=1", "many"] {
        assert_eq!(quota(value), None, "{value}");
    }
}

proptest! {
    #[test]
    fn no_value_makes_the_parsers_panic(value in "\\PC{0,50}|[A-Za-z0-9:, ;=w]{0,50}", at in any::<u32>()) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(at.into());
        prop_assert!(retry_after(&value, now).is_none_or(|wait| wait <= WAIT_MAX));
        let _either = quota(&value);
    }
}
