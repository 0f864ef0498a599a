// Package load is when requests start and how long they took: arrival schedules, the pacer that keeps to them, latency in
// HDR histograms, and the thresholds that are held against it. It imports nothing of Fencepost but history.
package load
