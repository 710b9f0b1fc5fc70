#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Packet delay variation in a loop: pdv.sh SIZE RATE TRIALS
size=$1 rate=$2 trials=$3
echo "No,Forward,Reverse" > pdv.csv
for (( trial = 1; trial <= trials; trial++ )); do
    ./build/siitperf-pdv $size $rate 1 300 2 2 0 > temp.out 2>&1
    if grep -q 'Error' temp.out; then
        cat temp.out >&2
        exit 1
    fi
    echo "$trial,$(grep 'Forward PDV' temp.out | awk '{print $3}'),$(grep 'Reverse PDV' temp.out | awk '{print $3}')" >> pdv.csv
done
