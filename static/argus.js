// What every page does with script: says what an action came to, and copies. All of it works without.
"use strict";

document.addEventListener("said", (event) => {
    const place = document.getElementById("said");
    if (!place) return;
    const told = document.createElement("div");
    told.className = "said ok";
    told.textContent = event.detail.text;
    place.replaceChildren(told);
});

// A server that cannot be reached says nothing itself; it is back when it answers again.
document.addEventListener("htmx:sendError", (event) => {
    if (event.target.matches(".later")) event.target.classList.add("away");
    const place = document.getElementById("said");
    if (!place || place.querySelector("[data-away]")) return;
    const told = document.createElement("div");
    told.className = "said bad";
    told.dataset.away = "";
    told.textContent = "The server cannot be reached. Try again when it is back.";
    place.replaceChildren(told);
});

document.addEventListener("htmx:beforeSwap", () => {
    document.querySelector("#said [data-away]")?.remove();
});

// What is fetched when its details are opened is not fetched when they are closed.
document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.matches("details:not([open]) .later")) event.preventDefault();
    event.target.classList.remove("away");
});

// A table that somebody opened stays open when what it stands in is fresh.
let opened = [];

document.addEventListener("htmx:beforeSwap", (event) => {
    const found = event.target.querySelectorAll("details.values[open][id]");
    opened = Array.from(found, (one) => one.id);
});

document.addEventListener("htmx:afterSwap", () => {
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
});

document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    // A browser lends its clipboard to pages of https and of its own machine alone.
    if (!navigator.clipboard) {
        window.getSelection().selectAllChildren(source);
        button.textContent = "Selected: now copy it";
        return;
    }
    await navigator.clipboard.writeText(source.textContent.trim());
    button.textContent = "Copied";
});

// Why: the theme's search takes every key pressed on the page; a page's own keys do not belong there.
window.typing = (event) =>
    event.ctrlKey || event.metaKey || event.altKey ||
    (event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]"));
