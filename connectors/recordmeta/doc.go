// Package recordmeta fills the metadata columns of tables over topics of records: topic,
// partition, offset, timestamp and its type, leader epoch, headers. The log's and
// Kafka's connectors have the same ones.
//
// A [Column] is made once and used for each record, without allocating; a [Place] says
// which record it is.
package recordmeta
