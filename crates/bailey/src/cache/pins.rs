//! `bailey cache pin`, `pins` and `unpin`: which images a cache keeps whatever else it is asked for.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bailey_cache::cache::Pinned;
use bailey_cache::control::{ControlError, Request, ask};
use bailey_cli::output::{ColorChoice, Format, Screen};
use bailey_cli::{Exit, PinArguments, PinsArguments, UnpinArguments};
use bailey_oci::Image;
use bailey_oci::image::{ImageError, TargetError};

use super::{fail, say};

/// How often a cache is asked whether pinned images are there.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
enum PinError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Platform(#[from] TargetError),
    #[error("cannot read the list of images `{path}`")]
    List { path: PathBuf, source: std::io::Error },
    #[error("the list of images is empty")]
    Empty,
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// Pins images.
pub async fn pin(arguments: &PinArguments) -> Exit {
    match try_pin(arguments).await {
        Ok(exit) => exit,
        Err(error) => fail(&error, Exit::Usage),
    }
}

async fn try_pin(arguments: &PinArguments) -> Result<Exit, PinError> {
    let mut texts = arguments.images.clone();
    if let Some(path) = &arguments.file {
        texts.extend(listed(path)?);
    }
    let images = texts.iter().map(|text| Image::short(text)).collect::<Result<Vec<_>, _>>()?;
    if images.is_empty() {
        return Err(PinError::Empty);
    }
    let platforms = arguments.platforms.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let mut pinned = ask(&arguments.store, Request::Pin { images: images.clone(), platforms }).await?;
    let until = arguments.wait.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let wanted = |pinned: &[Pinned]| -> Vec<Pinned> {
        pinned.iter().filter(|pin| images.contains(&pin.image)).cloned().collect()
    };
    while until.is_some_and(|until| Instant::now() < until) && !wanted(&pinned).iter().all(|pin| pin.ready) {
        tokio::time::sleep(LOOK).await;
        pinned = ask(&arguments.store, Request::List).await?;
    }
    let wanted = wanted(&pinned);
    wanted.iter().for_each(|pin| say(&format!("{} {}", pin.image, state(pin))));
    let missing = until.is_some() && !wanted.iter().all(|pin| pin.ready);
    Ok(if missing { Exit::Incomplete } else { Exit::Clean })
}

/// Lists what is pinned.
pub async fn list(arguments: &PinsArguments) -> Exit {
    let pinned = match ask(&arguments.store, Request::List).await {
        Ok(pinned) => pinned,
        Err(error) => return fail(&error, Exit::Usage),
    };
    if arguments.output == Format::Json {
        match serde_json::to_string_pretty(&pinned) {
            Ok(text) => say(&text),
            Err(error) => return fail(&error, Exit::Internal),
        }
    } else if pinned.is_empty() {
        say("nothing is pinned");
    } else {
        let row = |pin: &Pinned| {
            let by = if pin.configured { "configuration" } else { "command" };
            let cells =
                [pin.image.to_string(), format!("{:.1}", pin.bytes as f64 / 1e6), by.to_owned(), state(pin)];
            cells.into_iter().map(|cell| (cell, None)).collect()
        };
        let screen = Screen::detect(ColorChoice::Auto);
        say(screen
            .table(&["IMAGE", "MB", "PINNED BY", "STATE"], pinned.iter().map(row).collect())
            .trim_end());
    }
    if pinned.iter().all(|pin| pin.ready) { Exit::Clean } else { Exit::Incomplete }
}

/// Takes pins back.
pub async fn unpin(arguments: &UnpinArguments) -> Exit {
    let images = arguments.images.iter().map(|text| Image::short(text)).collect::<Result<Vec<_>, _>>();
    let images = match images {
        Ok(images) => images,
        Err(error) => return fail(&error, Exit::Usage),
    };
    match ask(&arguments.store, Request::Unpin { images: images.clone() }).await {
        Ok(_) => {
            images.iter().for_each(|image| say(&format!("{image} unpinned")));
            Exit::Clean
        }
        Err(error) => fail(&error, Exit::Usage),
    }
}

fn state(pin: &Pinned) -> String {
    match (pin.ready, &pin.problem) {
        (true, None) => "here".to_owned(),
        (true, Some(problem)) => format!("here; not looked up again: {problem}"),
        (false, None) => "not here yet".to_owned(),
        (false, Some(problem)) => format!("not here: {problem}"),
    }
}

/// The images of a list, one on each line.
fn listed(path: &Path) -> Result<Vec<String>, PinError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|source| PinError::List { path: path.to_owned(), source })?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
