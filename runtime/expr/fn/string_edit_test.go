package fn_test

import "testing"

// TestOverlay: the cases of Flink's ScalarFunctionsTest.testOverlay.
func TestOverlay(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"OVERLAY('xxxxxtest', 'xxxx', 6)", "xxxxxxxxx"}, {"OVERLAY('xxxxxtest', 'xxxx', 6, 2)", "xxxxxxxxxst"},
		{"OVERLAY('123456789', 'It', -1, 4)", "123456789"}, {"OVERLAY('123456789', 'It', 100, 2)", "123456789"},
		{"OVERLAY('123456789', 'abc', 2, 100)", "1abc"}, {"OVERLAY('123456789', 'abc', 2, -1)", "1abc"},
		{"OVERLAY('日本語', 'x', 2, 1)", "日x語"}, {"OVERLAY('日本語', '한국', 2)", "日한국"}, {"OVERLAY('', 'x', 1)", ""}, {"OVERLAY('ab', 'x', 3)", "ab"},
		{"OVERLAY(NULL, 'x', 1)", "NULL"}, {"OVERLAY('a', NULL, 1)", "NULL"}, {"OVERLAY('a', 'x', NULL)", "NULL"}, {"OVERLAY('a', 'x', 1, NULL)", "NULL"},
		{"OVERLAY('a', 1, 1)", "bind: OVERLAY('a', 1, 1): argument 2 of OVERLAY must be a string (CAST it), not INT"},
	})
}

// TestElt: Flink's function page (NULL out of range) and the values of its
// StringFunctionsITCase.
func TestElt(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"ELT(1, 'scala', 'java')", "scala"}, {"ELT(2, 'a', 'b')", "b"}, {"ELT(CAST(NULL AS INT), 'a', 'b')", "NULL"}, {"ELT(1, CAST(NULL AS STRING))", "NULL"},
		{"ELT(1, 'a', CAST(NULL AS STRING))", "a"}, {"ELT(0, 'a')", "NULL"}, {"ELT(4, 'a', 'b', 'c')", "NULL"}, {"ELT(-1, 'a')", "NULL"}, {"ELT(NULL, 'a')", "NULL"}, {"ELT(9223372036854775807, 'a')", "NULL"},
		{"HEX(ELT(2, x'00', x'01FF'))", "01FF"}, {"ELT(1, 'a', x'00')", "bind: ELT(1, 'a', x'00'): argument 3 of ELT is BINARY(1), which has no common type with CHAR(1)"},
		{"ELT(1)", "bind: ELT(1): ELT takes at least 2 arguments, not 1"}, {"ELT('x', 'a')", "bind: ELT('x', 'a'): argument 1 of ELT must be an integer, not CHAR(1)"},
	})
}

// TestAffixes: Flink's function page.
func TestAffixes(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"STARTSWITH('hello', 'he')", "TRUE"}, {"STARTSWITH('hello', 'el')", "FALSE"}, {"STARTSWITH('hello', '')", "TRUE"}, {"STARTSWITH('', 'a')", "FALSE"}, {"STARTSWITH('日本', '日')", "TRUE"},
		{"ENDSWITH('hello', 'lo')", "TRUE"}, {"ENDSWITH('hello', 'l')", "FALSE"}, {"ENDSWITH('', '')", "TRUE"}, {"ENDSWITH('o', 'lo')", "FALSE"},
		{"STARTSWITH(x'C3A9', x'C3')", "TRUE"}, {"ENDSWITH(x'C3A9', x'C3')", "FALSE"},
		{"STARTSWITH(NULL, 'a')", "NULL"}, {"STARTSWITH('a', NULL)", "NULL"}, {"ENDSWITH(NULL, NULL)", "NULL"},
		{"STARTSWITH('a', x'61')", "bind: STARTSWITH('a', x'61'): the arguments of STARTSWITH must both be strings or both be bytes"},
	})
}

// TestTextTests: Flink's ScalarFunctionsTest (testIsDecimal, testIsDigit,
// testIsAlpha); the further forms of IS_DECIMAL are those that Java's
// Double.valueOf documents.
func TestTextTests(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"IS_DECIMAL('1')", "TRUE"}, {"IS_DECIMAL('11.4445')", "TRUE"}, {"IS_DECIMAL('abc')", "FALSE"}, {"IS_DECIMAL(CAST(NULL AS STRING))", "FALSE"}, {"IS_DECIMAL('')", "FALSE"}, {"IS_DECIMAL(NULL)", "FALSE"},
		{"IS_DECIMAL('-1.5e-3')", "TRUE"}, {"IS_DECIMAL(' 7 ')", "TRUE"}, {"IS_DECIMAL('.5')", "TRUE"}, {"IS_DECIMAL('5.')", "TRUE"}, {"IS_DECIMAL('.')", "FALSE"}, {"IS_DECIMAL('1e')", "FALSE"}, {"IS_DECIMAL('e5')", "FALSE"},
		{"IS_DECIMAL('NaN')", "TRUE"}, {"IS_DECIMAL('-Infinity')", "TRUE"}, {"IS_DECIMAL('nan')", "FALSE"}, {"IS_DECIMAL('1d')", "TRUE"}, {"IS_DECIMAL('1dd')", "FALSE"}, {"IS_DECIMAL('1 2')", "FALSE"}, {"IS_DECIMAL('--1')", "FALSE"}, {"IS_DECIMAL('1,5')", "FALSE"},
		{"IS_DIGIT('1')", "TRUE"}, {"IS_DIGIT('123')", "TRUE"}, {"IS_DIGIT('11.4445')", "FALSE"}, {"IS_DIGIT('abc')", "FALSE"}, {"IS_DIGIT(CAST(NULL AS STRING))", "FALSE"}, {"IS_DIGIT('')", "FALSE"}, {"IS_DIGIT('٣')", "TRUE"}, {"IS_DIGIT('-1')", "FALSE"},
		{"IS_ALPHA('abc')", "TRUE"}, {"IS_ALPHA('1')", "FALSE"}, {"IS_ALPHA('a b')", "FALSE"}, {"IS_ALPHA('日é')", "TRUE"}, {"IS_ALPHA(CAST(NULL AS STRING))", "FALSE"}, {"IS_ALPHA('')", "FALSE"},
		{"IS_DIGIT(1)", "bind: IS_DIGIT(1): argument 1 of IS_DIGIT must be a string (CAST it), not INT"},
	})
}

// TestTrimBothAndASCII: Flink's function page.
func TestTrimBothAndASCII(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"BTRIM('  a b ')", "a b"}, {"BTRIM('xyaxy', 'yx')", "a"}, {"BTRIM('', 'x')", ""}, {"BTRIM('xx', 'x')", ""}, {"BTRIM(NULL)", "NULL"}, {"BTRIM('a', NULL)", "NULL"},
		{"ASCII('abc')", "97"}, {"ASCII('')", "0"}, {"ASCII(CAST(NULL AS VARCHAR))", "NULL"}, {"ASCII('日')", "-26"},
	})
}

// TestSplit: Flink's CollectionFunctionsITCase.splitTestCases.
func TestSplit(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"SPLIT('123,123,23', ',')", "[123, 123, 23]"}, {"SPLIT('123,123,23', NULL)", "NULL"}, {"SPLIT('123,123,23', '')", "[1, 2, 3, ,, 1, 2, 3, ,, 2, 3]"},
		{"SPLIT(NULL, ',')", "NULL"}, {"SPLIT(',123,123', ',')", "[, 123, 123]"}, {"SPLIT(',123,123,', ',')", "[, 123, 123, ]"}, {"SPLIT('12345', ',')", "[12345]"},
		{"CARDINALITY(SPLIT(',123,,,123,', ','))", "6"}, {"SPLIT('日本', '')", "[日, 本]"}, {"CARDINALITY(SPLIT('', ','))", "1"}, {"SPLIT('a--b', '--')[2]", "b"},
		{"SPLIT(123, ',')", "bind: SPLIT(123, ','): argument 1 of SPLIT must be a string (CAST it), not INT"},
	})
}

// TestHashes: the digests of "abc" and of the empty text in FIPS 180-4 (the
// examples of NIST).
func TestHashes(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"SHA1('abc')", "a9993e364706816aba3e25717850c26c9cd0d89d"}, {"SHA1('')", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"SHA224('abc')", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"}, {"SHA2('abc', 224)", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"},
		{"SHA2('abc', 256)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"SHA384('abc')", "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"}, {"SHA2('abc', 384) = SHA384('abc')", "TRUE"},
		{"SHA512('')", "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"},
		{"SHA2('abc', 512) = SHA512('abc')", "TRUE"}, {"SHA2('abc', CHAR_LENGTH('ab') * 128) = SHA256('abc')", "TRUE"}, {"SHA2('abc', CHAR_LENGTH('ab'))", "error:invalid_argument"},
		{"SHA1(NULL)", "NULL"}, {"SHA2('abc', NULL)", "NULL"}, {"SHA2(NULL, 256)", "NULL"}, {"SHA1(x'616263') = SHA1('abc')", "TRUE"},
		{"SHA2('abc', 1)", "bind: SHA2('abc', 1): SHA2 has 224, 256, 384 or 512 bits, not 1"},
	})
}

// TestURLCodes: java.net.URLEncoder and URLDecoder, which Flink's function
// page names by their form.
func TestURLCodes(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"URL_ENCODE('https://a.b/c?d=e f&g=ü')", "https%3A%2F%2Fa.b%2Fc%3Fd%3De+f%26g%3D%C3%BC"}, {"URL_ENCODE('aZ09.-*_')", "aZ09.-*_"}, {"URL_ENCODE('~+')", "%7E%2B"}, {"URL_ENCODE('')", ""}, {"URL_ENCODE(NULL)", "NULL"},
		{"URL_DECODE('https%3A%2F%2Fa.b%2fc')", "https://a.b/c"}, {"URL_DECODE('a+b%20c')", "a b c"}, {"URL_DECODE('%E6%97%A5')", "日"}, {"URL_DECODE('日')", "日"}, {"URL_DECODE('')", ""},
		{"URL_DECODE('%')", "NULL"}, {"URL_DECODE('%4')", "NULL"}, {"URL_DECODE('ab%zz')", "NULL"}, {"URL_DECODE('%C3')", "NULL"}, {"URL_DECODE(NULL)", "NULL"}, {"URL_DECODE('x%41')", "xA"},
		{"URL_DECODE(URL_ENCODE('日 &=%+é'))", "日 &=%+é"},
	})
}

// TestUnhex: Flink's function page.
func TestUnhex(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"CAST(UNHEX('466C696E6B') AS STRING)", "Flink"}, {"HEX(UNHEX('0aFf'))", "0AFF"}, {"HEX(UNHEX(''))", ""}, {"HEX(UNHEX('ABC'))", "00BC"}, {"HEX(UNHEX('1'))", "00"},
		{"UNHEX('zz')", "NULL"}, {"UNHEX('z11')", "NULL"}, {"UNHEX('0x')", "NULL"}, {"UNHEX(NULL)", "NULL"},
	})
}

// TestRegexpAll: the values of Flink's RegexpFunctionsITCase. An invalid
// pattern differs from Flink, which gives NULL: it is an error as in REGEXP.
func TestRegexpAll(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"REGEXP_COUNT('hello world! Hello everyone!', 'Hello')", "1"}, {"REGEXP_COUNT('abcabcabc', 'abcab')", "1"}, {"REGEXP_COUNT('abcd', 'z')", "0"}, {"REGEXP_COUNT('^abc', '\\^abc')", "1"},
		{"REGEXP_COUNT('a.b.c.d', '\\.')", "3"}, {"REGEXP_COUNT('a*b*c*d', '\\*')", "3"}, {"REGEXP_COUNT('abc123xyz456', '\\d')", "6"}, {"REGEXP_COUNT('Helloworld! Hello everyone!', '\\bHello\\b')", "1"},
		{"REGEXP_COUNT(NULL, 'a')", "NULL"}, {"REGEXP_COUNT('a', NULL)", "NULL"}, {"REGEXP_COUNT('abc', '')", "4"}, {"REGEXP_COUNT('', 'a*')", "1"},
		{"REGEXP_INSTR('100-200, 300-400', '[a-z]')", "0"}, {"REGEXP_INSTR('Helloworld! Hello everyone!', '\\bHello\\b')", "13"}, {"REGEXP_INSTR('Helloworld!  Hello everyone!', '\\bHello\\b')", "14"},
		{"REGEXP_INSTR('hello world! Hello everyone!', 'Hello')", "14"}, {"REGEXP_INSTR('a.b.c.d', '\\.')", "2"}, {"REGEXP_INSTR('abc123xyz456', '\\d')", "4"}, {"REGEXP_INSTR('100-200, 300-400', '(\\d+)-(\\d+)')", "1"}, {"REGEXP_INSTR('日本a', 'a')", "3"}, {"REGEXP_INSTR(NULL, 'a')", "NULL"},
		{"REGEXP_SUBSTR('abc123xyz456', '\\d+')", "123"}, {"REGEXP_SUBSTR('abc', '\\d')", "NULL"}, {"REGEXP_SUBSTR('abc', NULL)", "NULL"}, {"REGEXP_SUBSTR('abc', 'x*')", ""},
		{"REGEXP_EXTRACT_ALL('abcdeabde', '(abcdeabde)', -1)", "NULL"}, {"REGEXP_EXTRACT_ALL('abcdeabde', 'abcdeabde')", "NULL"}, {"REGEXP_EXTRACT_ALL('abcdeabde', '(abcdeabde)', 2)", "NULL"},
		{"REGEXP_EXTRACT_ALL('100-200, 300-400', '[a-z]', 0)", "[]"}, {"REGEXP_EXTRACT_ALL('abcdeabde', '(abcdeabde)|([a-z]*)', 2)", "[NULL, ]"}, {"REGEXP_EXTRACT_ALL('abcdeabde', 'ab((c)|(.?))de', 2)", "[c, NULL]"},
		{"REGEXP_EXTRACT_ALL('abcdeabde', '(ab)([a-z]+)(e)', 2)", "[cdeabd]"}, {"CARDINALITY(REGEXP_EXTRACT_ALL('abcdeabde', '', 0))", "10"}, {"REGEXP_EXTRACT_ALL('100-200, 300-400', '(\\d+)-(\\d+)', 0)", "[100-200, 300-400]"},
		{"REGEXP_EXTRACT_ALL('100-200, 300-400', '(\\d+)-(\\d+)', 1)", "[100, 300]"}, {"REGEXP_EXTRACT_ALL('100-200, 300-400', '(\\d+)-(\\d+)', 2)", "[200, 400]"}, {"REGEXP_EXTRACT_ALL('100-200, 300-400', '(\\d+).*', 1)", "[100]"},
		{"REGEXP_EXTRACT_ALL(NULL, 'a', 0)", "NULL"}, {"REGEXP_EXTRACT_ALL('a', NULL)", "NULL"}, {"REGEXP_EXTRACT_ALL('a', '(a)', NULL)", "NULL"},
		{"REGEXP_COUNT('a', '(')", "bind: REGEXP_COUNT('a', '('): pattern: error parsing regexp: missing closing ): `(`"},
		{"REGEXP_COUNT('a(', SUBSTRING('a(', 2))", "error:invalid_argument"}, {"REGEXP_COUNT('aab', SUBSTRING('xa', 2))", "2"},
	})
}

// TestEmptyMatchesAsInJava: java.util.regex.Matcher.find reports an empty
// match that touches the match before it; "x*" finds "", "x", "", "" in "axb".
func TestEmptyMatchesAsInJava(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"REGEXP_COUNT('axb', 'x*')", "4"}, {"REGEXP_COUNT('aaa', 'a*')", "2"}, {"REGEXP_COUNT('日日x', '日*')", "3"},
		// Context is kept: the end of the word is a \b, the place behind the blank none.
		{"REGEXP_COUNT('ab', '[a-z]*\\b')", "2"}, {"REGEXP_COUNT('ab', '[a-z]+|^')", "1"}, {"REGEXP_COUNT('ab', '\\Qab')", "1"}, {"REGEXP_COUNT('ab', '(\\Qab\\E)?')", "2"}, {"REGEXP_COUNT('AB', '(?i)(ab)*')", "2"},
	})
}
