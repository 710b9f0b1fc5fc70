// SPDX-License-Identifier: Apache-2.0
// A run, live: everything comes by server-sent events.
"use strict";
const by = id => document.getElementById(id);
const number = value => value == null ? "-" : value.toLocaleString("en", {maximumFractionDigits: 1});
const id = by("now").dataset.run;
const ink = getComputedStyle(document.body).color;
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const MOST_POINTS = 600, MOST_ROWS = 200, MOST_CURVES = 12;

function plot(target, series, xLabel, xScale = {}) {
    const box = by(target);
    const axis = {stroke: ink, grid: {stroke: "#8883", width: 1}, ticks: {stroke: "#8885"}};
    const made = new uPlot({
        width: box.clientWidth || 320, height: 220, legend: {show: true, live: false},
        cursor: {show: false}, scales: {x: {time: false, ...xScale}, y: {range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.05]}},
        axes: [{...axis, label: xLabel}, {...axis, size: 70, values: (_, ticks) => ticks.map(number)}],
        series: [{label: xLabel}, ...series],
    }, [[], ...series.map(() => [])], box);
    new ResizeObserver(() => made.setSize({width: box.clientWidth, height: 220})).observe(box);
    return made;
}
const dots = (label, stroke) => ({label, stroke, width: 0, paths: () => null, points: {show: true, size: 6, fill: stroke}});
const path = plot("path", [dots("without loss", COLOURS[2]), dots("with loss", COLOURS[1]), dots("not valid", "#888")], "trial");
const late = plot("lateness", [dots("largest lateness", COLOURS[0])], "trial");
const delays = plot("delays", [{label: "frames", stroke: COLOURS[0], fill: "#0072b233", paths: uPlot.paths.stepped({align: -1})}],
    "µs, a lost frame as its timeout", {distr: 3});
let rates = null, ratesOf = "", rateData = [], before = null;
const pathData = [[], [], [], []], lateData = [[], []];
let histogram = new Map(), histogramOf = "", counted = {valid: 0, invalid: 0, aborted: 0}, trials = 0, dirty = false;

function cell(text, kind = "") {
    const made = document.createElement("td");
    made.textContent = text;
    made.className = kind;
    return made;
}

function showTrial(one) {
    trials += 1;
    const of = Object.values(one.directions);
    const lost = of.reduce((sum, counts) => sum + counts.lost, 0);
    const kind = one.verdict !== "valid" ? 2 : lost ? 1 : 0;
    pathData[0].push(trials);
    for (const place of [0, 1, 2]) pathData[place + 1].push(place === kind ? one.load?.value ?? null : null);
    lateData[0].push(trials);
    lateData[1].push(Math.max(0, ...of.map(counts => counts.lateness_us?.max ?? 0)));
    counted[one.verdict] = (counted[one.verdict] ?? 0) + 1;
    const now = JSON.stringify([one.procedure, one.case]);
    if (now !== histogramOf) [histogram, histogramOf] = [new Map(), now];
    for (const counts of of) for (const [delay, frames] of counts.delay_histogram ?? [])
        histogram.set(delay, (histogram.get(delay) ?? 0) + frames);
    const row = document.createElement("tr");
    const medians = of.map(counts => counts.delay_us?.p50).filter(value => value != null).map(number).join(" / ");
    row.append(cell(trials), cell(`${one.procedure} ${Object.values(one.case ?? {}).join(" ")}`),
        cell(one.load ? `${number(one.load.value)} ${one.load.unit}` : "-"), cell(one.verdict, one.verdict),
        cell(of.map(counts => number(counts.lost)).join(" / ")), cell(medians || "-"), cell(one.causes.join("; ")));
    by("trials").prepend(row);
    while (by("trials").childElementCount > MOST_ROWS) by("trials").lastChild.remove();
    dirty = true;
}

function draw() {
    if (!dirty) return;
    dirty = false;
    path.setData(pathData);
    late.setData(lateData);
    const sorted = [...histogram].sort((a, b) => a[0] - b[0]);
    by("no-delays").hidden = sorted.length > 0;
    delays.setData([sorted.map(one => one[0]), sorted.map(one => one[1])]);
    by("verdicts").textContent = Object.entries(counted).map(([name, count]) => `${count} ${name}`).join(", ");
}

function showProgress(now) {
    const place = `${now.procedure}, ${now.case}, repetition ${now.repetition} of ${now.repetitions}`;
    const load = one => one ? `${number(one.value)} ${one.unit}` : "-";
    const searching = `${now.measurement === now.procedure ? "" : `${now.measurement}: `}${place}: trying ${load(now.load)} (passed ${load(now.passed)}, not ${load(now.not_passed)}); about ${now.trials_left} trials${now.trials_done ? `, ${number(now.remaining_s)} s` : ""} left`;
    const byHand = now.procedure === "traffic";
    if (by("by-hand")) by("by-hand").hidden = !byHand;
    const byClients = now.procedure === "otg";
    by("done").hidden = byClients;
    by("where").textContent = byClients ? now.note : byHand
        ? `${now.case}: part ${now.repetition} at ${load(now.load)} per direction, for at most ${number(now.remaining_s)} s` : searching;
    by("done").max = Math.max(1, now.trials_done + now.trials_left);
    by("done").value = now.trials_done;
    if (!now.trial) { before = null; return; }
    const each = Object.keys(now.trial.directions), names = each.slice(0, MOST_CURVES);
    if (names.join() !== ratesOf) {
        ratesOf = names.join();
        by("rates").replaceChildren();
        rates = plot("rates", names.flatMap((name, place) => [
            {label: `${name} sent`, stroke: COLOURS[place % 6], dash: [6, 4]},
            {label: `${name} received`, stroke: COLOURS[place % 6], width: 2}]), "s");
        rateData = [[], ...names.flatMap(() => [[], []])];
        before = null;
    }
    const passed = before ? now.trial.elapsed_s - before.elapsed_s : 0;
    const rate = (name, what) => passed > 0 && before.directions[name]
        ? Math.max(0, (now.trial.directions[name][what] - before.directions[name][what]) / passed) : null;
    const told = Object.fromEntries(each.map(name => [name, ["sent", "received"].map(what => number(rate(name, what))).join(" / ")]));
    if (passed > 0) {
        rateData[0].push((rateData[0].at(-1) ?? 0) + passed);
        names.forEach((name, place) => ["sent", "received"].forEach((what, which) =>
            rateData[1 + 2 * place + which].push(rate(name, what))));
        if (rateData[0].length > MOST_POINTS) rateData.forEach(values => values.shift());
        rates.setData(rateData);
    }
    before = now.trial;
    by("directions").replaceChildren(...each.map(name => {
        const counts = now.trial.directions[name], list = document.createElement("dl");
        const rows = [[name, ""], ["sent", number(counts.sent)], ["received", number(counts.received)],
            ["frames/s, sent / received", told[name]],
            ["on the way or lost", number(counts.sent - counts.received)],
            ["largest lateness", `${number(counts.max_lateness_us)} µs`], ["lost by the tester", number(counts.tester_drops)]];
        for (const [term, value] of rows) {
            const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
            [dt.textContent, dd.textContent] = [term, value];
            list.append(dt, ...(value === "" ? [] : [dd]));
        }
        return list;
    }));
}

// The server alone has the words for results.
async function showResult() {
    const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
    by("headline").replaceWith(page.getElementById("headline"));
}

function showState(state) {
    const went = ["running", "starting"].includes(by("state").textContent);
    by("state").textContent = state;
    by("state").className = `state ${state}`;
    const goes = state === "running" || state === "starting";
    if (went && !goes) showResult();
    if (!goes && by("by-hand")) by("by-hand").hidden = true;
    if (by("stop")) [by("stop").hidden, by("resume").hidden] = [!goes, goes || state === "complete"];
    if (state === "complete") by("done").value = by("done").max;
    if (!goes) by("where").textContent = state === "complete" ? "Everything is measured." : "Nothing is under way.";
}

async function post(what, members = {}) {
    by("error").hidden = true;
    const answer = await fetch(`/api/runs/${id}/${what}`, {
        method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(members),
    });
    if (!answer.ok) Object.assign(by("error"), {textContent: (await answer.json()).error, hidden: false});
}

function follow() {
    const source = new EventSource(`/api/runs/${id}/events`);
    const on = (name, show) => source.addEventListener(name, event => show(JSON.parse(event.data)));
    // A stream that was interrupted begins anew: so does the page.
    source.addEventListener("open", () => {
        for (const values of [...pathData, ...lateData]) values.length = 0;
        by("trials").replaceChildren();
        [histogram, histogramOf, counted, trials] = [new Map(), "", {valid: 0, invalid: 0, aborted: 0}, 0];
        by("log").textContent = "";
    });
    on("trial", showTrial);
    on("progress", showProgress);
    on("state", showState);
    on("log", lines => {
        const log = by("log"), atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
        log.textContent = `${log.textContent}${lines.join("\n")}\n`.split("\n").slice(-500).join("\n");
        if (atEnd) log.scrollTop = log.scrollHeight;
    });
}
for (const button of document.querySelectorAll("[data-act]")) button.addEventListener("click", () => post(button.dataset.act));
by("by-hand")?.addEventListener("submit", event => {
    event.preventDefault();
    post("rate", {rate: by("by-hand").elements.rate.value});
});
by("end")?.addEventListener("click", () => post("rate", {end: true}));
setInterval(draw, 200);
follow();
