#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A binary search for the throughput with connections, which are opened at a fixed rate, as scripts for siitperf have
# it: a test whose state table was not filled is repeated. stateful_throughput.sh CONNECTIONS R MAX_RATE ERROR
N=$1 R=$2 max=$3 error=$4
size=84 duration=1 timeout=300 n=2 m=2 T=300
D=$(( 1000 * N / R + 2 * T ))
echo "Connections,Rate,Unfilled" > stateful_throughput.csv
low=0 high=$max unfilled=0
while (( high - low > error )); do
    rate=$(( (low + high) / 2 ))
    for (( attempt = 0; attempt < 5; attempt++ )); do
        ./build/siitperf-tp $size $rate $duration $timeout $n $m $N $N $R $T $D > temp.out 2>&1
        grep -q 'Error: Failed to fill state table' temp.out || break
        unfilled=$(( unfilled + 1 ))
    done
    if grep -q 'Error' temp.out; then
        cat temp.out >&2
        exit 1
    fi
    forward=$(grep 'Forward frames received' temp.out | awk '{print $4}')
    reverse=$(grep 'Reverse frames received' temp.out | awk '{print $4}')
    wanted=$(( duration * rate ))
    if ! grep -q 'invalid' temp.out && [ "$forward" -eq "$wanted" ] && [ "$reverse" -eq "$wanted" ]; then
        low=$rate
    else
        high=$rate
    fi
done
echo "$N,$low,$unfilled" >> stateful_throughput.csv
