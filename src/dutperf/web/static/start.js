// SPDX-License-Identifier: Apache-2.0
// The form, made from the procedures' options.
"use strict";
const by = id => document.getElementById(id);
const element = (name, members = {}, ...children) => {
    const made = Object.assign(document.createElement(name), members);
    made.append(...children);
    return made;
};
const get = async path => (await fetch(path)).json();
let procedures = [], labs = [];

function field(option, prefix) {
    const id = `${prefix}-${option.key}`;
    const shown = option.default ?? option.placeholder ?? "";
    const input = option.choices?.length
        ? element("select", {id, name: id}, element("option", {value: "", textContent: shown || "default"}),
            ...option.choices.map(value => element("option", {value, textContent: value})))
        : element("input", {id, name: id, placeholder: shown});
    input.title = option.help;
    input.dataset.key = option.key;
    return element("label", {textContent: `${option.label} `}, input);
}

function showOptions() {
    const chosen = procedures.find(one => one.name === by("procedure").value);
    by("summary").textContent = chosen?.summary ?? "";
    by("options").replaceChildren(...(chosen?.options ?? []).map(one => field(one, "option")));
    filter();
}

function filter() {
    const words = by("filter").value.toLowerCase();
    for (const label of by("options").children)
        label.hidden = !`${label.textContent} ${label.querySelector("[title]").title}`.toLowerCase().includes(words);
}

function showLab() {
    const lab = labs.find(one => `lab:${one.name}` === by("setup").value);
    const options = Object.entries(lab?.options ?? {}).map(([key, help]) => ({key, label: key, help, placeholder: ""}));
    by("lab-options").replaceChildren(...options.map(one => field(one, "lab")));
}

const filled = parent => Object.fromEntries([...parent.querySelectorAll("[data-key]")].filter(one => one.value !== "")
    .map(one => [one.dataset.key, one.value]));

async function start(event, members) {
    event.preventDefault();
    by("error").hidden = true;
    const answer = await fetch("/api/runs", {
        method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(members),
    });
    const told = await answer.json();
    if (answer.ok) location.assign(`/runs/${told.id}`);
    else Object.assign(by("error"), {textContent: told.error, hidden: false});
}

async function begin() {
    if (!by("form")) return;
    [procedures, labs] = await Promise.all([get("/api/procedures"), get("/api/labs")]);
    by("procedure").append(...procedures.map(one => element("option", {value: one.name, textContent: one.name})));
    by("setup").append(...labs.map(one => element("option", {value: `lab:${one.name}`, textContent: `lab ${one.name}`})));
    by("procedure").addEventListener("change", showOptions);
    by("setup").addEventListener("change", showLab);
    by("filter").addEventListener("input", filter);
    by("form").addEventListener("submit", event => {
        const [kind, ...rest] = by("setup").value.split(":");
        const name = rest.join(":");
        const setup = kind === "lab" ? {lab: name, "lab-options": filled(by("lab-options"))} : {config: name};
        start(event, {
            ...setup, procedure: by("procedure").value, name: by("form").elements.name.value,
            options: filled(by("options")),
        });
    });
    by("plan-form").addEventListener("submit", event => {
        const {plan, name} = by("plan-form").elements;
        start(event, {plan: plan.value, name: name.value || "plan"});
    });
    showOptions();
    showLab();
}
begin();
