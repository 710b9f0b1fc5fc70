#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Latency in a loop: latency.sh SIZE RATE TRIALS
size=$1 rate=$2 trials=$3
echo "No,FwdTL,FwdWCL,RevTL,RevWCL" > latency.csv
for (( trial = 1; trial <= trials; trial++ )); do
    ./build/siitperf-lat $size $rate 2 300 2 2 1 500 > temp.out 2>&1
    if grep -q 'Error' temp.out; then
        cat temp.out >&2
        exit 1
    fi
    line=$trial
    for name in "Forward TL" "Forward WCL" "Reverse TL" "Reverse WCL"; do
        line="$line,$(grep "^$name:" temp.out | awk '{print $3}')"
    done
    echo "$line" >> latency.csv
done
