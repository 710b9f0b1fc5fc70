#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Frame loss at rates from the highest down: frame_loss.sh SIZE RATE…
size=$1
shift
duration=1 timeout=300
echo "Size,Rate,Forward,Reverse" > frame_loss.csv
for rate in "$@"; do
    ./build/siitperf-tp $size $rate $duration $timeout 2 2 > temp.out 2>&1
    forward=$(grep 'Forward frames received' temp.out | awk '{print $4}')
    reverse=$(grep 'Reverse frames received' temp.out | awk '{print $4}')
    sent=$(( duration * rate ))
    echo "$size,$rate,$(awk "BEGIN { print ($sent - $forward) / $sent }"),$(awk "BEGIN { print ($sent - $reverse) / $sent }")" >> frame_loss.csv
done
