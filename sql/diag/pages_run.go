package diag

// runPages are the pages of errors about what only a running job can find.
func runPages() []Page {
	return nil
}
