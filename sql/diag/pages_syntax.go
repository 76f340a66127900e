package diag

// syntaxPages are the pages of errors that the lexer and the parser find.
func syntaxPages() []Page {
	return append(lexerPages(), parserPages()...)
}

func parserPages() []Page {
	return []Page{
		{
			Code: CodeSyntaxError, Phase: PhaseSyntax, Title: "the text does not follow the grammar",
			Explanation: `The statement cannot be read further at the marked place. The message says what was
expected there. A misspelled keyword often shows one word later than it stands, because the
word itself was taken for a name.

Only the marked statement is given up; the rest of the file is checked as well.`,
			Wrong: "SELECT 1 AS a FORM t;",
			Right: "SELECT 1 AS a FROM t;",
		},
		{
			Code: CodeReservedWord, Phase: PhaseSyntax, Title: "a reserved word is used as a name",
			Explanation: "Words such as ref, user, timestamp, value, date and order belong to the language, as in Flink SQL.\n" +
				"A column or table can carry such a name if it is put in backticks. Quoting changes\n" +
				"nothing else: names keep their case with and without backticks.",
			Wrong: "CREATE TABLE pushes (ref STRING, size INT);",
			Right: "CREATE TABLE pushes (`ref` STRING, size INT);",
		},
		{
			Code: CodeUnknownType, Phase: PhaseSyntax, Title: "no such data type",
			Explanation: `The types are those of Flink SQL: BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE,
DECIMAL(p, s), CHAR(n), VARCHAR(n), STRING, BINARY(n), VARBINARY(n), BYTES, DATE, TIME(p),
TIMESTAMP(p), TIMESTAMP_LTZ(p), INTERVAL, ARRAY<t>, MAP<k, v>, MULTISET<t> and ROW<name t, ...>.`,
			Wrong: "CREATE TABLE t (name TEXT);",
			Right: "CREATE TABLE t (name STRING);",
		},
		{
			Code: CodeUnclosedBracket, Phase: PhaseSyntax, Title: "a bracket is not closed",
			Explanation: `The marked bracket has no partner before the statement ends.`,
			Wrong:       "SELECT (1 + 2;",
			Right:       "SELECT (1 + 2);",
		},
		{
			Code: CodeUnsupportedOperator, Phase: PhaseSyntax, Title: "an operator of another dialect",
			Explanation: `The operator is not part of Flink SQL, so a job that uses it could not move there. The help
line names what to write instead.`,
			Wrong: "SELECT a FROM t WHERE a != 1;",
			Right: "SELECT a FROM t WHERE a <> 1;",
		},
		{
			Code: CodeNestingTooDeep, Phase: PhaseSyntax, Title: "brackets or operators are nested too deep",
			Explanation: `A statement may nest at most 500 levels and chain at most 10,000 operators, so that no text
can exhaust the memory. Generated SQL with a long chain of ORs is written shorter with IN.`,
			Wrong: "SELECT " + repeat("(", 600) + "1" + repeat(")", 600) + ";",
			Right: "SELECT ((1));",
		},
		{
			Code: CodeNotInLoop, Phase: PhaseSyntax, Title: "statement cannot stand in FOR EACH",
			Explanation: `The body of FOR EACH is bound once for each table of the set. It can hold CREATE TABLE and
INSERT; everything else goes before or behind the loop.`,
			Wrong: "FOR EACH TABLE t IN (SHOW TABLES) BEGIN SET 'a' = 'b'; END FOR;",
			Right: "SET 'a' = 'b';\nFOR EACH TABLE t IN (SHOW TABLES) BEGIN INSERT INTO s SELECT * FROM `${t}`; END FOR;",
		},
		{
			Code: CodeNotYet, Phase: PhaseSyntax, Title: "a feature that is not built yet",
			Explanation: `The text is valid Flink SQL, but Millrace does not implement the feature that the message
names. It is refused, not ignored, so that a job never computes something else than it says.`,
			Wrong: "CREATE CATALOG c WITH ('type' = 'hive');",
			Right: "CREATE TABLE t (a INT) WITH ('connector' = 'print');",
		},
	}
}

func lexerPages() []Page {
	return []Page{
		{
			Code: CodeUnterminatedString, Phase: PhaseSyntax, Title: "a string has no closing quote",
			Explanation: `A string starts and ends with a single quote. A quote inside the string is doubled.`,
			Wrong:       "SELECT 'it is;",
			Right:       "SELECT 'it''s';",
		},
		{
			Code: CodeUnterminatedName, Phase: PhaseSyntax, Title: "a quoted name has no closing backtick",
			Explanation: "A quoted name starts and ends with a backtick. A backtick inside the name is doubled.",
			Wrong:       "SELECT 1 AS `a;",
			Right:       "SELECT 1 AS `a`;",
		},
		{
			Code: CodeUnterminatedComment, Phase: PhaseSyntax, Title: "a comment or hint is not closed",
			Explanation: `A comment that starts with /* ends with the next */; comments do not nest.`,
			Wrong:       "SELECT 1; /* the rest",
			Right:       "SELECT 1; /* the rest */",
		},
		{
			Code: CodeIllegalCharacter, Phase: PhaseSyntax, Title: "a character that means nothing",
			Explanation: `The character stands outside of strings, quoted names and comments and is no part of the
language. Full-width punctuation of an input method is the usual cause.`,
			Wrong: "SELECT CONCAT('a'，'b');",
			Right: "SELECT CONCAT('a', 'b');",
		},
		{
			Code: CodeInvalidUTF8, Phase: PhaseSyntax, Title: "the file is not UTF-8",
			Explanation: `SQL files are UTF-8. The first byte that is not is marked; the rest of the file may have
more of them.`,
			Wrong: "SELECT 'caf\xe9';",
			Right: "SELECT 'café';",
		},
		{
			Code: CodeMalformedNumber, Phase: PhaseSyntax, Title: "a number that runs into a word",
			Explanation: "A number ends before the next letter. A name that starts with a digit is put in backticks.",
			Wrong:       "SELECT 1 AS 2nd;",
			Right:       "SELECT 1 AS `2nd`;",
		},
		{
			Code: CodeMalformedBinary, Phase: PhaseSyntax, Title: "a binary string is not hexadecimal",
			Explanation: `X'...' takes an even number of hexadecimal digits, two for each byte.`,
			Wrong:       "SELECT X'ABC';",
			Right:       "SELECT X'0ABC';",
		},
		{
			Code: CodeBadEscape, Phase: PhaseSyntax, Title: "a Unicode escape cannot be read",
			Explanation: `In U&'...' a backslash starts a code of four hexadecimal digits; two backslashes are one.
UESCAPE chooses another character in place of the backslash.`,
			Wrong: `SELECT U&'\e9';`,
			Right: `SELECT U&'\00e9';`,
		},
		{
			Code: CodeDoubleQuoted, Phase: PhaseSyntax, Title: "double quotes are not used",
			Explanation: "Strings take single quotes and names take backticks, as in Flink SQL. Double quotes mean one\n" +
				"in some dialects and the other in the rest, so they are refused.",
			Wrong: `SELECT "a";`,
			Right: "SELECT 'a';",
		},
		{
			Code: CodeEmptyName, Phase: PhaseSyntax, Title: "a name is empty",
			Explanation: "Two backticks with nothing between them are no name.",
			Wrong:       "SELECT 1 AS ``;",
			Right:       "SELECT 1 AS a;",
		},
		{
			Code: CodeBadVariable, Phase: PhaseSyntax, Title: "a placeholder cannot be read",
			Explanation: `A placeholder is ${NAME}, ${NAME:-default} or ${secret:NAME}; names hold letters, digits,
underscores, dots and hyphens. To write the characters ${ themselves, double the dollar: $${.`,
			Wrong: "SELECT '${}';",
			Right: "SELECT '$${}';",
		},
		{
			Code: CodeUnknownVariable, Phase: PhaseSyntax, Title: "a variable has no value",
			Explanation: `Variables are looked up as the variable of a FOR EACH loop, then among those given with --set,
then in the environment. A default after :- is used if none of them knows the name.`,
			Wrong: "SELECT '${MILLRACE_NO_SUCH_VARIABLE}';",
			Right: "SELECT '${MILLRACE_NO_SUCH_VARIABLE:-none}';",
		},
		{
			Code: CodeVariableOutsideLiteral, Phase: PhaseSyntax, Title: "a variable stands outside of a literal",
			Explanation: "Variables are replaced only inside strings and names in backticks, and what they are replaced by\n" +
				"is never read as SQL: a value cannot change the meaning of a statement.",
			Wrong: "SELECT * FROM ${T};",
			Right: "SELECT * FROM `${T:-events}`;",
		},
		{
			Code: CodeSecretNotAllowed, Phase: PhaseSyntax, Title: "a secret stands where it would be seen",
			Explanation: `${secret:NAME} can stand only in the values of options, which are masked wherever they are
printed. In a query or a name its value would reach results and logs.`,
			Wrong: "SELECT '${secret:PASSWORD}';",
			Right: "CREATE TABLE t (a INT) WITH ('password' = '${secret:PASSWORD}');",
		},
	}
}

func repeat(s string, n int) string {
	out := make([]byte, 0, len(s)*n)
	for range n {
		out = append(out, s...)
	}
	return string(out)
}
