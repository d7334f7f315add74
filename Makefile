# Two commands for a fresh machine: `make demo` and `make test`. Options go in ARGS: make demo ARGS=--exit

.PHONY: demo test tools needed

# Built first and aloud: the first time takes a while, and `cargo xtask` is quiet.
demo: needed
	@cargo build --package xtask
	@cargo xtask demo $(ARGS)

test: needed
	cargo xtask test $(ARGS)

tools: needed
	cargo xtask tools $(ARGS)

needed:
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.95 or newer with rustup (rustup.rs)" >&2; exit 1; }
	@command -v go >/dev/null || { echo "go is missing: install Go 1.26 or newer (go.dev/doc/install)" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "cc is missing: install a C compiler, on Debian with: apt-get install gcc libc6-dev" >&2; exit 1; }
