package reports

import (
	"errors"
	"time"

	"fencepost.dev/models"
)

// Material is all that reports are made from. A results directory holds all of it: verdict.json is Result, history/ and
// resource.parquet give Input, latency.hlog gives Series, so `bench report DIR` renders it again.
type Material struct {
	Result Result
	// Input is the recorded run, for the operations around a witness and for Series where there is none. Nil: the reports say
	// only what Result knows.
	Input *models.Input
	// Series is latency and throughput over time, measured from when each operation was due. Nil: taken from Input, where it
	// counts from the call.
	Series []Series
	// Pages are Porcupine's visualizations, by key. Write writes each beside the report, and links it from the findings on
	// that key; a page that an earlier Write left is linked too.
	Pages map[string][]byte
}

// Series is how one kind of operation fared over time.
type Series struct {
	Kind   string
	Points []Point // in order of At
}

// Point is one interval of a Series. Latencies are in microseconds.
type Point struct {
	At     int64 // when the interval began, ns since the run's epoch
	Length time.Duration
	Count  int64 // operations that ended in it
	Errors int64 // those that failed or are unknown
	P50    float64
	P99    float64
}

var errSkeleton = errors.New("reports: not built yet")

// Write writes verdict.json, report.html, report.md and junit.xml to a results directory. Each file is there whole or not at
// all.
func Write(dir string, m Material) error { return errSkeleton }

// PageFile is the name of the file, beside the report, that Write gives Porcupine's page of a key.
func PageFile(key string) string { return "porcupine-" + key + ".html" }
