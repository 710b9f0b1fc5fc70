#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A binary search for the capacity of the connection tracking table, as scripts for siitperf have it: of the connections
# each gets a frame back (Forward is 0, Reverse 1), and all that were sent must arrive. CLEAR is a command that empties
# the table. table_capacity.sh FITS TOO_MANY ERROR R CLEAR
fits=$1 too_many=$2 error=$3 R=$4 clear=$5
size=84 timeout=300 n=2 m=2 T=300
echo "Capacity" > table_capacity.csv
low=$fits high=$too_many
while (( high - low > error )); do
    N=$(( (low + high) / 2 ))
    D=$(( 1000 * N / R + 2 * T ))
    duration=$(( N / R + 1 ))
    $clear || exit 1
    ./build/siitperf-tp $size $R $duration $timeout $n $m $N $N $R $T $D > temp.out 2>&1
    if grep 'Error' temp.out | grep -vq 'Failed to fill state table'; then
        cat temp.out >&2
        exit 1
    fi
    sent=$(grep 'Reverse frames sent' temp.out | awk '{print $4}')
    received=$(grep 'Reverse frames received' temp.out | awk '{print $4}')
    if ! grep -q 'Failed to fill state table' temp.out && ! grep -q 'invalid' temp.out && [ "$sent" = "$received" ]; then
        low=$N
    else
        high=$N
    fi
done
echo "$low" >> table_capacity.csv
