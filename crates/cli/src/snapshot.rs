//! `bailey snapshot`: what the analyser needs of a cluster, in one file and without a value of any Secret.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use bailey_collect::Sink;
use clap::Args;
use flate2::{Compression, write::GzEncoder};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::analyse::args::ChunkArguments;
use crate::live::Live;
use crate::output::{Output, say};
use crate::{CliError, Exit};

/// Arguments of `snapshot`.
#[derive(Debug, Clone, Args)]
pub struct SnapshotArguments {
    /// The file to write; JSON, compressed if it ends in .gz. A file that is there is replaced when all is read.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: PathBuf,
    /// How the cluster is called in answers; the name in its Installation, else `cluster`, if absent.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How lists are read.
    #[command(flatten)]
    pub chunk: ChunkArguments,
}

/// Collects and writes.
pub async fn run(arguments: &SnapshotArguments, live: &Live) -> Result<Output, CliError> {
    let failed = |source| CliError::File { action: "write", path: arguments.output.clone(), source };
    let partial = arguments.output.with_extension("partial");
    let mut sink = FileSink::create(&partial, is_compressed(&arguments.output)).map_err(failed)?;
    let result =
        bailey_collect::collect(&live.clone().in_chunks(arguments.chunk.chunk_size), &mut sink).await;
    let collected = match result {
        Ok(collected) => collected,
        Err(error) => {
            // What is half done would be taken for all there is.
            drop(sink);
            let _ = std::fs::remove_file(&partial);
            return Err(error);
        }
    };
    let gaps = collected.gaps.iter().map(|(what, why)| json!({ "what": what, "why": why }));
    let about = json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": bailey_access::ABOUT_KIND,
        "metadata": {"name": "snapshot"},
        "spec": {
            "cluster": arguments.name,
            "minor": collected.minor,
            "listed": collected.listed,
            "gaps": gaps.collect::<Vec<_>>(),
        },
    });
    let objects = sink.objects;
    sink.item(&about).and_then(|()| sink.finish()).map_err(failed)?;
    std::fs::rename(&partial, &arguments.output).map_err(failed)?;
    let path = arguments.output.display();
    say(&format!(
        "wrote {objects} objects of {} kinds to {path}; it holds no value of any Secret",
        collected.listed.len()
    ));
    for (what, why) in &collected.gaps {
        say(&format!("not read: {what}: {why}"));
    }
    say(&format!("next: bailey audit --dump {path}"));
    Ok(Output::new(String::new(), if collected.gaps.is_empty() { Exit::Clean } else { Exit::Incomplete }))
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz" || extension == "tgz")
}

/// Writes one `v1 List`, object by object.
struct FileSink {
    writer: Writer,
    objects: usize,
    bar: ProgressBar,
}

enum Writer {
    Plain(BufWriter<File>),
    Compressed(Box<GzEncoder<BufWriter<File>>>),
}

impl FileSink {
    fn create(path: &Path, compressed: bool) -> std::io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        let writer = if compressed {
            Writer::Compressed(Box::new(GzEncoder::new(file, Compression::default())))
        } else {
            Writer::Plain(file)
        };
        let mut sink = Self { writer, objects: 0, bar: crate::client::progress() };
        sink.write(b"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[")?;
        Ok(sink)
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.writer {
            Writer::Plain(writer) => writer.write_all(bytes),
            Writer::Compressed(writer) => writer.write_all(bytes),
        }
    }

    fn item(&mut self, item: &Value) -> std::io::Result<()> {
        self.write(if self.objects == 0 { b"\n" } else { b",\n" })?;
        self.objects += 1;
        self.write(item.to_string().as_bytes())
    }

    fn finish(mut self) -> std::io::Result<()> {
        self.bar.finish_and_clear();
        self.write(b"\n]}\n")?;
        match self.writer {
            Writer::Plain(mut writer) => writer.flush(),
            Writer::Compressed(writer) => writer.finish()?.flush(),
        }
    }
}

impl Sink for FileSink {
    type Error = CliError;

    fn progress(&mut self, done: usize, all: usize, what: &str) {
        crate::client::advance(&self.bar, done, all, what);
    }

    fn list(&mut self, _source: &str, mut list: Value) -> Result<(), CliError> {
        let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) else { return Ok(()) };
        for item in items {
            self.item(&item).map_err(|source| CliError::File {
                action: "write",
                path: PathBuf::from("the snapshot"),
                source,
            })?;
        }
        Ok(())
    }
}
