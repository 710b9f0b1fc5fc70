#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A binary search for the maximum connection establishment rate, as scripts for siitperf have it: all N frames of the
# preliminary phase fill the state table. The test itself is one frame. connection_rate.sh CONNECTIONS MAX_RATE ERROR
N=$1 max=$2 error=$3
size=84 rate=1 duration=1 timeout=300 n=2 m=2 T=300
echo "Connections,Rate" > connection_rate.csv
low=0 high=$max
while (( high - low > error )); do
    R=$(( (low + high) / 2 ))
    D=$(( 1000 * N / R + 2 * T ))
    ./build/siitperf-tp $size $rate $duration $timeout $n $m $N $N $R $T $D > temp.out 2>&1
    if grep 'Error' temp.out | grep -vq 'Failed to fill state table'; then
        cat temp.out >&2
        exit 1
    fi
    received=$(grep 'Preliminary frames received' temp.out | awk '{print $4}')
    if grep -q 'Preliminary frames sent' temp.out && ! grep -q 'Failed to fill state table' temp.out && [ "$received" -eq "$N" ]; then
        low=$R
    else
        high=$R
    fi
done
echo "$N,$low" >> connection_rate.csv
