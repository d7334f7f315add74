//! The declared apps are where their modules say.

use bailey_testkit::{App, apps};

#[test]
fn every_declared_app_has_its_source() {
    for app in App::ALL {
        let path = apps::source(app).unwrap();
        let chart = path.join("Chart.yaml");
        let entry = if path.is_dir() { &chart } else { &path };
        assert!(std::fs::metadata(entry).unwrap().len() > 0, "{}", entry.display());
    }
}
