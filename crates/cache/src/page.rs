//! The one page of the admin port: what the cache holds, saves and cannot reach.

use std::fmt::Write as _;

use crate::cache::Cache;
use crate::metrics::Metrics;
use crate::upstream::Upstream;

const HEAD: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Bailey image cache</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1a1a1a; background: #fff }
table { border-collapse: collapse; width: 100% }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid #ccc }
th:first-child, td:first-child { text-align: left }
</style></head><body><main>
<h1>Image cache</h1>
";

/// Writes the page.
pub fn render(cache: &Cache) -> String {
    let usage = cache.store().usage();
    let mut page = HEAD.to_owned();
    let share = usage.used_bytes.saturating_mul(100).checked_div(usage.bytes_max).unwrap_or(0);
    let blobs = usage.blobs;
    let (used, limit) = (size(usage.used_bytes), size(usage.bytes_max));
    let mut line = |text: String| page.push_str(&text);
    line(format!(
        "<p>{blobs} blobs, {used} of {limit} ({share} %), {} being fetched.</p>\n",
        cache.fills_running()
    ));
    line("<table><thead><tr><th scope=\"col\">Upstream</th>".to_owned());
    for title in ["Hits", "Misses", "Served stale", "Saved", "Fetched", "Answers"] {
        line(format!("<th scope=\"col\">{title}</th>"));
    }
    line("</tr></thead><tbody>\n".to_owned());
    for upstream in cache.upstreams() {
        line(row(cache, upstream));
    }
    line("</tbody></table>\n".to_owned());
    line(pins(cache));
    line("<p><a href=\"/metrics\">Metrics</a></p>\n</main></body></html>\n".to_owned());
    page
}

fn row(cache: &Cache, upstream: &Upstream) -> String {
    let (metrics, name) = (&cache.metrics, upstream.name());
    let count = |family| Metrics::count(family, name);
    let state = match upstream.away_for() {
        Some(time) => format!("none for {} s", time.as_secs()),
        None if upstream.answer_millis() == 0.0 => "none yet".to_owned(),
        None => format!("in {:.0} ms", upstream.answer_millis()),
    };
    let mut row = String::new();
    // The names of registries hold nothing that HTML would read.
    let written = writeln!(
        row,
        "<tr><td>{name}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{state}</td></tr>",
        count(&metrics.hits),
        count(&metrics.misses),
        count(&metrics.stale_served),
        size(count(&metrics.bytes_hit)),
        size(count(&metrics.bytes_fetched)),
    );
    debug_assert!(written.is_ok(), "a string takes all");
    row
}

/// The pinned images, if there are any.
fn pins(cache: &Cache) -> String {
    let pins = cache.pinned();
    if pins.is_empty() {
        return String::new();
    }
    let ready = pins.iter().filter(|pin| pin.ready).count();
    let mut text = format!(
        "<h2>Pinned images</h2>\n<p>{ready} of {} are here.</p>\n<table><thead><tr><th scope=\"col\">Image</th>\
         <th scope=\"col\">Size</th><th scope=\"col\">State</th></tr></thead><tbody>\n",
        pins.len()
    );
    for pin in pins {
        let state = match (pin.ready, &pin.problem) {
            (true, None) => "here".to_owned(),
            (true, Some(problem)) => format!("here; not looked up again: {}", escaped(problem)),
            (false, None) => "being fetched".to_owned(),
            (false, Some(problem)) => format!("not here: {}", escaped(problem)),
        };
        // The names of images hold nothing that HTML would read.
        let (image, bytes) = (&pin.image, size(pin.bytes));
        text.push_str(&format!("<tr><td>{image}</td><td>{bytes}</td><td>{state}</td></tr>\n"));
    }
    text.push_str("</tbody></table>\n");
    text
}

/// Upstreams have a say in the words of a problem.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut rest, mut unit) = (bytes, 0);
    while rest >= 10_240 && unit + 1 < UNITS.len() {
        rest /= 1024;
        unit += 1;
    }
    format!("{rest} {}", UNITS.get(unit).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use bailey_testkit::registry::{Flavour, Http, Image, Layer, Upstream};

    use super::size;
    use crate::Config;
    use crate::config::UpstreamConfig;

    #[tokio::test]
    async fn the_admin_port_shows_what_was_served_and_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let upstream = Upstream::start().await.unwrap();
        upstream.push("acme/app", "v1", &Image::new(Flavour::Oci, 1, &[Layer::random(1, 10)]));
        let registry =
            UpstreamConfig::anonymous("registry.example".parse().unwrap(), upstream.url().parse().unwrap());
        let away =
            UpstreamConfig::anonymous("away.example".parse().unwrap(), "http://127.0.0.1:9".parse().unwrap());
        let config = Config::local(folder.path(), 1 << 30, vec![registry, away]);
        let cache = crate::start(config).await.unwrap();
        let refused = Http::new(cache.listen).get("/v2/away.example/acme/app/manifests/v1").await.unwrap();
        assert_eq!(refused.status, 503);
        for _ in 0..3 {
            let answer =
                Http::new(cache.listen).get("/v2/registry.example/acme/app/manifests/v1").await.unwrap();
            assert_eq!(answer.status, 200);
        }
        let show = async |path: &str| {
            let answer = Http::new(cache.admin).get(path).await.unwrap();
            String::from_utf8(answer.bytes().await.unwrap().to_vec()).unwrap()
        };
        let page = show("/").await;
        assert!(page.contains("<td>none yet</td>"), "{page}");
        assert!(page.contains("<tr><td>registry.example</td><td>2</td><td>1</td><td>0</td>"), "{page}");
        let metrics = show("/metrics").await;
        assert!(metrics.contains("bailey_cache_hits_total{upstream=\"registry.example\"} 2"), "{metrics}");
        assert_eq!(show("/readyz").await, "ok\n");
        cache.stop().await.unwrap();
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [size(0), size(10_239), size(10_240), size(3 << 40)],
            ["0 B", "10239 B", "10 KiB", "3072 GiB"]
        );
    }
}
