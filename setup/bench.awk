# Prints the output of `go test -bench` as a table, a line per benchmark, and everything that is not a benchmark's line to
# stderr: a failure is not lost. Exits with 1 if a package failed or nothing was measured.

/^pkg: / { package = $2; sub(/^fencepost\.dev\//, "", package); next }
/^(goos|goarch|PASS|ok|\?|cpu): ?/ { if ($1 == "cpu:") cpu = substr($0, 6); next }
/^(PASS|ok[ \t]|\?)/ { next }
/^Benchmark/ && NF >= 4 {
	name = $1
	sub(/^Benchmark/, "", name)
	sub(/-[0-9]+$/, "", name)
	figures = ""
	for (i = 3; i < NF; i += 2) {
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
	exit failed || n == 0
}
