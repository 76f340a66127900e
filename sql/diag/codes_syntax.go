package diag

// Codes of the lexer and the parser. CodeNotYet is theirs as well.
const (
	CodeSyntaxError            Code = "syntax_error"
	CodeReservedWord           Code = "reserved_word"
	CodeUnknownType            Code = "unknown_type"
	CodeUnclosedBracket        Code = "unclosed_bracket"
	CodeUnsupportedOperator    Code = "unsupported_operator"
	CodeNestingTooDeep         Code = "nesting_too_deep"
	CodeNotInLoop              Code = "not_in_loop"
	CodeUnterminatedString     Code = "unterminated_string"
	CodeUnterminatedName       Code = "unterminated_name"
	CodeUnterminatedComment    Code = "unterminated_comment"
	CodeIllegalCharacter       Code = "illegal_character"
	CodeInvalidUTF8            Code = "invalid_utf8"
	CodeMalformedNumber        Code = "malformed_number"
	CodeMalformedBinary        Code = "malformed_binary"
	CodeBadEscape              Code = "bad_escape"
	CodeDoubleQuoted           Code = "double_quoted"
	CodeEmptyName              Code = "empty_name"
	CodeBadVariable            Code = "bad_variable"
	CodeUnknownVariable        Code = "unknown_variable"
	CodeVariableOutsideLiteral Code = "variable_outside_literal"
	CodeSecretNotAllowed       Code = "secret_not_allowed"
)
