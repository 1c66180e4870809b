#!/bin/sh
# precompile.sh SOURCE_DIR COMPILER ARGUMENT…: compiles a precompiled header, and writes beside it (.sum) the checksum
# of everything that went into it: the arguments and the text of every header.
#
# ccache takes that checksum for the precompiled header's own (CCACHE_PCH_EXTSUM), whose bytes hold absolute paths and
# so are different in every clone. A precompiled header itself is never cached, for the same reason.
set -eu

source_dir=$1
shift
output='' depfile='' previous=''
for argument in "$@"; do
  case $previous in
    -o) output=$argument ;;
    -MF) depfile=$argument ;;
  esac
  previous=$argument
done
case $output in
  *.pch) ;;
  *) exec "$@" ;;
esac

rm -f "$output.sum"
: >"$output.start"
"$@"

# clang's plain form of make's syntax: "target: \", then files between spaces and line ends.
headers=$(sed -e 's/^[^ ]*://' -e 's/\\$//' "$depfile")
# A header that was edited while the compiler ran may not be the one that it read. Then, as for any other doubt, there
# is no checksum, and ccache hashes the precompiled header itself.
# shellcheck disable=SC2086 # the headers are words, on purpose
if newer=$(find -L $headers -newer "$output.start") && [ -z "$newer" ] && sums=$(sha256sum $headers); then
  printf '%s\n' "$@" "$sums" | sed -e "s|$PWD/||g" -e "s|$source_dir|.|g" | sha256sum >"$output.sum.new"
  mv "$output.sum.new" "$output.sum"
fi
rm -f "$output.start"
