#!/bin/sh
# A client of ic-agent in another language: what a service has to ask, and what a
# console or a monitor reads. usage: client.sh URL
set -eu
url=$1

# status METHOD PATH [curl's arguments]: the status code alone.
status() {
	method=$1 path=$2
	shift 2
	curl --silent --max-time 10 --output /dev/null --write-out '%{http_code}' --request "$method" "$@" "$url$path"
}

# may AMOUNT: one order, one question. Anything but a plain yes is a no.
may() {
	answer=$(curl --silent --max-time 10 --header 'Content-Type: application/json' \
		--data "{\"control\":\"payment-risk\",\"service\":\"checkout\",\"amount\":\"$1 USD\"}" "$url/v1/allow") || answer=
	case $answer in
	*'"allowed":true'*) echo yes ;;
	*) printf 'no %s\n' "$(printf '%s' "$answer" | sed -n 's/.*"reason":"\([a-z-]*\)".*/\1/p')" ;;
	esac
}

echo "healthz $(status GET /healthz)"
echo "freshz $(status GET /freshz)"
echo "49.99 $(may 49.99)"
echo "50.00 $(may 50.00)"
echo "a form $(status POST /v1/allow --data 'amount=1.00')"
echo "another verb $(status POST /report)"
report=$(curl --silent --fail --max-time 10 "$url/report")
echo "host $(printf '%s' "$report" | sed -n 's/.*"host":"\([^"]*\)".*/\1/p')"
echo "in force $(printf '%s' "$report" | sed -n 's/.*"live":\[\([^]]*\)\].*/\1/p' | tr '{' '\n' | grep -c '"id":')"
echo "metrics $(curl --silent --fail --max-time 10 "$url/metrics" | grep -c '^ic_host_live{')"
