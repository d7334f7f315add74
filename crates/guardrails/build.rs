//! Rebuilds the crate when a policy file is added or removed, which `include_dir` alone does not notice.

fn main() {
    println!("cargo::rerun-if-changed=policies");
}
