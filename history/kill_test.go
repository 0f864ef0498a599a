package history

func recordUntilKilled(dir string) {}
