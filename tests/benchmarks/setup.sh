#!/bin/sh
# Builds the echo server and an environment for each client under BENCH_HOME, and puts the harness beside them.
# usage: BENCH_HOME=folder setup.sh CHECKOUT [ENVIRONMENT...]
#   CHECKOUT: the mcpsync to measure, installed editable, so what is measured is the tree as it is
#   ENVIRONMENT: proto mcp fastmcp mcpsync mcpsync-orjson; none named: all
set -eu
here=$(cd "$(dirname "$0")" && pwd)
home=${BENCH_HOME:?name a folder outside of the checkout}
checkout=$(cd "${1:?name the mcpsync checkout}" && pwd)
shift
[ "$#" -gt 0 ] || set -- proto mcp fastmcp mcpsync mcpsync-orjson

mkdir -p "$home"
cp -r "$here"/. "$home"/
cd "$home"
cc -O2 -o servers/echod servers/echod.c
cc -O2 -o awake awake.c

# make NAME REQUIREMENT...: an environment, unless the last one of that name was made of the same
make() {
    name=$1
    shift
    if [ "$(cat "venvs/$name/made-of" 2>/dev/null)" != "$*" ]; then
        rm -rf "venvs/$name"
        python3 -m venv "venvs/$name"
        "venvs/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
        printf '%s\n' "$*" >"venvs/$name/made-of"
    fi
}

# Beside one another, since they wait for the network; but those of the checkout share its build, and wait for it.
mine=
others=
for name in "$@"; do
    case $name in
        proto) make proto requests==2.34.2 sseclient-py==1.9.0 orjson==3.13.0 & others="$others $!" ;;
        mcp) make mcp mcp==2.3.0 & others="$others $!" ;;
        fastmcp) make fastmcp fastmcp==4.2.3 & others="$others $!" ;;
        mcpsync | mcpsync-orjson) mine="$mine $name" ;;
        *)
            echo "unknown environment: $name" >&2
            exit 2
            ;;
    esac
done
for name in $mine; do
    case $name in
        mcpsync) make mcpsync --editable "$checkout" ;;
        mcpsync-orjson) make mcpsync-orjson --editable "$checkout" orjson==3.13.0 ;;
    esac
done
for job in $others; do
    wait "$job"
done
echo "ready in $home"
