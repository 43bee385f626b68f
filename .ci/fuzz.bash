#!/usr/bin/env bash
# Runs every fuzz target of the module, two at a time and each on one processor,
# for FUZZ_TIME: .ci/run takes 30 s, .ci/nightly 10 min.
#
#   .ci/fuzz.bash                  all targets
#   .ci/fuzz.bash FOLDER TARGET    one, such as ./internal/policy FuzzFmt
#   .ci/fuzz.bash --only PATTERN   those whose "FOLDER TARGET" matches; --except: the others
#
#   FUZZ_TIME   per target, such as 30s, 10m, 1h; 30s unless set
#   FUZZ_STATE  a file that names the targets that are done: whoever is stopped and
#               started again within 20 hours goes on behind them. Unset: start anew
#
# What a target has learned stays in $(go env GOCACHE)/fuzz and is where its next
# run begins; it is never committed by itself. An input that breaks a target is
# written by go test to FOLDER/testdata/fuzz/TARGET/ and printed below with the
# command that runs it again: mend the code and commit the input with it.
set -euo pipefail
cd "$(dirname "$0")/.."
source .ci/sections.bash

fuzz_time=${FUZZ_TIME:-30s}
night=$((20 * 3600))

# seconds TEXT turns 90s, 10m or 1h into seconds.
seconds() {
  case $1 in
  *[!0-9smh]* | [smh]*) echo "FUZZ_TIME is $1; write it like 30s, 10m or 1h" >&2 && return 1 ;;
  *h) echo $((${1%h} * 3600)) ;;
  *m) echo $((${1%m} * 60)) ;;
  *s) echo "${1%s}" ;;
  *) echo "FUZZ_TIME is $1; write it like 30s, 10m or 1h" >&2 && return 1 ;;
  esac
}

# targets lists "FOLDER TARGET", one a line. Several functions of one package share
# nothing, so each is a run of its own.
targets() {
  local folder
  packages_with '^func Fuzz' | while read -r folder; do
    grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$folder"/*_test.go | sed "s|^func |./${folder#"$PWD"/} |"
  done
}

# Go before 1.27 now and then calls it a failure that the time is over
# (go.dev/issue/75804): the worker's last answer loses a race, and no input is
# written. That, and nothing else, is forgiven.
only_the_time_is_over() {
  grep -qE '^ +context deadline exceeded$' "$1" && ! grep -qE 'Failing input|panic|hung or terminated|_test\.go:[0-9]+' "$1"
}

# one FOLDER TARGET fuzzes one target and says in one piece what came of it. Inputs
# are shrunk by 100 tries: by time, which is the default, a document of some KiB is
# shrunk for the whole run, and nothing else is tried.
one() {
  local folder=$1 target=$2 log status=0 limit broken
  limit=$(($(seconds "$fuzz_time") + 600)) # ten minutes to build
  log=$(mktemp)
  GOMAXPROCS=1 timeout --kill-after=10 "$limit" \
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzz_time" -fuzzminimizetime 100x -parallel 1 "$folder" >"$log" 2>&1 || status=$?
  if ((status != 0)) && only_the_time_is_over "$log"; then
    status=0
  fi
  if ((status == 0)); then
    printf 'ok      %-20s %-45s %s\n' "$folder" "$target" "$(grep -oE 'execs: [0-9]+|new interesting: [0-9]+ \(total: [0-9]+\)' "$log" | tail -2 | paste -sd, || true)"
    [[ -z ${FUZZ_STATE:-} ]] || echo "$folder $target" >>"$FUZZ_STATE"
    rm -f "$log"
    return 0
  fi
  printf 'BROKEN  %s %s (exit code %d)\n' "$folder" "$target" "$status"
  tail -n 60 "$log"
  broken=$(sed -n 's|.*Failing input written to \(testdata/fuzz/[^ ]*\).*|\1|p' "$log" | tail -1)
  if [[ -n $broken ]]; then
    echo "the input, in $folder/$broken:"
    head -c 4096 "$folder/$broken"
    echo "to see it again:  go test -run '^$target/${broken##*/}\$' $folder"
  else
    echo "to see it again:  FUZZ_TIME=$fuzz_time .ci/fuzz.bash $folder $target"
  fi
  rm -f "$log"
  return 1
}

# go_on starts the state file anew unless it is of this night.
go_on() {
  local begun=0
  [[ ! -f $FUZZ_STATE ]] || begun=$(sed -n '1s/^begun //p' "$FUZZ_STATE")
  if (($(date +%s) - ${begun:-0} > night)); then
    mkdir -p "$(dirname "$FUZZ_STATE")"
    echo "begun $(date +%s)" >"$FUZZ_STATE"
  fi
}

# chosen passes the targets on that were asked for.
chosen() {
  case $mode in
  --only) grep -E -- "$pattern" ;;
  --except) grep -vE -- "$pattern" ;;
  *) cat ;;
  esac
}

# rest lists the targets that are not done. A night that is complete begins again.
rest() {
  local all
  all=$(targets | chosen)
  [[ -n $all ]] || { echo "no fuzz target was found" >&2 && return 1; }
  [[ -n ${FUZZ_STATE:-} ]] || { echo "$all" && return 0; }
  if [[ -z $(grep -vxFf "$FUZZ_STATE" <<<"$all") ]]; then
    echo "begun $(date +%s)" >"$FUZZ_STATE"
  fi
  grep -vxFf "$FUZZ_STATE" <<<"$all"
}

seconds "$fuzz_time" >/dev/null
mode='' pattern=''
case ${1:-} in
--only | --except) mode=$1 pattern=$2 ;;
?*)
  one "$1" "$2"
  exit
  ;;
esac
[[ -z ${FUZZ_STATE:-} ]] || go_on
left=$(rest)
echo "$(wc -l <<<"$left") of $(targets | wc -l) targets, $fuzz_time each, two at a time"
xargs -P 2 -L 1 .ci/fuzz.bash <<<"$left" || {
  echo "a fuzz target is broken, see above"
  exit 1
}
