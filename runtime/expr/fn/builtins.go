package fn

import "slices"

// builtins are the declarations in the order of the docs.
func builtins() []*Function {
	return slices.Concat(
		comparisons(), logicals(), conditionals(), arithmetic(), mathFunctions(), moreMath(), stringFunctions(), moreStrings(),
		patternFunctions(), encodeFunctions(), hashFunctions(), temporalFunctions(), jsonFunctions(), jsonBuilders(), jsonQuotes(), collectionFunctions(), arrayFunctions(), mapFunctions(),
	)
}
