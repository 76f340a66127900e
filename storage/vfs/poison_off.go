//go:build !faults

package vfs

// PoisonAlways says that all memory that is used again is overwritten when it is given
// back.
const PoisonAlways = false
