#!/bin/bash
#SBATCH --job-name=pendulum
#SBATCH --array=0-15
#SBATCH --cpus-per-task=1
#SBATCH --mem=2G
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=INT@60
# A chain for every task of the array. A task that is preempted or out of time is queued again and goes on: the command is the same.
# When all are done: reprior merge runs/slurm/chain-* --out runs/pendulum-slurm
set -euo pipefail
exec reprior sample --data examples/pendulum.csv --target period_s --network fcn:16 --warmup 100 --draws 100 --seed 1 \
    --chains 1 --first-chain "$SLURM_ARRAY_TASK_ID" --threads "${SLURM_CPUS_PER_TASK:-1}" --or-resume --quiet \
    --out "runs/slurm/chain-$SLURM_ARRAY_TASK_ID"
