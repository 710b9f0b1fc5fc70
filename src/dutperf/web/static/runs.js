// SPDX-License-Identifier: Apache-2.0
// The list of runs: filtered, sorted by a column, and made again while a run is under way.
"use strict";
const table = document.getElementById("runs"), wanted = document.getElementById("shown");
const EVERY_MS = 2000;
let sorted = null;  // the column, and the direction

function text(cell) { return cell.dataset.sort ?? cell.textContent.trim(); }

function arrange() {
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted.value.trim().toLowerCase());
    if (sorted === null) return;
    const goes = row => ["running", "starting"].includes(row.dataset.state) ? 0 : 1;
    rows.sort((a, b) => goes(a) - goes(b) || sorted.sign * text(a.cells[sorted.column]).localeCompare(text(b.cells[sorted.column]), undefined, {numeric: true}));
    table.tBodies[0].append(...rows);
}

function sortBy(column) {
    sorted = {column, sign: sorted?.column === column ? -sorted.sign : 1};
    [...table.tHead.rows[0].cells].forEach((cell, place) =>
        cell.setAttribute("aria-sort", place !== column ? "none" : sorted.sign > 0 ? "ascending" : "descending"));
    arrange();
}

// The server alone has the words for results.
async function again() {
    if (!table.querySelector("[data-state=running], [data-state=starting]") || document.hidden) return;
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const made = page.querySelector("#runs tbody");
    if (made) table.tBodies[0].replaceWith(made);
    arrange();
}

if (table) {
    document.getElementById("shown-label").hidden = false;
    wanted.addEventListener("input", arrange);
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...cell.childNodes);
        button.addEventListener("click", () => sortBy(column));
        cell.append(button);
    });
    setInterval(again, EVERY_MS);
}
