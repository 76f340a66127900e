package diag

// runPages are the pages of what has no example in SQL.
func runPages() []Page {
	return []Page{
		{
			Code: CodeInternal, Phase: PhaseRun, Title: "a fault of Millrace",
			Explanation: `The statement is probably right and Millrace failed on it. Please report it with the statement
and the message. Nothing was started.`,
		},
	}
}
