// Package tlsfiles has the options of TLS that connectors share: the authorities that
// a server's certificate is checked against, and this client's own certificate, as PEM
// files.
//
// It does not decide whether TLS is used, which a table's URL or another option says, and
// it is not for Kafka, whose clients have names of their own for these. Files are read when
// a table is opened.
//
// It has no state. A tls.Config that it gives is the caller's.
package tlsfiles
