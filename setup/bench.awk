# Prints the output of `go test -bench` as a table, a line per benchmark, and everything that is not a benchmark's line to
# stderr: a failure is not lost. Below it, what was aimed at is put beside what was measured. Exits with 1 if a package failed or
# nothing was measured; a target that was missed is said, and no failure: on a busy machine all times are longer.

# What the stream engine is to reach: a benchmark, its figure, the comparison and the limit, and what it is about.
BEGIN {
	target("StreamLock", "ops/cpu-s", ">=", 2000000, "lock, one key, 8 clients, 1,000,000 operations: operations a second on one core")
	target("StreamLock", "peak-MB", "<", 150, "the same: peak memory, MB")
	target("StreamAgainstPorcupine", "times-faster", ">=", 50, "the same with 100,000: times faster than Porcupine")
	target("StreamAgainstPorcupine", "times-memory", ">=", 20, "the same with 100,000: Porcupine's memory, times the engine's")
	target("StreamBucket/60", "ops/cpu-s", ">=", 1000000, "bucket, one key, 60 clients, 1,000,000: operations a second on one core")
	target("StreamBucket/60", "times-8", "<", 2, "the same: time per operation, times that of 8 clients")
	target("StreamFromParquet/10000000", "s", "<", 20, "10,000,000 on 1,000 keys, Parquet to verdict: seconds")
	target("StreamFromParquet/10000000", "cpu-s", "<", 40, "the same: CPU-seconds (two cores for 20 s)")
	target("StreamFromParquet/10000000", "peak-MB", "<", 1000, "the same: peak memory, MB")
	target("StreamFromParquet/10000000", "growth-per-op", "<", 1.3, "the same: time per operation, times that of 1,000,000")
	target("StreamGrowth", "growth-per-op", "<", 1.3, "one key, 10,000,000: time per operation, times that of 1,000,000")
	# Either will do: a wrong answer fails the benchmark itself.
	target("StreamRegister/1000", "decided", "", "1 or 0", "register, 16 clients, 1 in 100 times out, 1,000: 1 if decided, 0 if inconclusive")
	target("StreamRegister/10000", "decided", "", "1 or 0", "the same with 10,000")
}

function target(name, unit, comparison, limit, about) {
	targets++
	aim[targets] = name SUBSEP unit
	how[targets] = comparison
	limits[targets] = limit
	abouts[targets] = about
}

/^pkg: / { package = $2; sub(/^fencepost\.dev\//, "", package); next }
/^(goos|goarch|PASS|ok|\?|cpu): ?/ { if ($1 == "cpu:") cpu = substr($0, 6); next }
/^(PASS|ok[ \t]|\?)/ { next }
/^Benchmark/ && NF >= 4 {
	name = $1
	sub(/^Benchmark/, "", name)
	sub(/-[0-9]+$/, "", name)
	figures = ""
	for (i = 3; i < NF; i += 2) {
		measured[name, $(i + 1)] = $i
		figures = figures sprintf("%14s %-12s", group($i), $(i + 1))
	}
	rows[++n] = sprintf("%-10s %-34s %s", package, name, figures)
	next
}
/^FAIL/ { failed = 1 }
{ print > "/dev/stderr" }

# group writes 1234567 as 1,234,567.
function group(x,    whole, rest, dot) {
	dot = index(x, ".")
	whole = dot ? substr(x, 1, dot - 1) : x
	rest = dot ? substr(x, dot) : ""
	if (whole !~ /^[0-9]+$/) return x
	while (length(whole) > 3) {
		rest = "," substr(whole, length(whole) - 2) rest
		whole = substr(whole, 1, length(whole) - 3)
	}
	return whole rest
}

END {
	if (cpu) print cpu
	printf "%-10s %-34s %s\n", "package", "benchmark", "figures"
	for (i = 1; i <= n; i++) print rows[i]
	for (i = 1; i <= targets; i++) {
		if (!(aim[i] in measured)) continue
		if (!told++) printf "\n%-90s %12s %14s\n", "stream engine", "measured", "target"
		got = measured[aim[i]] + 0
		met = how[i] == "" || (how[i] == "<" ? got < limits[i] : got >= limits[i])
		limit = how[i] == "" ? limits[i] : group(limits[i] "")
		printf "%-90s %12s %2s %11s %s\n", abouts[i], group(measured[aim[i]]), how[i], limit, met ? "" : "missed"
	}
	exit failed || n == 0
}
