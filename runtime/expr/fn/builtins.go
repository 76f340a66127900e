package fn

import "slices"

// builtins are the declarations in the order of the docs.
func builtins() []*Function {
	return slices.Concat(
		comparisons(), logicals(), conditionals(), arithmetic(), mathFunctions(), stringFunctions(),
		patternFunctions(), encodeFunctions(), temporalFunctions(), jsonFunctions(), collectionFunctions(),
	)
}
