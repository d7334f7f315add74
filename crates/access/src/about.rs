//! What a snapshot says of itself: which cluster, which kinds were listed, what could not be.

use serde::Deserialize;

use crate::{Gap, Snapshot};

/// Kind of the object in a snapshot that says what the snapshot holds; its group is `bailey.dev`. No cluster has such.
pub const ABOUT_KIND: &str = "SnapshotAbout";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct About {
    cluster: Option<String>,
    minor: Option<u16>,
    listed: Vec<String>,
    gaps: Vec<AboutGap>,
}

#[derive(Debug, Deserialize)]
struct AboutGap {
    what: String,
    why: String,
}

impl Snapshot {
    /// Takes over what snapshots say of themselves, and drops the objects that say it.
    pub fn read_about(&mut self) {
        for cluster in &mut self.clusters {
            let is_about =
                |object: &crate::ObjectFact| object.kind == ABOUT_KIND && object.group() == "bailey.dev";
            let found: Vec<About> = cluster
                .objects
                .iter()
                .filter(|object| is_about(object))
                .filter_map(|object| object.body.get("spec").cloned())
                .filter_map(|spec| serde_json::from_value(spec).ok())
                .collect();
            cluster.objects.retain(|object| !is_about(object));
            for about in found {
                if let (Some(name), "cluster") = (about.cluster, cluster.name.as_str()) {
                    cluster.name = name;
                }
                cluster.minor = cluster.minor.or(about.minor);
                cluster.listed.extend(about.listed);
                let name = cluster.name.clone();
                let gap = |gap: AboutGap| Gap { cluster: Some(name.clone()), what: gap.what, why: gap.why };
                self.gaps.extend(about.gaps.into_iter().map(gap));
            }
            cluster.listed.sort();
            cluster.listed.dedup();
        }
    }
}
