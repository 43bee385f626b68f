# What .ci/run and .ci/nightly share: sections that print their time, go on after
# a failure and are summed up at the end.

declare -a summary=()
failed=0

# section NAME COMMAND... runs a command or function, whatever became of those before.
section() {
  local name=$1 start=$SECONDS verdict=ok
  shift
  printf '\n=== %s\n' "$name"
  if ! "$@"; then
    verdict=FAILED
    failed=$((failed + 1))
  fi
  summary+=("$(printf '%-6s %5ds  %s' "$verdict" $((SECONDS - start)) "$name")")
  printf '=== %s: %s after %ds\n' "$name" "$verdict" $((SECONDS - start))
}

sum_up() {
  printf '\n=== summary, %ds in all\n' "$SECONDS"
  printf '%s\n' "${summary[@]}"
  ((failed == 0)) || printf '%d sections FAILED\n' "$failed"
}

# in_memory puts what tests write into memory, where there is enough of it: they wait
# for disks more than for anything else. What is built stays where it was. The folder
# is scratch, and the caller's to remove.
in_memory() {
  local free
  free=$(df --output=avail -B1M /dev/shm 2>/dev/null | tail -1) || return 0
  [[ -w /dev/shm ]] && ((${free:-0} > 6000)) || return 0
  export GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}}
  scratch=$(mktemp -d /dev/shm/ic-tests.XXXXXX)
  export TMPDIR=$scratch
}

# install_programs brings what the integration tests drive. Debian's packages
# start no service in a container.
install_programs() {
  local missing=()
  local -A packages=(
    [prometheus]=prometheus [prometheus-alertmanager]=prometheus-alertmanager [chromium]=chromium [tmux]=tmux [git]=git [curl]=curl [node]=nodejs [strace]=strace
    [ssh-keygen]=openssh-client [ssh-agent]=openssh-client
    [gnome-keyring-daemon]=gnome-keyring [dbus-run-session]=dbus [dbus-daemon]=dbus
  )
  for program in "${!packages[@]}"; do
    command -v "$program" >/dev/null || missing+=("${packages[$program]}")
  done
  if ((${#missing[@]} == 0)); then
    echo "nothing is missing"
    return 0
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update && apt-get -qq install -y --no-install-recommends "${missing[@]}"
}

# packages_with PATTERN lists the packages of the module whose tests hold PATTERN.
packages_with() {
  go list -tags integration -f '{{$p := .}}{{range .TestGoFiles}}{{$p.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$p.Dir}}/{{.}}{{"\n"}}{{end}}' ./... |
    { xargs -r grep -l -- "$1" || true; } | xargs -r -n1 dirname | sort -u
}

# integration_tests FOLDER... joins the names of the tests in files that speak of
# IC_INTEGRATION, are built for it alone, or ask for a stock program, to one pattern.
integration_tests() {
  local folder
  for folder in "$@"; do
    { grep -lE 'IC_INTEGRATION|go:build integration|\bstock\(' "$folder"/*_test.go || true; } | xargs -r grep -hoE '^func Test[A-Za-z0-9_]+' | cut -c6-
  done | sort -u | paste -sd'|'
}
