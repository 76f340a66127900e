package diag

// planPages are the pages of errors about the shape of the plan.
func planPages() []Page {
	return nil
}
