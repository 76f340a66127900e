package fn

func aggregates(LibraryOptions) []*Aggregate { return nil }
