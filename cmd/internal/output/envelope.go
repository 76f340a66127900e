package output

import (
	"encoding/json"
	"fmt"
	"io"
)

// Finding is something that a check found in the input.
type Finding struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Col      int    `json:"col,omitempty"`
	EndLine  int    `json:"end_line,omitempty"`
	EndCol   int    `json:"end_col,omitempty"`
	Hint     string `json:"hint,omitempty"`
}

// Failure is the error of an envelope: the command could not do its work.
// A command that ran and found problems has Ok false and no Failure.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Envelope is what a one-shot verb prints with -o json.
type Envelope struct {
	Command string   `json:"command"`
	Ok      bool     `json:"ok"`
	Summary string   `json:"summary"`
	Result  any      `json:"result"`
	Error   *Failure `json:"error"`
}

// WriteEnvelope prints the envelope as one indented JSON document.
func WriteEnvelope(w io.Writer, e Envelope) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(e); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
