#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A binary search for the throughput, as scripts for siitperf have it: throughput.sh SIZE MAX_RATE ERROR TRIALS
size=$1 max=$2 error=$3 trials=$4
duration=1 timeout=300 n=2 m=2
echo "No,Size,Rate" > throughput.csv
for (( trial = 1; trial <= trials; trial++ )); do
    low=0 high=$max
    while (( high - low > error )); do
        rate=$(( (low + high) / 2 ))
        ./build/siitperf-tp $size $rate $duration $timeout $n $m > temp.out 2>&1
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
    echo "$trial,$size,$low" >> throughput.csv
done
