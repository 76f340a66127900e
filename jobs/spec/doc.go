// Package spec turns the SQL files of a job into something that can run: it
// binds variables, compiles, and makes of the findings what a command prints.
//
// ${NAME} is looked up among the --set values, then in the environment;
// ${secret:NAME} in the file NAME of the folder $MILLRACE_SECRETS, then in the
// environment variable MILLRACE_SECRET_NAME. Secrets are never printed.
//
// What it is not: a place for SQL semantics (sql/compile), and it runs nothing.
package spec
