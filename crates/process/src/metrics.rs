//! Metrics that every role has, and the text form in which they are scraped.

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// The media type of [`openmetrics`].
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Makes a registry that already holds `bailey_build_info{version="…"}`.
///
/// Roles register their own metrics under names that start with `bailey_`.
pub fn registry(version: &'static str) -> Registry {
    let mut registry = Registry::default();
    registry.register("bailey_build", "The version of Bailey that runs", Info::new([("version", version)]));
    registry
}

/// Writes a registry in the OpenMetrics text format.
pub fn openmetrics(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_build_metric_names_the_version() {
        let text = super::openmetrics(&super::registry("1.2.3")).unwrap();
        assert!(text.contains("bailey_build_info{version=\"1.2.3\"} 1\n"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
