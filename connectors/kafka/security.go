package kafka

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/millrace/millrace/runtime/connector"
)

const (
	keyProtocol  = "properties.security.protocol"
	keyMechanism = "properties.sasl.mechanism"
	keyJAAS      = "properties.sasl.jaas.config"
	keyUser      = "properties.sasl.username"
	keyPassword  = "properties.sasl.password"
	keyTrustFile = "properties.ssl.truststore.location"
	keyTrustText = "properties.ssl.truststore.certificates"
	keyHostCheck = "properties.ssl.endpoint.identification.algorithm"
	keyKeyFile   = "properties.ssl.keystore.location"
	keyKeyText   = "properties.ssl.keystore.key"
	keyChainText = "properties.ssl.keystore.certificate.chain"
)

func usesSASL(v connector.Values) bool { return strings.HasPrefix(v.String(keyProtocol), "SASL_") }

func usesTLS(v connector.Values) bool { return strings.HasSuffix(v.String(keyProtocol), "SSL") }

// validateSecurity finds what is missing, or given in vain: a password that is
// never sent is as much a mistake as one that is not there.
func validateSecurity(v connector.Values) error {
	for _, key := range []string{keyMechanism, keyJAAS, keyUser, keyPassword} {
		if v.Has(key) && !usesSASL(v) {
			return &connector.OptionError{Key: key, Message: fmt.Sprintf("%q has no effect with %q = '%s'", key, keyProtocol, v.String(keyProtocol)),
				Hint: "use SASL_SSL or SASL_PLAINTEXT"}
		}
	}
	for _, key := range []string{"properties.ssl.truststore.type", keyTrustFile, keyTrustText, keyHostCheck, "properties.ssl.keystore.type", keyKeyFile, keyKeyText, keyChainText} {
		if v.Has(key) && !usesTLS(v) {
			return &connector.OptionError{Key: key, Message: fmt.Sprintf("%q has no effect with %q = '%s'", key, keyProtocol, v.String(keyProtocol)),
				Hint: "use SSL or SASL_SSL"}
		}
	}
	if v.Has(keyTrustFile) && v.Has(keyTrustText) {
		return &connector.OptionError{Key: keyTrustText, Message: fmt.Sprintf("%q and %q are both given", keyTrustFile, keyTrustText)}
	}
	if err := validateKeys(v); err != nil || !usesSASL(v) {
		return err
	}
	if !v.Has(keyMechanism) {
		return &connector.OptionError{Key: keyProtocol, OnValue: true, Message: fmt.Sprintf("%q = '%s' needs %q", keyProtocol, v.String(keyProtocol), keyMechanism)}
	}
	if v.Has(keyJAAS) {
		for _, key := range []string{keyUser, keyPassword} {
			if v.Has(key) {
				return &connector.OptionError{Key: key, Message: fmt.Sprintf("%q and %q are both given", keyJAAS, key)}
			}
		}
		j, err := parseJAAS(v.String(keyJAAS))
		if err != nil {
			return &connector.OptionError{Key: keyJAAS, OnValue: true, Message: err.Error()}
		}
		if m := v.String(keyMechanism); (m == "PLAIN") != (j.module == "PlainLoginModule") {
			return &connector.OptionError{Key: keyJAAS, OnValue: true, Message: fmt.Sprintf("%s is not for mechanism %s", j.module, m)}
		}
		return nil
	}
	if !v.Has(keyUser) || !v.Has(keyPassword) {
		return &connector.OptionError{Key: keyMechanism, Message: fmt.Sprintf("mechanism %s needs %q, or %q and %q", v.String(keyMechanism), keyJAAS, keyUser, keyPassword)}
	}
	return nil
}

// jaas is a login as Java's clients are given it.
type jaas struct{ module, username, password string }

func checkJAAS(s string) error {
	_, err := parseJAAS(s)
	return err
}

// parseJAAS reads `some.package.PlainLoginModule required username="u" password="p";`.
// Errors do not repeat the text: it holds a password.
func parseJAAS(s string) (jaas, error) {
	var j jaas
	s = strings.TrimSpace(s)
	s, ended := strings.CutSuffix(s, ";")
	module, rest, _ := strings.Cut(s, " ")
	flag, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if !ended || flag != "required" {
		return j, errors.New(`a login is of the form: org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";`)
	}
	j.module = module[strings.LastIndexByte(module, '.')+1:]
	if j.module != "PlainLoginModule" && j.module != "ScramLoginModule" {
		return j, fmt.Errorf("not_yet: login module %q; there are PlainLoginModule and ScramLoginModule", j.module)
	}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		key, after, ok := strings.Cut(rest, "=")
		value, left, closed := quoted(strings.TrimSpace(after))
		if !ok || !closed {
			return j, errors.New(`a login's settings are of the form username="u" password="p"`)
		}
		switch key = strings.TrimSpace(key); key {
		case "username":
			j.username = value
		case "password":
			j.password = value
		default:
			return j, fmt.Errorf("unknown login setting %q; there are username and password", key)
		}
		rest = left
	}
	if j.username == "" || j.password == "" {
		return j, errors.New("a login needs username and password")
	}
	return j, nil
}

// quoted reads a text in double quotes, in which a backslash takes the next
// character as it is.
func quoted(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return "", s, false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return "", s, false
}

// credentials are the user and the password of the properties.
func credentials(v connector.Values) (user, password string, err error) {
	if !v.Has(keyJAAS) {
		return v.String(keyUser), v.String(keyPassword), nil
	}
	j, err := parseJAAS(v.String(keyJAAS))
	return j.username, j.password, err
}

// login is how the client says who it is; nil: it does not.
func login(v connector.Values) (sasl.Mechanism, error) {
	if !usesSASL(v) {
		return nil, nil
	}
	user, password, err := credentials(v)
	if err != nil {
		return nil, err
	}
	switch v.String(keyMechanism) {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), nil
	}
	return scram.Auth{User: user, Pass: password}.AsSha512Mechanism(), nil
}
