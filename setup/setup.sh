#!/bin/sh
# Installs what Fencepost needs beside Go, if it is missing: valkey-server (else redis-server), a C compiler, and the
# certificates that Go needs to fetch modules. Asks for nothing, leaves no service behind, and changes nothing when nothing
# is missing.
#
#   sh setup/setup.sh                   look, and install what is missing
#   sh setup/setup.sh mirror RELEASE    print the mirror that apt is configured to take a release from
#   sh setup/setup.sh install THING...  as root: install server, compiler, certificates (the first form calls this)

set -eu

say() { echo "setup: $*"; }
fail() {
	echo "setup: $*" >&2
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Debian's hook that says which services a package may start, and the line by which ours is known.
policy=/usr/sbin/policy-rc.d
ours='# Made by Fencepost while it installs a package, and removed after.'

# ---- what is missing ----

server() { command -v valkey-server || command -v redis-server; }

has_compiler() { have cc && echo '#include <pthread.h>' | cc -E -x c - >/dev/null 2>&1; }

# The places where Go looks for them; macOS keeps its own.
has_certificates() {
	[ "$(uname -s)" = Darwin ] && return
	for file in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
		/etc/ssl/ca-bundle.pem /etc/pki/tls/cacert.pem /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/ssl/cert.pem; do
		if [ -s "$file" ]; then return; fi
	done
	return 1
}

# release_has_valkey tells whether there is any use in looking for it where Redis is installed: looking takes a while.
release_has_valkey() {
	if have brew; then return; fi
	if ! [ -r /etc/os-release ]; then return 1; fi
	# shellcheck source=/dev/null
	release=$(. /etc/os-release && echo "$ID ${VERSION_ID:-0}")
	number=${release#* }
	number=${number%%.*}
	case $release in
	'debian '*) [ "$number" -ge 12 ] ;;
	'ubuntu '*) [ "$number" -ge 24 ] ;;
	*) return 1 ;;
	esac
}

missing() {
	have valkey-server || { have redis-server && ! release_has_valkey; } || printf 'server '
	[ -f "$policy" ] && grep -qF "$ours" "$policy" && printf 'policy '
	has_compiler || printf 'compiler '
	has_certificates || printf 'certificates '
}

# ---- Debian and Ubuntu ----

# apt_get runs apt-get on a copy of the machine's sources, with lists and archives of its own: the machine's lists, its sources
# and its cache stay as they are.
apt_get() { quietly apt-get -y "$@"; }

quietly() {
	command=$1
	shift
	DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 "$command" -q \
		-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$tmp/sources" \
		-o Dir::State::Lists="$tmp/lists" -o Dir::Cache::Archives="$tmp/archives" \
		-o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache= \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 \
		-o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 \
		"$@" </dev/null >>"$tmp/log" 2>&1
}

# available tells whether apt knows a package that it could install.
available() { quietly apt-cache show --no-all-versions "$1"; }

# mirror prints where apt takes a release's main packages from. apt itself is asked, as it reads all forms of sources.
mirror() {
	# shellcheck disable=SC2016 # the format's words are apt's
	apt-get indextargets -o APT::Get::IndexTargets::ReleaseInfo=false --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null |
		while read -r release component uri; do
			if [ "$release" = "$1" ] && [ "$component" = main ]; then
				echo "$uri"
				break
			fi
		done
}

# add_backports lets apt_get see the backports of a Debian release that is too old to have Valkey.
add_backports() {
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && [ "$ID" = debian ] && echo "${VERSION_CODENAME:-}") || return 0
	case $codename in bookworm) ;; *) return 0 ;; esac
	uri=$(mirror "$codename")
	[ -n "$uri" ] || return 0
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	signed=
	if [ -s "$keys" ]; then signed="[signed-by=$keys] "; fi
	echo "deb $signed$uri $codename-backports main" >"$tmp/sources/fencepost-backports.list"
	say "Debian 12 has Valkey in $codename-backports; using that for this installation only, from $uri"
}

apt_update() {
	say "reading the package lists"
	# Not an error yet: the source that failed may be one that we don't need. apt itself calls it a warning.
	if ! apt_get update || grep -q '^W: Failed to fetch' "$tmp/log"; then update_failed=yes; fi
}

# apt_install installs packages of which nothing may be started. $2 on are the packages.
apt_install() {
	what=$1
	shift
	say "installing $* ($what)"
	if apt_get install --no-install-recommends "$@"; then return; fi
	tail -n 25 "$tmp/log" >&2
	if [ -n "$update_failed" ]; then unreachable; fi
	fail "apt could not install $*: see above"
}

unreachable() {
	fail "apt could not read the package lists from its mirror. Check the network and the sources in /etc/apt, then run this again"
}

install_with_apt() {
	tmp=$(mktemp -d)
	chmod 755 "$tmp" # apt fetches as a user of its own
	mkdir -p "$tmp/sources" "$tmp/lists/partial" "$tmp/archives/partial"
	update_failed=
	trap 'clean' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		if [ -f "$file" ]; then cp "$file" "$tmp/sources/"; fi
	done
	case " $* " in *' server '*) add_backports ;; esac
	if [ "$*" != policy ]; then apt_update; fi

	packages=
	for thing in "$@"; do
		case $thing in
		compiler) packages="$packages gcc libc6-dev" ;;
		certificates) packages="$packages ca-certificates" ;;
		policy) allow_start ;; # left by a run that was killed
		server) ;;
		*) fail "don't know how to install $thing" ;;
		esac
	done
	# shellcheck disable=SC2086 # a list of words
	if [ -n "$packages" ]; then apt_install 'to compile and to fetch modules' $packages; fi
	case " $* " in *' server '*) install_server ;; esac
}

install_server() {
	for package in valkey-server valkey redis-server; do
		if ! available "$package"; then continue; fi
		case $package in
		redis-server)
			if have redis-server; then
				say "there is no Valkey for this release; redis-server is installed already"
				return
			fi
			say "there is no Valkey for this release; taking redis-server in its place"
			;;
		esac
		note_services
		deny_start
		apt_install 'the server; its service is not started' "$package"
		allow_start
		disable_services
		return
	done
	if have redis-server; then return; fi
	if [ -n "$update_failed" ]; then
		tail -n 25 "$tmp/log" >&2
		unreachable
	fi
	fail "apt knows neither valkey-server nor redis-server. Install one of them by hand; it must be on PATH"
}

# ---- no service ----

services='valkey-server valkey redis-server redis'

# deny_start keeps the package's scripts from starting its service, through Debian's own hook for that. A policy that is
# there already goes on deciding about everything else, and is put back after.
deny_start() {
	if [ -e "$policy" ] || [ -L "$policy" ]; then mv "$policy" "$policy.fencepost"; fi
	cat >"$policy" <<-END
		#!/bin/sh
		$ours
		for word; do
			case \$word in
			valkey*|redis*) exit 101 ;;
			esac
		done
		if [ -x $policy.fencepost ]; then exec $policy.fencepost "\$@"; fi
		exit 0
	END
	chmod 755 "$policy"
}

allow_start() {
	if [ -f "$policy" ] && grep -qF "$ours" "$policy"; then rm -f "$policy"; fi
	if [ -e "$policy.fencepost" ] || [ -L "$policy.fencepost" ]; then mv "$policy.fencepost" "$policy"; fi
}

# note_services remembers which services were there before us: those are left alone.
note_services() {
	before=
	for name in $services; do
		if service_exists "$name"; then before="$before $name "; fi
	done
}

service_exists() {
	[ -e "/etc/init.d/$1" ] || [ -e "/lib/systemd/system/$1.service" ] || [ -e "/usr/lib/systemd/system/$1.service" ] ||
		[ -e "/etc/systemd/system/$1.service" ]
}

# disable_services undoes that Debian's packages also let their service start with the machine. Not every machine has
# systemctl, while the links for systemd are made on all of them.
disable_services() {
	for name in $services; do
		case $before in *" $name "*) continue ;; esac
		if ! service_exists "$name"; then continue; fi
		if have systemctl; then
			systemctl disable --quiet "$name.service" >>"$tmp/log" 2>&1 || true
			if [ -d /run/systemd/system ]; then systemctl stop "$name.service" >>"$tmp/log" 2>&1 || true; fi
		fi
		find /etc/systemd/system -type l -lname "*/$name.service" -exec rm -f {} + 2>/dev/null || true
		if [ -e "/etc/init.d/$name" ] && have update-rc.d; then
			update-rc.d "$name" disable >>"$tmp/log" 2>&1 || true
		fi
		say "the service $name is not enabled and not started"
	done
}

clean() {
	status=$?
	trap '' INT TERM HUP
	allow_start
	rm -rf "$tmp"
	exit "$status"
}

# ---- where ----

install_with_brew() {
	for thing in "$@"; do
		case $thing in
		server)
			say "installing valkey with Homebrew; its service is not started"
			HOMEBREW_NO_AUTO_UPDATE=1 brew install valkey </dev/null ||
				HOMEBREW_NO_AUTO_UPDATE=1 brew install redis </dev/null ||
				fail "Homebrew could not install valkey, nor redis: see above"
			;;
		compiler) fail "there is no C compiler: run xcode-select --install, then this again" ;;
		esac
	done
}

install() {
	if [ "$(uname -s)" = Darwin ]; then
		have brew || fail "missing: $*. Install Homebrew, or valkey by hand, then run this again"
		install_with_brew "$@"
	elif have apt-get; then
		if [ "$(id -u)" != 0 ]; then
			have sudo || fail "missing: $*. Installing needs root, and there is no sudo: run this once as root"
			say "missing: $*; using sudo to install"
			sudo sh "$0" install "$@"
		else
			install_with_apt "$@"
		fi
	else
		fail "missing: $*. This machine has no apt and no Homebrew: install valkey-server (or redis-server), a C compiler and CA certificates by hand"
	fi
}

case ${1:-} in
mirror) mirror "$2" ;;
install)
	shift
	install "$@"
	;;
'')
	wanted=$(missing)
	# shellcheck disable=SC2086 # a list of words
	if [ -n "$wanted" ]; then
		# Caught here so that we end after the installation has put everything back, and not before.
		trap 'exit 130' INT
		trap 'exit 143' TERM HUP
		(install $wanted)
	fi
	path=$(server) || fail "neither valkey-server nor redis-server is on PATH"
	has_compiler || fail "the C compiler does not work: cc -E fails on pthread.h"
	say "$("$path" --version | cut -d' ' -f1-3) at $path; C compiler at $(command -v cc); nothing else to do"
	;;
*) fail "unknown: $1 (see the top of this file)" ;;
esac
