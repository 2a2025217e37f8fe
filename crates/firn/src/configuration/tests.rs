#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::setting::SETTINGS;
use super::sources::{gather, parse_file};
use super::*;

/// Merges the three sources; the file, if any, is called `firn.toml`.
fn merge(
    file: &str,
    variables: &[(&str, &str)],
    flags: &[(&'static str, &str)],
) -> Result<Configuration, ConfigurationError> {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    let flags = flags.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let mut sources = gather(None, flags, variables)?;
    sources.given.splice(0..0, parse_file(Path::new("firn.toml"), file)?);
    Configuration::merge(&sources)
}

/// The message of a refused configuration.
fn refused(configuration: Result<Configuration, ConfigurationError>, expected: &Expect) {
    expected.assert_eq(&configuration.expect_err("a bad setting was taken").to_string());
}

#[test]
fn defaults_are_valid() {
    let configuration = merge("", &[], &[]).unwrap();
    assert_eq!(configuration.buffer_pool.value, Size(512 << 20));
    assert_eq!(configuration.log_segment_size.value, Size(64 << 20));
    assert_eq!(configuration.history_window_seconds.value, 0);
    assert_eq!(configuration.materialise_behind_limit.value, Size(1 << 30));
    assert_eq!(configuration.log_level.value, LevelFilter::WARN);
    assert!(configuration.rows().iter().all(|(_, _, origin)| **origin == Origin::Default));
}

#[test]
fn rows_follow_the_table_of_settings() {
    let configuration = merge("", &[], &[]).unwrap();
    assert_eq!(configuration.rows().map(|(name, ..)| name), SETTINGS.map(|setting| setting.name));
}

#[test]
fn the_documentation_has_every_setting_with_its_default() {
    let page = include_str!("../../../../docs/configuration.md");
    for setting in &SETTINGS {
        let row = match setting.default {
            "" => format!("| `{}` | |", setting.name),
            default => format!("| `{}` | `{default}` |", setting.name),
        };
        assert!(page.contains(&row), "docs/configuration.md has no row {row}");
    }
}

#[test]
fn a_flag_outweighs_a_variable_outweighs_the_file() {
    let file = "buffer_pool = '1G'\nlog_level = \"info\"\nhistory_window_seconds = 60\n";
    let variables = [("FIRN_BUFFER_POOL", "2G"), ("FIRN_LOG_LEVEL", "debug")];
    let configuration = merge(file, &variables, &[(BUFFER_POOL, "4G")]).unwrap();
    assert_eq!(
        configuration.buffer_pool,
        Placed { value: Size(4 << 30), origin: Origin::Flag("buffer-pool".to_owned()) }
    );
    assert_eq!(
        configuration.log_level,
        Placed { value: LevelFilter::DEBUG, origin: Origin::Variable("FIRN_LOG_LEVEL".to_owned()) }
    );
    assert_eq!(
        configuration.history_window_seconds,
        Placed { value: 60, origin: Origin::File { path: "firn.toml".into(), line: 3 } }
    );
}

#[test]
fn a_size_in_the_file_may_be_a_plain_number() {
    let configuration = merge("buffer_pool = 268435456", &[], &[]).unwrap();
    assert_eq!(configuration.buffer_pool.value, Size(256 << 20));
}

#[test]
fn a_refusal_names_the_file_and_the_line() {
    refused(
        merge("# a comment\n\nbuffer_pool = \"12Q\"\n", &[], &[]),
        &expect![
            "firn.toml:3: buffer_pool: '12Q' is not a size; write a whole number of bytes, or one with K, M, G or T after it, such as 512M, 512MB or 512MiB"
        ],
    );
    refused(
        merge("log_level = \"warn\"\nbufer_pool = \"1G\"\n", &[], &[]),
        &expect![
            "firn.toml:2: there is no setting 'bufer_pool'; there are: data_dir, listen, socket, max_connections, metrics_listen, shutdown_patience_seconds, tls_certificate, tls_key, secure_file_priv, buffer_pool, memory_budget, log_segment_size, asynchronous_commit, history_window_seconds, materialise_behind_limit, archive, archive_interval_seconds, archive_window_hours, archive_log_limit, cluster_layout, node_name, join, role, zone, asynchronous_zone, cluster_listen, cluster_address, cluster_certificates, replica_snapshot_seconds, pause_after_idle_seconds, writer_wait_seconds, log_level"
        ],
    );
    refused(
        merge("\n\nbuffer_pool = true\n", &[], &[]),
        &expect!["firn.toml:3: buffer_pool: is of type boolean; write a string or a whole number"],
    );
    refused(
        merge("[storage]\nbuffer_pool = 1\n", &[], &[]),
        &expect![
            "firn.toml:1: there is no setting 'storage'; there are: data_dir, listen, socket, max_connections, metrics_listen, shutdown_patience_seconds, tls_certificate, tls_key, secure_file_priv, buffer_pool, memory_budget, log_segment_size, asynchronous_commit, history_window_seconds, materialise_behind_limit, archive, archive_interval_seconds, archive_window_hours, archive_log_limit, cluster_layout, node_name, join, role, zone, asynchronous_zone, cluster_listen, cluster_address, cluster_certificates, replica_snapshot_seconds, pause_after_idle_seconds, writer_wait_seconds, log_level"
        ],
    );
}

#[test]
fn a_broken_file_is_refused_where_it_breaks() {
    refused(
        merge("data_dir = \"x\"\nbuffer_pool =\n", &[], &[]),
        &expect!["firn.toml:2: string values must be quoted, expected literal string"],
    );
    refused(
        merge("data_dir = \"x\"\ndata_dir = \"y\"\n", &[], &[]),
        &expect!["firn.toml:2: duplicate key"],
    );
}

#[test]
fn a_refusal_names_the_variable_or_the_flag() {
    refused(
        merge("", &[("FIRN_LOG_LEVEL", "loud")], &[]),
        &expect![
            "FIRN_LOG_LEVEL: log_level: 'loud' is none of off, error, warn, info, debug and trace"
        ],
    );
    refused(
        merge("asynchronous_commit = \"sometimes\"", &[], &[]),
        &expect!["firn.toml:1: asynchronous_commit: 'sometimes' is none of off, auto and on"],
    );
    refused(
        merge("", &[], &[(HISTORY_WINDOW_SECONDS, "-1")]),
        &expect![
            "--history-window-seconds: history_window_seconds: '-1' is not a whole number of seconds"
        ],
    );
    refused(
        merge("", &[], &[(BUFFER_POOL, "1M")]),
        &expect!["--buffer-pool: buffer_pool: '1M' is not between 8M and 16T"],
    );
    refused(merge("", &[], &[(DATA_DIR, "")]), &expect!["--data-dir: data_dir: '' is empty"]);
}

#[test]
fn the_buffer_pool_is_what_a_budget_leaves_unless_it_was_set() {
    let pool_and_budget = |file: &str| {
        let plan = merge(file, &[], &[]).unwrap().memory_plan();
        (plan.buffer_pool_bytes >> 20, plan.budget_bytes >> 20)
    };
    assert_eq!(pool_and_budget(""), (512, 821));
    assert_eq!(pool_and_budget("memory_budget = '1G'"), (655, 1024));
    assert_eq!(pool_and_budget("memory_budget = '1G'\nbuffer_pool = '64M'"), (64, 1024));
}

#[test]
fn values_that_do_not_fit_each_other_are_refused() {
    refused(
        merge("memory_budget = '512M'\nbuffer_pool = '512M'\n", &[], &[]),
        &expect![
            "firn.toml:1: memory_budget: '512M' is less than the 736M that a node with buffer_pool = 512M needs"
        ],
    );
    refused(
        merge("memory_budget = '16M'\n", &[], &[]),
        &expect![
            "firn.toml:1: memory_budget: '16M' is less than the 95M that a node with buffer_pool = 8M needs"
        ],
    );
    refused(
        merge("log_segment_size = \"1G\"\n", &[("FIRN_MATERIALISE_BEHIND_LIMIT", "1G")], &[]),
        &expect![
            "FIRN_MATERIALISE_BEHIND_LIMIT: materialise_behind_limit: '1G' is less than two log files, which log_segment_size = 1G makes 2G"
        ],
    );
    refused(
        merge("log_segment_size = 1048577", &[], &[]),
        &expect!["firn.toml:1: log_segment_size: '1048577' is not a multiple of 4K"],
    );
}

#[test]
fn a_variable_that_is_no_text_is_refused() {
    let variables = [(OsString::from("FIRN_DATA_DIR"), OsString::from_vec(vec![0xff]))];
    let error = gather(None, std::iter::empty(), variables.into_iter()).unwrap_err();
    expect!["FIRN_DATA_DIR: is not valid UTF-8"].assert_eq(&error.to_string());
}

#[test]
fn a_variable_that_names_no_setting_is_reported() {
    let configuration =
        merge("", &[("FIRN_SERVICE_PORT", "1"), ("HOME", "/"), ("FIRN_BUFER", "2")], &[]).unwrap();
    assert_eq!(configuration.unknown_variables, ["FIRN_BUFER", "FIRN_SERVICE_PORT"]);
}

#[test]
fn the_file_of_the_flag_outweighs_that_of_the_variable() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("flag.toml"), "log_level = \"info\"").unwrap();
    let variables =
        || std::iter::once((CONFIGURATION_VARIABLE.into(), path("absent.toml").into_os_string()));
    let flag = path("flag.toml");
    let sources = gather(flag.to_str(), std::iter::empty(), variables()).unwrap();
    assert_eq!(Configuration::merge(&sources).unwrap().log_level.value, LevelFilter::INFO);
    let error = gather(None, std::iter::empty(), variables()).unwrap_err();
    assert!(
        matches!(error, ConfigurationError::Unreadable { path, .. } if path.ends_with("absent.toml"))
    );
}

proptest! {
    #[test]
    fn any_file_is_answered(text in ".*") {
        let _ = parse_file(Path::new("firn.toml"), &text);
    }

    #[test]
    fn any_value_is_answered(index in 0..SETTINGS.len(), text in ".*") {
        let _ = merge("", &[], &[(SETTINGS[index].name, &text)]);
    }
}

#[test]
fn a_process_that_joins_says_what_it_is() {
    let whole = [
        (JOIN, "127.0.0.1:7401,127.0.0.1:7402"),
        (NODE_NAME, "pages-3"),
        (ROLE, "pages"),
        (CLUSTER_LISTEN, "127.0.0.1:7409"),
    ];
    let configuration = merge("", &[], &whole).unwrap();
    assert_eq!(configuration.join.value.0.len(), 2);
    assert_eq!(configuration.join.value.to_string(), whole[0].1);
    assert_eq!(configuration.role.value.roles().to_string(), "pages");
    for text in ["log,database", "database+log"] {
        let roles = text.parse::<super::lists::RoleList>().unwrap().roles();
        assert_eq!(roles.to_string(), "database+log");
    }
    for missing in 0..whole.len() {
        let mut some = whole.to_vec();
        let (name, _) = some.remove(missing);
        let left = merge("", &[], &some);
        assert!(left.is_err(), "{name} is missing");
    }
    let with = |name: &'static str, value: &'static str| {
        let mut settings = whole.to_vec();
        settings.retain(|(other, _)| *other != name);
        settings.push((name, value));
        settings
    };
    let everywhere = with(CLUSTER_LISTEN, "0.0.0.0:7400");
    refused(
        merge("", &[], &everywhere),
        &expect![
            "--cluster-listen: cluster_listen: '0.0.0.0:7400' is nowhere that others reach; give cluster_address as well"
        ],
    );
    let named = [&everywhere[..], &[(CLUSTER_ADDRESS, "pages-3.example:7409")]].concat();
    let configuration = merge("", &[], &named).unwrap();
    let address = configuration.joining_address().unwrap();
    assert_eq!(address.to_string(), "pages-3.example:7409");
    refused(
        merge("", &[], &with(CLUSTER_ADDRESS, "pages-3")),
        &expect![
            "--cluster-address: cluster_address: 'pages-3' is no address of a node; write HOST:PORT"
        ],
    );
    refused(
        merge("", &[], &[(CLUSTER_ADDRESS, "pages-3.example:7409")]),
        &expect![
            "--cluster-address: cluster_address: 'pages-3.example:7409' needs join; the address of a node of a layout is there"
        ],
    );
    refused(
        merge("", &[], &[(ZONE, "west")]),
        &expect!["--zone: zone: 'west' needs join; the zone of a node of a layout is there"],
    );
    refused(
        merge("", &[], &with(JOIN, "firn-0.firn:7400, unix:/run/firn")),
        &expect![
            "--join: join: 'firn-0.firn:7400, unix:/run/firn' has 'unix:/run/firn', which is no address; write HOST:PORT,HOST:PORT"
        ],
    );
    refused(
        merge("", &[], &[(ROLE, "page")]),
        &expect![
            "--role: role: 'page' has 'page', which is none of compute, database, log, pages, control, replica, proxy"
        ],
    );
}
