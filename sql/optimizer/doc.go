// Package optimizer rewrites logical plans, one rule a file.
//
// A rule keeps what the plan means to the last row (Invariant 7): the same
// rows, and the same rows dead. Since errors are values that fail a row only
// where they decide, expressions may move freely between projections, but a
// filter must not pass a node that can fail rows (UNNEST, a window, another
// filter): the row would be filtered instead of dead.
//
// Rules: flatten_unions, push_filter, merge_projects, fold_constants,
// prune_partitions, prune_columns, drop_identity. Run applies them in this order;
// each is one pass. prune_partitions alone leaves input unread: records of table
// partitions that no query asks for are not met, good or bad.
// With the optimizer off a plan lowers as it was bound, with the same result.
package optimizer
