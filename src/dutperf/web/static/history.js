// SPDX-License-Identifier: Apache-2.0
// Figures of a series over time, with the means between change points.
"use strict";
const ink = getComputedStyle(document.body).color;
for (const box of document.querySelectorAll(".history")) {
    const trend = JSON.parse(box.dataset.trend);
    const all = trend.groups.flatMap(group => group.measurements.map(one => [Date.parse(one.started) / 1000, one.median, group.mean, one.id]));
    if (!all.length) continue;
    const axis = {stroke: ink, grid: {stroke: "#8883", width: 1}, ticks: {stroke: "#8885"}};
    const made = new uPlot({
        width: box.clientWidth || 320, height: 240, legend: {live: false}, cursor: {drag: {x: true, y: false}},
        axes: [axis, {...axis, size: 80}],
        series: [{}, {label: "median", stroke: "#0072b2", width: 0, paths: () => null, points: {show: true, size: 6}},
            {label: "mean", stroke: "#d55e00", width: 2, paths: uPlot.paths.stepped({align: 1})}],
    }, [0, 1, 2].map(place => all.map(one => one[place])), box);
    new ResizeObserver(() => made.setSize({width: box.clientWidth, height: 240})).observe(box);
    box.addEventListener("dblclick", () => { if (made.cursor.idx != null) location.assign(`/store/measurements/${all[made.cursor.idx][3]}`); });
}
