//! The manifests in `deploy/kubernetes` fit the program that they start. `scripts/manifests.sh`
//! checks them against the schemas of Kubernetes.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use firn_cluster::Layout;
use support::{firn, text};

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What follows a word, in each line that has it in front.
fn after<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.trim_start().strip_prefix(word)).collect()
}

#[test]
fn flags_of_the_manifests_are_settings_with_valid_values() {
    let directory = tempfile::tempdir().unwrap();
    for (file, pod) in [
        ("nodes.yaml", "firn-0"),
        ("pages/pages.yaml", "firn-pages-0"),
        ("replicas/replicas.yaml", "firn-replica-0"),
    ] {
        let manifest = read(&manifests().join(file)).replace("$(POD_NAME)", pod);
        let flags: Vec<String> =
            after(&manifest, "- --").into_iter().map(|flag| format!("--{flag}")).collect();
        assert!(flags.len() > 5, "{file}: {flags:?}");
        let mut arguments = vec!["admin", "configuration"];
        arguments.extend(flags.iter().map(String::as_str));
        let output = firn(directory.path(), &arguments, &[]);
        assert!(output.status.success(), "{file}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains(pod), "{file}: {}", text(&output.stdout));
    }
}

#[test]
fn the_scaler_takes_the_flags_of_its_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = read(&manifests().join("replicas/scaler.yaml"));
    let flags: Vec<String> =
        after(&manifest, "- --").into_iter().map(|flag| format!("--{flag}")).collect();
    assert!(flags.len() > 5, "{flags:?}");
    let mut arguments = vec!["cluster", "scale"];
    arguments.extend(flags.iter().map(String::as_str));
    let output = firn(directory.path(), &arguments, &[]);
    assert!(text(&output.stderr).contains("this is no pod"), "{}", text(&output.stderr));
}

/// Runs `prepare.sh` over a directory.
fn prepare(directory: &Path, arguments: &[&str]) {
    let output = Command::new(manifests().join("prepare.sh"))
        .arg(directory)
        .args(arguments)
        .env("FIRN", env!("CARGO_BIN_EXE_firn"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_prepared_overlay_has_what_the_pods_mount() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("production");
    prepare(&path, &["--pages", "--replicas"]);
    let layout = Layout::parse(&read(&path.join("cluster.toml"))).unwrap();
    let names: Vec<_> = layout.nodes().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["firn-0", "firn-1", "firn-2"]);

    let overlay = read(&path.join("kustomization.yaml"));
    let files: Vec<_> =
        after(&overlay, "- ").into_iter().filter_map(|line| line.split_once('=')).collect();
    for (key, file) in &files {
        assert!(path.join(file).exists(), "{key}: {file}");
    }
    let keys: BTreeSet<_> = files.iter().map(|(key, _)| *key).collect();
    let files =
        ["nodes.yaml", "pages/pages.yaml", "replicas/replicas.yaml", "replicas/scaler.yaml"];
    let mounted = files.map(|file| read(&manifests().join(file)));
    let wanted: BTreeSet<_> =
        mounted.iter().flat_map(|manifest| after(manifest, "- key: ")).collect();
    assert_eq!(keys, wanted);
    for name in [
        "firn-layout",
        "firn-certificates",
        "firn-pages-certificates",
        "firn-replica-certificates",
        "firn-scaler-certificates",
    ] {
        assert!(overlay.contains(&format!("- name: {name}\n")), "{overlay}");
        let named = mounted.iter().any(|manifest| manifest.contains(&format!("ame: {name}\n")));
        assert!(named, "nobody mounts {name}");
    }

    // The second time there are new certificates, for the same cluster and numbers.
    let certificate = path.join("certificates/nodes/firn-pages-1/certificate.pem");
    let before = read(&certificate);
    prepare(&path, &["--pages"]);
    assert_ne!(read(&certificate), before);
    assert_eq!(read(&path.join("kustomization.yaml")), overlay);
    let again = Layout::parse(&read(&path.join("cluster.toml"))).unwrap();
    assert_eq!(again, layout);
    let show = ["admin", "certificates", "show", "--dir", "certificates"];
    let shown = firn(&path, &show, &[]);
    assert!(text(&shown.stdout).contains("node 5 (firn-pages-1) pages: "), "{shown:?}");
}
