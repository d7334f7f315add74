//! Input without end: it is bounded by what may be in memory, and never by what there is.

use std::cell::Cell;
use std::io::{self, Read, Write as _};
use std::rc::Rc;

use flate2::{Compression, write::GzEncoder};

use super::{audit, good, read};

/// Gives a beginning, then a byte over and over again, then an end; counts what it gave.
fn long(start: &str, byte: u8, count: u64, end: &str) -> (impl Read + use<>, Rc<Cell<u64>>) {
    let given = Rc::new(Cell::new(0));
    let body = Counted { reader: io::repeat(byte).take(count), given: Rc::clone(&given) };
    (io::Cursor::new(start.to_owned()).chain(body).chain(io::Cursor::new(end.to_owned())), given)
}

struct Counted<R> {
    reader: R,
    given: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.given.set(self.given.get() + count as u64);
        Ok(count)
    }
}

/// More than may be in memory at once.
const LONG: u64 = 100 << 20;
/// The beginning of a Secret, up to its name.
const SECRET: &str =
    "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"namespace\": \"a\", \"name\": \"";

#[test]
fn a_line_without_end_is_a_limit_that_is_told_and_what_follows_is_read() {
    let after = "\"}}\n{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"namespace\": \"a\", \"name\": \"s\"}, \"type\": \"Opaque\"}";
    let (reader, given) = long(SECRET, b'x', LONG, after);
    let found = read(reader);
    assert_eq!(given.get(), LONG);
    assert_eq!(found.told.len(), 1, "{:?}", found.told);
    assert!(
        found.told[0].contains("`dump.yaml`, line 1") && found.told[0].contains("more than 32 MiB"),
        "{:?}",
        found.told
    );
    assert!(found.told[0].len() < 500);
    assert_eq!(found.snapshot.clusters[0].secrets.len(), 1);
}

#[test]
fn a_document_without_end_is_a_limit_that_is_told() {
    let (reader, _) =
        long("apiVersion: v1\nkind: Secret\nmetadata: {name: ", b'x', LONG, &format!("}}\n---\n{}", good()));
    let found = read(reader);
    assert!(found.told.iter().any(|told| told.contains("more than 32 MiB")), "{:?}", found.told);
    assert_eq!(found.snapshot.clusters[0].secrets.len(), 1);
}

/// The peak of a process of its own, in which nothing else runs. Only Linux tells it.
#[test]
fn memory_is_bounded_by_one_object_and_not_by_the_input() {
    const CHILD: &str = "BAILEY_TEST_READS_WITHOUT_END";
    const NAME: &str = "bad_input::size::memory_is_bounded_by_one_object_and_not_by_the_input";
    if std::env::var_os(CHILD).is_some() {
        let (reader, given) = long(SECRET, b'x', 4 * LONG, "\"}}");
        read(reader);
        println!("read {} peak {}", given.get() >> 20, peak_mib().unwrap());
        return;
    }
    if peak_mib().is_none() {
        eprintln!("skipped: nothing tells the peak of memory here");
        return;
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    let line = said.lines().find(|line| line.contains("read ")).unwrap_or_else(|| panic!("{said}"));
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [read, peak] = numbers[..] else { panic!("{line}") };
    assert!(read == 400 && peak < 150, "{read} MiB were read with {peak} MiB in memory");
}

fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib >> 10)
}

#[test]
fn what_inflates_without_end_is_stopped_and_told() {
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut packed = gzip(format!("{}\n---\n# ", good()).as_bytes());
    packed.extend(gzip(&[b'x'; 1 << 20]).repeat(100));
    assert!(packed.len() < 1 << 20);
    let found = read(&packed[..]);
    assert!(found.told.iter().any(|told| told.contains("far more than a dump would")), "{:?}", found.told);
    assert_eq!(found.snapshot.clusters[0].secrets.len(), 1, "what came before is read");
    assert!(!audit(found.snapshot).complete);
}

#[test]
fn anchors_that_multiply_are_stopped_and_told() {
    let mut bomb = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: b}, data: {a: &a [x,x,x,x,x,x,x,x,x]".to_owned();
    for (last, next) in ('a'..='i').zip('b'..='j') {
        let nine = vec![format!("*{last}"); 9].join(", ");
        bomb.push_str(&format!(", {next}: &{next} [{nine}]"));
    }
    bomb.push_str("}}");
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {namespace: a, name: r}\nx: ";
    for bomb in [bomb.clone(), format!("{role}{}", bomb.replace('\n', " "))] {
        let found =
            read(format!("{}\n---\n{bomb}\n---\n{}", good(), good().replace("good", "better")).as_bytes());
        assert_eq!(found.told.len(), 1, "{:?}", found.told);
        let told = &found.told[0];
        assert!(told.contains("`dump.yaml`") && told.contains("repeats far too much by aliases"), "{told}");
        assert_eq!(found.snapshot.clusters[0].secrets.len(), 2);
    }
}

#[test]
fn nesting_of_any_depth_is_told_or_passed_over_and_never_ends_the_program() {
    for depth in [200, 2_000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("- ", "")] {
            let deep = format!("{}0{}", open.repeat(depth), close.repeat(depth));
            let object = format!(
                "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {{\"namespace\": \"a\", \"name\": \"p\"}}, \"spec\": {deep}}}"
            );
            for text in [deep.clone(), object] {
                let found = read(format!("{text}\n---\n{}", good()).as_bytes());
                audit(found.snapshot);
            }
        }
    }
}

#[test]
fn many_faults_are_counted_and_not_listed() {
    let faults = "{apiVersion: v1, kind: Secret, metadata: []}\n---\n".repeat(5_000);
    let found = read(format!("{faults}{}", good()).as_bytes());
    assert!(found.told.len() < 200, "{}", found.told.len());
    assert!(found.told.last().unwrap().contains("more objects"), "{:?}", found.told.last());
    assert_eq!(found.snapshot.clusters[0].secrets.len(), 1);
}
