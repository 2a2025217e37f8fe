//! Settings of MySQL that Firn knows and keeps, but that change nothing: what they tune does not
//! exist here, or tunes itself. Clients and tests set them, so they are there, with MySQL's ranges
//! and defaults.
//!
//! Invariant: sorted by name.

use super::Scope::{Both, Global};
use super::{Definition, Kind, Scope};

const fn setting(
    name: &'static str,
    scope: Scope,
    kind: Kind,
    default: &'static str,
) -> Definition {
    Definition { name, scope, kind, default, read_only: false }
}

const fn switch(name: &'static str, scope: Scope, default: &'static str) -> Definition {
    setting(name, scope, Kind::Switch, default)
}

const fn number(
    name: &'static str,
    scope: Scope,
    least: i64,
    greatest: u64,
    default: &'static str,
) -> Definition {
    setting(name, scope, Kind::Number { least, greatest }, default)
}

const fn real(
    name: &'static str,
    scope: Scope,
    least: f64,
    greatest: f64,
    default: &'static str,
) -> Definition {
    setting(name, scope, Kind::Real { least, greatest }, default)
}

const fn words(
    name: &'static str,
    scope: Scope,
    words: &'static [&'static str],
    default: &'static str,
) -> Definition {
    setting(name, scope, Kind::Word(words), default)
}

const fn text(name: &'static str, scope: Scope, default: &'static str) -> Definition {
    setting(name, scope, Kind::Text, default)
}

/// All of them.
#[rustfmt::skip] // One line each.
pub(super) static WITHOUT_EFFECT: &[Definition] = &[
    number("binlog_cache_size", Global, 4096, 18446744073709547520, "32768"),
    words("binlog_error_action", Global, &["IGNORE_ERROR", "ABORT_SERVER"], "ABORT_SERVER"),
    switch("binlog_expire_logs_auto_purge", Global, "ON"),
    number("binlog_expire_logs_seconds", Global, 0, 4294967295, "2592000"),
    number("binlog_group_commit_sync_delay", Global, 0, 1000000, "0"),
    number("binlog_group_commit_sync_no_delay_count", Global, 0, 100000, "0"),
    number("binlog_max_flush_queue_time", Global, 0, 100000, "0"),
    switch("binlog_order_commits", Global, "ON"),
    text("binlog_row_value_options", Both, ""),
    switch("binlog_rows_query_log_events", Both, "OFF"),
    number("binlog_stmt_cache_size", Global, 4096, 18446744073709547520, "32768"),
    switch("binlog_transaction_compression", Both, "OFF"),
    number("binlog_transaction_compression_level_zstd", Both, 1, 22, "3"),
    number("binlog_transaction_dependency_history_size", Global, 1, 100000000, "10000000"),
    number("delayed_insert_limit", Global, 1, u64::MAX, "100"),
    number("delayed_insert_timeout", Global, 1, 31536000, "300"),
    number("delayed_queue_size", Global, 1, u64::MAX, "1000"),
    number("explain_json_format_version", Both, 1, 2, "2"),
    number("host_cache_size", Global, 0, 65536, "628"),
    switch("innodb_adaptive_flushing", Global, "ON"),
    number("innodb_adaptive_flushing_lwm", Global, 0, 70, "10"),
    number("innodb_adaptive_max_sleep_delay", Global, 0, 1000000, "150000"),
    number("innodb_autoextend_increment", Global, 1, 1000, "64"),
    switch("innodb_buffer_pool_dump_at_shutdown", Global, "ON"),
    number("innodb_buffer_pool_dump_pct", Global, 1, 100, "25"),
    text("innodb_buffer_pool_filename", Global, "ib_buffer_pool"),
    switch("innodb_buffer_pool_in_core_file", Global, "OFF"),
    number("innodb_change_buffer_max_size", Global, 0, 50, "5"),
    words("innodb_change_buffering", Global, &["none", "inserts", "deletes", "changes", "purges", "all"], "all"),
    words("innodb_checksum_algorithm", Global, &["crc32", "strict_crc32", "innodb", "strict_innodb", "none", "strict_none"], "crc32"),
    switch("innodb_cmp_per_index_enabled", Global, "OFF"),
    number("innodb_commit_concurrency", Global, 0, 1000, "0"),
    number("innodb_compression_failure_threshold_pct", Global, 0, 100, "5"),
    number("innodb_compression_level", Global, 0, 9, "6"),
    number("innodb_compression_pad_pct_max", Global, 0, 75, "50"),
    number("innodb_concurrency_tickets", Global, 1, 4294967295, "5000"),
    number("innodb_ddl_buffer_size", Both, 65536, 4294967295, "1048576"),
    number("innodb_ddl_threads", Both, 1, 64, "4"),
    switch("innodb_disable_sort_file_cache", Global, "OFF"),
    switch("innodb_extend_and_initialize", Global, "ON"),
    number("innodb_fill_factor", Global, 10, 100, "100"),
    number("innodb_flush_log_at_timeout", Global, 0, 2700, "1"),
    number("innodb_flush_neighbors", Global, 0, 2, "0"),
    switch("innodb_flush_sync", Global, "ON"),
    number("innodb_flushing_avg_loops", Global, 1, 1000, "30"),
    number("innodb_fsync_threshold", Global, 0, u64::MAX, "0"),
    switch("innodb_ft_enable_diag_print", Global, "OFF"),
    number("innodb_ft_num_word_optimize", Global, 1000, 10000, "2000"),
    number("innodb_ft_result_cache_limit", Global, 1000000, 4294967295, "2000000000"),
    text("innodb_ft_server_stopword_table", Global, ""),
    text("innodb_ft_user_stopword_table", Both, ""),
    number("innodb_idle_flush_pct", Global, 0, 100, "100"),
    number("innodb_io_capacity", Global, 100, 4294967295, "10000"),
    number("innodb_io_capacity_max", Global, 100, 4294967295, "20000"),
    switch("innodb_log_checksums", Global, "ON"),
    switch("innodb_log_compressed_pages", Global, "ON"),
    number("innodb_log_spin_cpu_abs_lwm", Global, 0, 4294967295, "80"),
    number("innodb_log_spin_cpu_pct_hwm", Global, 0, 100, "50"),
    number("innodb_log_wait_for_flush_spin_hwm", Global, 0, 4294967295, "400"),
    number("innodb_log_write_ahead_size", Global, 512, 16384, "8192"),
    words("innodb_log_writer_threads", Global, &["OFF", "ON"], "OFF"),
    number("innodb_lru_scan_depth", Global, 100, 4294967295, "1024"),
    real("innodb_max_dirty_pages_pct_lwm", Global, 0.0, 99.0, "10.000000"),
    number("innodb_max_purge_lag", Global, 0, 4294967295, "0"),
    number("innodb_max_purge_lag_delay", Global, 0, 10000000, "0"),
    number("innodb_max_undo_log_size", Global, 10485760, u64::MAX, "1073741824"),
    number("innodb_old_blocks_pct", Global, 5, 95, "37"),
    number("innodb_old_blocks_time", Global, 0, 4294967295, "1000"),
    number("innodb_online_alter_log_max_size", Global, 65536, u64::MAX, "134217728"),
    switch("innodb_optimize_fulltext_only", Global, "OFF"),
    number("innodb_parallel_read_threads", Both, 1, 256, "4"),
    switch("innodb_print_ddl_logs", Global, "OFF"),
    number("innodb_purge_batch_size", Global, 1, 5000, "300"),
    number("innodb_purge_rseg_truncate_frequency", Global, 1, 128, "128"),
    switch("innodb_random_read_ahead", Global, "OFF"),
    number("innodb_read_ahead_threshold", Global, 0, 64, "56"),
    text("innodb_redo_log_archive_dirs", Global, ""),
    number("innodb_redo_log_capacity", Global, 8388608, 549755813888, "1073741824"),
    number("innodb_replication_delay", Global, 0, 4294967295, "0"),
    number("innodb_rollback_segments", Global, 1, 128, "128"),
    real("innodb_segment_reserve_factor", Global, 0.0, 40.0, "12.500000"),
    number("innodb_spin_wait_delay", Global, 0, 1000, "6"),
    number("innodb_spin_wait_pause_multiplier", Global, 0, 100, "50"),
    switch("innodb_stats_include_delete_marked", Global, "OFF"),
    words("innodb_stats_method", Global, &["nulls_equal", "nulls_unequal", "nulls_ignored"], "nulls_equal"),
    number("innodb_stats_persistent_sample_pages", Global, 1, u64::MAX, "20"),
    number("innodb_stats_transient_sample_pages", Global, 1, u64::MAX, "8"),
    switch("innodb_status_output", Global, "OFF"),
    switch("innodb_status_output_locks", Global, "OFF"),
    number("innodb_sync_spin_loops", Global, 0, 4294967295, "30"),
    number("innodb_thread_concurrency", Global, 0, 1000, "0"),
    number("innodb_thread_sleep_delay", Global, 0, 1000000, "10000"),
    switch("innodb_undo_log_truncate", Global, "ON"),
    switch("innodb_use_fdatasync", Global, "ON"),
    words("internal_tmp_mem_storage_engine", Both, &["MEMORY", "TempTable"], "TempTable"),
    number("join_buffer_size", Both, 128, 18446744073709551488, "262144"),
    number("key_cache_age_threshold", Global, 100, 18446744073709551600, "300"),
    number("key_cache_block_size", Global, 512, 16384, "1024"),
    number("key_cache_division_limit", Global, 1, 100, "100"),
    switch("log_slow_replica_statements", Global, "OFF"),
    switch("log_slow_slave_statements", Global, "OFF"),
    switch("log_statements_unsafe_for_binlog", Global, "ON"),
    number("log_throttle_queries_not_using_indexes", Global, 0, u64::MAX, "0"),
    words("log_timestamps", Global, &["UTC", "SYSTEM"], "UTC"),
    number("max_binlog_cache_size", Global, 4096, 18446744073709547520, "18446744073709547520"),
    number("max_binlog_size", Global, 4096, 1073741824, "1073741824"),
    number("max_binlog_stmt_cache_size", Global, 4096, 18446744073709547520, "18446744073709547520"),
    number("myisam_data_pointer_size", Global, 2, 7, "6"),
    number("myisam_max_sort_file_size", Global, 0, 9223372036854775807, "9223372036853727232"),
    number("myisam_sort_buffer_size", Both, 4096, u64::MAX, "8388608"),
    words("myisam_stats_method", Both, &["nulls_unequal", "nulls_equal", "nulls_ignored"], "nulls_unequal"),
    switch("myisam_use_mmap", Global, "OFF"),
    number("optimizer_max_subgraph_pairs", Both, 1, 2147483647, "100000"),
    text("optimizer_trace_features", Both, "greedy_search=on,range_optimizer=on,dynamic_range=on,repeated_subselect=on"),
    number("optimizer_trace_limit", Both, 0, 9223372036854775807, "1"),
    number("optimizer_trace_max_mem_size", Both, 0, u64::MAX, "1048576"),
    number("optimizer_trace_offset", Both, -9223372036854775808, 9223372036854775807, "-1"),
    number("performance_schema_max_digest_sample_age", Global, 0, 1048576, "60"),
    switch("performance_schema_show_processlist", Global, "OFF"),
    number("regexp_stack_limit", Global, 0, 2147483647, "8000000"),
    number("regexp_time_limit", Global, 0, 2147483647, "32"),
    number("select_into_buffer_size", Both, 8192, 2147479552, "131072"),
    switch("select_into_disk_sync", Both, "OFF"),
    number("select_into_disk_sync_delay", Both, 0, 31536000, "0"),
    number("server_id_bits", Global, 0, 32, "32"),
    number("set_operations_buffer_size", Both, 16384, 18446744073709550592, "262144"),
    number("table_open_cache_triggers", Global, 1, 524288, "524288"),
    number("temptable_max_mmap", Global, 0, u64::MAX, "0"),
    number("temptable_max_ram", Global, 2097152, u64::MAX, "1073741824"),
];
