package record

import "encoding/binary"

// Murmur2 is the 32-bit hash that Kafka's clients place keys with.
func Murmur2(key []byte) uint32 {
	const (
		seed uint32 = 0x9747b28c
		m    uint32 = 0x5bd1e995
		r           = 24
	)
	h := seed ^ uint32(len(key))
	for len(key) >= 4 {
		k := binary.LittleEndian.Uint32(key)
		k *= m
		k ^= k >> r
		k *= m
		h *= m
		h ^= k
		key = key[4:]
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(key[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return h
}

// PartitionOf is the partition, 0 to partitions-1, that Kafka's default
// partitioner gives a key. partitions must be positive.
func PartitionOf(key []byte, partitions int) int {
	return int(Murmur2(key)&0x7fffffff) % partitions
}
