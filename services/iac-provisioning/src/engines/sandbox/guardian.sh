#!/bin/sh
# Ends the engines of a service that is gone. Arguments: the mark that the engines carry in their environment, and the
# seconds that they have to end by themselves. Standard input: "watch <pid>" and "release <pid>", each pid the leader of
# a process group; it closes when the service ends, however it ends. "leave" says that the service goes on without it.
mark=$1
grace=$2
watched=

while read -r verb pid; do
  case $verb in
    watch) watched="$watched $pid" ;;
    release)
      rest=
      for other in $watched; do [ "$other" = "$pid" ] || rest="$rest $other"; done
      watched=$rest
      ;;
    leave) exit 0 ;;
  esac
done

# An interrupted engine stops what it started, and writes the state that it can't send any more into its directory.
for pid in $watched; do kill -INT "$pid" 2>/dev/null; done

is_alive() {
  for pid in $watched; do kill -0 "$pid" 2>/dev/null && return 0; done
  return 1
}
# Seconds by the clock, where there is one to read without starting anything; else by the naps.
naps=0
now() {
  read -r up _ 2>/dev/null </proc/uptime && now=${up%%.*} || now=$((naps / 10))
}
now
until=$((now + grace))
while [ "$now" -lt "$until" ] && is_alive; do
  sleep 0.1
  naps=$((naps + 1))
  now
done

for pid in $watched; do kill -KILL "-$pid" 2>/dev/null; done

# What left its group, and what was started too late to be told of.
grep -lz "^$mark/" /proc/[0-9]*/environ 2>/dev/null | while IFS=/ read -r _ _ pid _; do
  kill -KILL "$pid" 2>/dev/null
done
exit 0
