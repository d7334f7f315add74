use super::*;

#[test]
fn a_body_is_json_whatever_the_message_holds() {
    let text = body(Code::NameInvalid, "`a\"b\n\u{7f}` is no name");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["errors"][0]["code"], "NAME_INVALID");
    assert_eq!(value["errors"][0]["message"], "`a\"b\n\u{7f}` is no name");
}
