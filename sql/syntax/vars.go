package syntax

import "slices"

// Vars answers what a variable stands for. The lexer asks for each placeholder that is not a loop
// variable; the answer is put into the literal and never lexed.
type Vars interface {
	// Lookup returns the value of ${name}: a --set variable, else the environment's.
	Lookup(name string) (value string, ok bool)
	// Secret returns the value of ${secret:name}.
	Secret(name string) (value string, ok bool)
	// Names lists what Lookup knows, for the nearest-name hint. It may be empty.
	Names() []string
}

// MapVars is a Vars over two maps, for tests and simple callers.
type MapVars struct {
	Values  map[string]string
	Secrets map[string]string
}

// Lookup returns the value of ${name}.
func (m MapVars) Lookup(name string) (string, bool) { v, ok := m.Values[name]; return v, ok }

// Secret returns the value of ${secret:name}.
func (m MapVars) Secret(name string) (string, bool) { v, ok := m.Secrets[name]; return v, ok }

// Names lists the names of Values.
func (m MapVars) Names() []string {
	names := make([]string, 0, len(m.Values))
	for n := range m.Values {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Options says how a text is parsed. The zero value leaves every variable unbound, as fmt needs it.
type Options struct {
	// Vars binds variables; nil leaves them unbound.
	Vars Vars
	// LoopVars names loop variables of other files of the job, which stay unbound here. Those of the text
	// itself are found by the parser.
	LoopVars []string
}
