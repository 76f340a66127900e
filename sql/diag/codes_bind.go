package diag

// Codes of names, types and statements, reported by the binder.
const (
	CodeNotYet             Code = "not_yet"
	CodeBadType            Code = "bad_type"
	CodeTypeMismatch       Code = "type_mismatch"
	CodeBadArgument        Code = "bad_argument"
	CodeBadLiteral         Code = "bad_literal"
	CodeUnknownTable       Code = "unknown_table"
	CodeUnknownColumn      Code = "unknown_column"
	CodeUnknownField       Code = "unknown_field"
	CodeUnknownFunction    Code = "unknown_function"
	CodeUnknownMetadata    Code = "unknown_metadata"
	CodeAmbiguousColumn    Code = "ambiguous_column"
	CodeDuplicateTable     Code = "duplicate_table"
	CodeDuplicateColumn    Code = "duplicate_column"
	CodeColumnCount        Code = "column_count"
	CodeUntypedNull        Code = "untyped_null"
	CodeNotGrouped         Code = "not_grouped"
	CodeMisplacedAggregate Code = "misplaced_aggregate"
	CodeRowTime            Code = "row_time"
	CodeBadWindow          Code = "bad_window"
	CodeBadTable           Code = "bad_table"
	CodeBadPartition       Code = "bad_partition"
	CodeBadKey             Code = "bad_key"
	CodeBadLike            Code = "bad_like"
	CodeBadLoop            Code = "bad_loop"
	CodeBadWatermark       Code = "bad_watermark"
	CodeNotASource         Code = "not_a_source"
	CodeNotASink           Code = "not_a_sink"
	CodeSelectInJob        Code = "select_in_job"
	CodeStatementInJob     Code = "statement_in_job"
	CodeNothingToRun       Code = "nothing_to_run"
	CodeNondeterministic   Code = "nondeterministic"
	CodeUpdatingIntoAppend Code = "updating_into_append"
	CodeUnboundedInBatch   Code = "unbounded_in_batch"
	CodeBoundedOnly        Code = "bounded_only"
	CodeTopicBothWays      Code = "topic_both_ways"
	CodeNotReplaceable     Code = "not_replaceable"
	CodeOverwriteTwice     Code = "overwrite_twice"
	CodeStateName          Code = "state_name"
	CodeWideTable          Code = "wide_table"
	CodeInternal           Code = "internal"
)

// Codes of options and settings.
const (
	CodeUnknownOption         Code = "unknown_option"
	CodeBadOption             Code = "bad_option"
	CodeMissingOption         Code = "missing_option"
	CodeDuplicateOption       Code = "duplicate_option"
	CodeUnknownConnector      Code = "unknown_connector"
	CodeNoEffect              Code = "no_effect"
	CodeConflictingSetting    Code = "conflicting_setting"
	CodePartitionCommitPolicy Code = "partition_commit_policy"
	CodeZoneConflict          Code = "zone_conflict"
)

// Codes of lints.
const (
	CodeColumnNameMismatch Code = "column_name_mismatch"
	CodeClockInFilter      Code = "clock_in_filter"
	CodeDatePattern        Code = "date_pattern"
	CodeDSTWindow          Code = "dst_window"
	CodeIntegerAverage     Code = "integer_average"
	CodeUnboundedState     Code = "unbounded_state"
	CodeUnusedColumn       Code = "unused_column"
)
