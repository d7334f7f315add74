use super::{Form, of};

#[test]
fn the_form_follows_from_the_first_bytes() {
    let json: [&[u8]; 6] = [b"{\"a\":1}", b" \n{ \"a\"", b"\xef\xbb\xbf{}", b"{", b"[{", b"[]"];
    for start in json {
        assert_eq!(of(start), Ok(Form::Json), "{start:?}");
    }
    let yaml: [&[u8]; 6] = [b"a: 1", b"---\n", b"# x", b"{a: 1}", b"[a]", b"\xef\xbb\xbfa: 1"];
    for start in yaml {
        assert_eq!(of(start), Ok(Form::Yaml), "{start:?}");
    }
    assert_eq!(of(&[b' '; 512]), Ok(Form::Yaml));
}

#[test]
fn what_cannot_be_read_is_told_with_the_way_out() {
    let mut tar = [b'x'; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let cases: [(&[u8], &str); 8] = [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\x1f\x8b\x08", "packed twice"),
        (b"PK\x03\x04", "unpack"),
        (&tar, "unpack"),
        (b"\xff\xfe{\0", "UTF-16"),
        (b"\x7fELF\x02\0", "neither JSON nor YAML"),
        (b"a: \0", "neither JSON nor YAML"),
    ];
    for (start, expected) in cases {
        assert!(of(start).unwrap_err().contains(expected), "{start:?}");
    }
}
