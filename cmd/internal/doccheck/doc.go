// Package doccheck runs the commands of the documentation and compares what
// they print. It holds tests and their parser.
//
// In a fenced block marked console, a line "$ command" is run by bash, lines
// "> more" continue it, and what follows is its output: stdout and stderr as a
// terminal would show them. In expected output "..." stands for any text
// within a line, and a line of "..." alone for any number of lines. All
// commands of one page share a folder and a shell environment of their own.
package doccheck
