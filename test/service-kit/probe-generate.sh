#!/usr/bin/env bash
# Generates probe_pb.ts from probe.proto, with the contracts' own generated code for what it imports.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$root/proto/." "$work/"
cp "$here/probe.proto" "$work/"
cd "$work"
echo '{"version":"v2","plugins":[{"local":"protoc-gen-es","out":"generated","opt":["target=ts","import_extension=ts"]}]}' > buf.gen.yaml
PATH="$root/node_modules/.bin:$PATH" buf generate --path probe.proto
sed -E -e '/eslint-disable/d' -e 's#"\./((buf|runtimecloud)/[^"]+)\.ts"#"@runtime-cloud/contracts/\1"#' generated/probe_pb.ts > "$here/probe_pb.ts"
"$root/node_modules/.bin/prettier" --write --log-level warn "$here/probe_pb.ts"
