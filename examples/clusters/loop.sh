#!/bin/bash
# Four chains beside each other on this machine, each a run of its own, put together at the end.
# The same command begins, goes on with what was interrupted, and leaves alone what is complete.
set -euo pipefail
for chain in 0 1 2 3; do
    reprior sample --data examples/pendulum.csv --target period_s --network fcn:16 --warmup 100 --draws 100 --seed 1 \
        --chains 1 --first-chain "$chain" --threads 1 --or-resume --quiet --out "runs/loop/chain-$chain" > /dev/null &
done
wait
reprior merge runs/loop/chain-* --out runs/pendulum-loop
