#!/bin/sh
# A service that is a shell script beside an agent. usage: client.sh URL SOCKET ENV_FILE
set -eu
url=$1 socket=$2 env_file=$3
flags=/ofrep/v1/evaluate/flags

ask() { curl --silent --max-time 10 --request POST --header 'Content-Type: application/json' "$@"; }

heads=$(ask --data '{}' --output /dev/null --dump-header - "$url$flags")
tag=$(printf '%s' "$heads" | tr -d '\r' | sed -n 's/^[Ee][Tt]ag: //p')
echo "again $(ask --data '{}' --header "If-None-Match: $tag" --output /dev/null --write-out '%{http_code}' "$url$flags")"
echo "tier $(ask "$url$flags/tier.checkout" | sed -n 's/.*"value":\([0-9]*\).*/\1/p')"
echo "unknown $(ask --output /dev/null --write-out '%{http_code}' "$url$flags/nobody-knows")"
echo "socket $(ask --unix-socket "$socket" --data '{"control":"payment-risk","amount":{"minor":1,"currency":"USD"}}' http://agent/v1/allow | sed -n 's/.*"allowed":\([a-z]*\).*/\1/p')"
echo "fresh $(curl --silent --max-time 10 --output /dev/null --write-out '%{http_code}' "$url/freshz")"
. "$env_file"
echo "file $IC_TIER_CHECKOUT $IC_OFF_REVIEWS $IC_CONDITION"
