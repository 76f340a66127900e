package redis

import (
	"bytes"
	"strconv"
)

// slotCount is how many slots a cluster's keys fall into.
const slotCount = 16384

// slotOf is the slot of a key, as the specification of Redis Cluster has it: CRC-16
// (XMODEM) of the key, or of what stands between its first { and the next } where that
// is not empty.
func slotOf(key []byte) uint16 {
	if _, after, ok := bytes.Cut(key, []byte("{")); ok {
		if tag, _, closed := bytes.Cut(after, []byte("}")); closed && len(tag) > 0 {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range key {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % slotCount
}

// slotTags gives for each slot a short text that falls into it.
func slotTags() []string {
	tags := make([]string, slotCount)
	for i, left := 0, slotCount; left > 0; i++ {
		text := strconv.FormatInt(int64(i), 36)
		if s := slotOf([]byte(text)); tags[s] == "" {
			tags[s] = text
			left--
		}
	}
	return tags
}
