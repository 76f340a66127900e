package kafkaproto

import "time"

// SetClock gives a server's options another clock.
func SetClock(o *Options, now func() time.Time) { o.now = now }
