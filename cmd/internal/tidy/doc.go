// Package tidy checks the repository itself: that imports only go down the
// layers, that third-party clients stay in the package they belong to, that
// files stay small, that every package says what it is, that nothing forbidden
// is left in the text. It holds tests only; a failure says what to do instead.
package tidy
