#!/bin/sh
# Tries setup.sh on bare machines: Debian 12 and 13, each put into a temporary directory by debootstrap, from the mirror that
# this machine uses. Needs root and debootstrap; takes a few minutes; leaves nothing behind.
#
#   sh setup/test.sh [SUITE...]

set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
failures=0

say() { echo "test-setup: $*"; }
wrong() {
	echo "test-setup: WRONG: $*" >&2
	failures=$((failures + 1))
}
# expect DESCRIPTION COMMAND...
expect() {
	what=$1
	shift
	if "$@" >/dev/null 2>&1; then say "ok: $what"; else wrong "$what"; fi
}
# refuse DESCRIPTION COMMAND...: the command must fail.
refuse() {
	what=$1
	shift
	if "$@" >/dev/null 2>&1; then wrong "$what"; else say "ok: $what"; fi
}
now() { date +%s%N; }
since() { echo $((($(now) - $1) / 1000000)); } # milliseconds

# measure sets spent to the processor time of this script's children so far, in milliseconds. (In a subshell it would be 0.)
measure() {
	times >"$work/times"
	spent=$(awk 'NR == 2 { split($1 "m" $2, t, /[ms]+/); print int(1000 * (60 * (t[1] + t[3]) + t[2] + t[4])) }' "$work/times")
}

unmount() {
	for dir in "$work"/*/proc "$work"/*/dev; do
		if mountpoint -q "$dir" 2>/dev/null; then umount -l "$dir"; fi
	done
}
clean() {
	status=$?
	trap '' INT TERM HUP
	for root in "$work"/*/; do
		for pid in $(running_in "${root%/}"); do kill -9 "$pid" 2>/dev/null || true; done
	done
	unmount
	rm -rf --one-file-system "$work"
	exit "$status"
}

# running_in prints the processes whose root is a directory.
running_in() {
	for process in /proc/[0-9]*; do
		if [ "$(readlink "$process/root" 2>/dev/null)" = "$1" ]; then echo "${process#/proc/}"; fi
	done
}

in_root() {
	dir=$1
	shift
	env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$dir" "$@"
}
setup_in() { in_root "$1" sh /setup.sh; }

# machine makes a bare machine by copying one.
machine() {
	cp -a "$work/$1.base" "$work/$2"
	mount -t proc proc "$work/$2/proc"
	mount --bind /dev "$work/$2/dev"
	cp "$here/setup.sh" "$work/$2/setup.sh"
}
discard() {
	umount -l "$work/$1/proc" "$work/$1/dev"
	rm -rf --one-file-system "${work:?}/$1"
}

# state is everything that a run which has nothing to do must not change.
state() {
	(cd "$1" && find etc usr var/lib var/cache -xdev \( -type f -o -type l \) -printf '%p %T@ %C@ %s %l\n' | sort | cksum)
}
# apt_state is what an installation must leave as it was: sources, lists, and the hook for services.
apt_state() { (cd "$1" && find etc/apt var/lib/apt/lists usr/sbin/policy-rc.d* -type f -exec cksum {} + 2>/dev/null | sort); }

# started lists the links by which services start with the machine.
started() {
	find "$1"/etc/systemd/system "$1"/etc/rc[2345S].d \( -name '*valkey*' -o -name '*redis*' \) -type l ! -name 'K*' 2>/dev/null || true
}

check_installed() { # machine, server
	expect "$2 is there" in_root "$1" "$2" --version
	expect "the C compiler makes a program" in_root "$1" sh -c 'echo "int main(void){return 0;}" | cc -x c - -o /tmp/a && /tmp/a'
	expect "certificates are there" test -s "$1/etc/ssl/certs/ca-certificates.crt"
	expect "nothing runs" test -z "$(running_in "$1")"
}

again() { # machine
	before=$(state "$1")
	begin=$(now)
	measure
	spent_before=$spent
	if ! setup_in "$1"; then wrong "the second run failed"; fi
	measure
	spent=$((spent - spent_before))
	say "the second run took $(since "$begin") ms, of which $spent ms of processor time"
	# Not of wall-clock time: that is the machine's other work as well.
	expect "the second run took less than a second of processor time" test "$spent" -lt 1000
	expect "the second run changed nothing" test "$before" = "$(state "$1")"
}

bare() { # suite, name
	root=$work/$2
	apt_before=$(apt_state "$root")
	begin=$(now)
	if ! setup_in "$root"; then wrong "setup failed on $2"; fi
	say "setup on $2 took $(since "$begin") ms"
	check_installed "$root" valkey-server
	expect "no service starts with the machine" test -z "$(started "$root")"
	refuse "no policy is left" test -e "$root/usr/sbin/policy-rc.d"
	expect "apt's sources and lists are as before" test "$apt_before" = "$(apt_state "$root")"
	expect "nothing is left in /tmp" test -z "$(find "$root/tmp" -mindepth 1 -name 'tmp.*')"
	again "$root"
}

# furnished is a machine that somebody else has set up: sources in the other form, one of them unreachable, a policy, and a
# Redis that starts with the machine.
furnished() { # suite, name
	root=$work/$2
	uri=$(in_root "$root" sh /setup.sh mirror "$1")
	rm "$root/etc/apt/sources.list"
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' \
		"$uri" "$1" >"$root/etc/apt/sources.list.d/debian.sources"
	expect "the mirror is found in the other form of sources" test "$(in_root "$root" sh /setup.sh mirror "$1")" = "$uri"
	printf '#!/bin/sh\necho "$@" >>/policy.log\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	in_root "$root" sh -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends redis-server' \
		>"$work/log" 2>&1 || tail -n 20 "$work/log"
	links=$(started "$root")
	expect "Redis starts with the machine" test -n "$links"
	echo "deb http://127.0.0.1:9/nothing stable main" >"$root/etc/apt/sources.list.d/unreachable.list"
	apt_before=$(apt_state "$root")

	if ! setup_in "$root"; then wrong "setup failed on $2"; fi
	check_installed "$root" valkey-server
	expect "Redis still starts with the machine, and nothing else does" test "$links" = "$(started "$root")"
	expect "sources, lists and policy are as before" test "$apt_before" = "$(apt_state "$root")"
	expect "the policy that was there was asked about the others" grep -q . "$root/policy.log"
}

# cut off is a machine whose mirror can't be reached.
cut_off() { # suite, name
	root=$work/$2
	echo "deb http://127.0.0.1:9/debian $1 main" >"$root/etc/apt/sources.list"
	rm -rf "$root"/var/lib/apt/lists/*
	printf '#!/bin/sh\nexit 0\n' >"$root/usr/sbin/policy-rc.d"
	apt_before=$(apt_state "$root")
	refuse "setup fails without a mirror" setup_in "$root"
	said=$(setup_in "$root" 2>&1 || true)
	case $said in
	*"apt could not read the package lists from its mirror"*) say "ok: it says that the mirror can't be reached" ;;
	*) wrong "it does not say that the mirror can't be reached: $said" ;;
	esac
	expect "sources, lists and policy are as before" test "$apt_before" = "$(apt_state "$root")"
}

# interrupted is a setup that is ended while it installs the server, and then tried again.
interrupted() { # suite, name
	root=$work/$2
	printf '#!/bin/sh\nexit 0\n' >"$root/usr/sbin/policy-rc.d"
	apt_before=$(apt_state "$root")
	in_root "$root" sh /setup.sh >"$work/log" 2>&1 &
	waiting=0
	until [ -e "$root/usr/sbin/policy-rc.d.fencepost" ] || [ "$waiting" -gt 3000 ]; do
		sleep 0.1
		waiting=$((waiting + 1))
	done
	for pid in $(running_in "$root"); do # as Ctrl-C would: all of them
		case $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in
		*dpkg*) ;; # apt ends it
		*) kill -TERM "$pid" 2>/dev/null || true ;;
		esac
	done
	if wait $!; then wrong "an interrupted setup says that it succeeded"; fi
	expect "sources, lists and policy are as before" test "$apt_before" = "$(apt_state "$root")"
	in_root "$root" dpkg --configure -a >"$work/log" 2>&1 || true
	if ! setup_in "$root"; then wrong "setup after an interrupted one failed"; fi
	expect "valkey-server is there" in_root "$root" valkey-server --version
}

[ "$(id -u)" = 0 ] || {
	echo "test-setup: needs root, for debootstrap and chroot" >&2
	exit 2
}
command -v debootstrap >/dev/null || {
	echo "test-setup: needs debootstrap: apt-get install debootstrap" >&2
	exit 2
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# shellcheck source=/dev/null
own=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(sh "$here/setup.sh" mirror "$own")
[ -n "$mirror" ] || {
	echo "test-setup: apt has no mirror for $own here" >&2
	exit 2
}
[ $# -gt 0 ] || set -- bookworm trixie
for suite in "$@"; do
	say "== $suite, from $mirror"
	begin=$(now)
	debootstrap --variant=minbase "$suite" "$work/$suite.base" "$mirror" >"$work/log" 2>&1 || {
		tail -n 20 "$work/log" >&2
		exit 1
	}
	say "debootstrap took $(since "$begin") ms"
	for kind in bare furnished cut_off interrupted; do
		say "-- $suite, $kind"
		machine "$suite" "$suite-$kind"
		"$kind" "$suite" "$suite-$kind"
		discard "$suite-$kind"
	done
done
if [ "$failures" -gt 0 ]; then
	say "$failures things are wrong"
	exit 1
fi
say "all is as it should be"
