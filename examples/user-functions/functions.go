package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/jobs/userfunc"
)

// functions are what SQL gets from this program.
func functions() (*userfunc.Set, error) {
	return userfunc.NewSet(
		userfunc.Scalar1("MASK_EMAIL", maskEmail, userfunc.Options{
			Doc: "Hides the name in an e-mail address but for its first letter. What is no address is an error.",
		}),
		userfunc.Table1("DOMAIN_LEVELS", []string{"domain", "level"}, domainLevels, userfunc.Options{
			Doc: "The domains that an e-mail address lies in: of a@mail.example.org, org (1), example.org (2), mail.example.org (3).",
		}),
		userfunc.Aggregate1("WEEKDAYS", weekdays, userfunc.Options{
			Doc: "The days of the week (in UTC) on which there are rows, from Monday, e.g. 'Mon Fri'.",
		}),
	)
}

func maskEmail(address string) (string, error) {
	name, domain, ok := strings.Cut(address, "@")
	if !ok || name == "" || domain == "" {
		return "", errors.New("not an e-mail address")
	}
	return name[:1] + "***@" + domain, nil
}

func domainLevels(address string, out *userfunc.Emit2[string, int32]) error {
	_, domain, ok := strings.Cut(address, "@")
	if !ok {
		return errors.New("not an e-mail address")
	}
	level := int32(1)
	for i := len(domain) - 1; i >= 0; i-- {
		if i == 0 || domain[i-1] == '.' {
			out.Row(domain[i:], level)
			level++
		}
	}
	return nil
}

// days is a set of weekdays, a bit each. Neither the order of rows nor how often one
// comes makes a difference to it, as an aggregate's state must have it.
type days uint8

var weekdays = userfunc.Fold1[time.Time, days, string]{
	Add: func(s *days, t time.Time) error { *s |= 1 << t.Weekday(); return nil },
	State: userfunc.State[days, string]{
		Merge:  func(into, from *days) error { *into |= *from; return nil },
		Result: func(s *days) (string, error) { return s.String(), nil },
		Save:   func(dst []byte, s *days) []byte { return append(dst, byte(*s)) },
		Load: func(s *days, saved []byte) error {
			if len(saved) != 1 {
				return fmt.Errorf("%d bytes instead of 1", len(saved))
			}
			*s = days(saved[0])
			return nil
		},
	},
}

// String lists the days from Monday.
func (d days) String() string {
	var names []string
	for i := range 7 {
		if day := time.Weekday((i + 1) % 7); d&(1<<day) != 0 {
			names = append(names, day.String()[:3])
		}
	}
	return strings.Join(names, " ")
}
