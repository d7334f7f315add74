//! What an `ImageCache` comes to, printed instead of applied: `bailey cache manifests` and `bailey cache bootstrap`.

mod bootstrap;

use bailey_api::ImageCache;
use bailey_guardrails::{NodeFiles, management_cache, workload_manifests};
use serde_json::Value;

use crate::args::{CacheBootstrapArguments, CacheManifestsArguments, CacheSite};
use crate::output::yaml;
use crate::{CliError, Exit, fail, manifests};

/// What is to be applied, and what the caches in it are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheManifests {
    /// A stream of YAML documents.
    pub text: String,
    /// The configuration files of the caches.
    pub configs: Vec<String>,
}

/// Prints the images without which a cluster does not start, or which of them are not pinned.
pub fn cache_bootstrap(arguments: &CacheBootstrapArguments) -> Exit {
    let answer = bootstrap::run(arguments).and_then(|output| output.print().map(|()| output.exit));
    answer.unwrap_or_else(|error| fail(&error))
}

/// Builds the manifests of all ImageCaches in the files.
pub fn cache_manifests(arguments: &CacheManifestsArguments) -> Result<CacheManifests, CliError> {
    let mut built = CacheManifests { text: String::new(), configs: Vec::new() };
    let found = manifests::read(&arguments.files)?;
    let image = arguments.image.as_deref();
    let files = if arguments.remove_files { NodeFiles::Removed } else { NodeFiles::Written };
    for manifest in found.iter().filter(|manifest| manifest.is("ImageCache")) {
        let cache: ImageCache = serde_json::from_value(manifest.object.clone())
            .map_err(|error| manifest.error(format!("cannot be read: {error}")))?;
        let objects = match arguments.site {
            CacheSite::WorkloadCluster => workload_manifests(&cache, image, files),
            CacheSite::ManagementCluster => management_cache(&cache, image).map(|built| built.objects),
        };
        for mut object in objects.map_err(|problem| manifest.error(problem.to_string()))? {
            if let Some(metadata) = object.content.get_mut("metadata").and_then(Value::as_object_mut) {
                // Nothing owns what is applied by hand.
                metadata.remove("ownerReferences");
            }
            let config = object.content.pointer("/data/cache.yaml").and_then(Value::as_str);
            built.configs.extend(config.map(str::to_owned));
            built.text.push_str("---\n");
            built.text.push_str(&yaml(&object.content)?);
        }
    }
    if built.text.is_empty() {
        return Err(CliError::Usage("the files hold no ImageCache of bailey.dev/v1alpha1".to_owned()));
    }
    Ok(built)
}
