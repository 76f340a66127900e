package diag

// bindPages are the pages of errors about names, types and options.
func bindPages() []Page {
	return nil
}
