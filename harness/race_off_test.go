//go:build linux && !race

package harness

const raceDetector = false
